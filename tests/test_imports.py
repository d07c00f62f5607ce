"""What must start fast imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest

HEAVY = (
    "pyspark", "boto3", "botocore", "pandas", "pandera", "numpy", "pyarrow", "slack_sdk", "sqlalchemy",
    "alembic", "git", "croniter", "holidays", "jsonschema", "rich", "typer", "sqlglot",
)  # fmt: skip

GATE = (
    "import datetime\n"
    "from dq.validators.lint import lint, rules_of\n"
    "from dq.validators.reports import reports_of\n"
    "reports_of()\n"
    "lint(b'kind: DataContract', 'a.odcs.yaml', rules=rules_of(), today=datetime.date(2026, 1, 1))\n"
)


def _imported(program: str) -> set[str]:
    listing = program + "import sys\nprint(*{name.split('.')[0] for name in sys.modules})\n"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def imported() -> set[str]:
    return _imported(GATE)


LIBRARY = (
    "import dq\n"
    "text = 'apiVersion: v3.2.0\\nkind: DataContract\\nid: a\\nversion: 1.0.0\\nstatus: active\\n'\n"
    "assert dq.validate(text) == [] and dq.diff(text, text) and dq.load(text).id == 'a' and dq.__version__\n"
)


@pytest.mark.parametrize("module", HEAVY)
def test_the_light_half_of_the_library_does_not_import(module: str) -> None:
    assert module not in _imported_by_library()


@cache
def _imported_by_library() -> set[str]:
    return _imported(LIBRARY)


@pytest.mark.parametrize("module", HEAVY)
def test_linting_a_contract_does_not_import(imported: set[str], module: str) -> None:
    assert module not in imported


@pytest.mark.parametrize("module", ["pyspark", "pandas", "pandera", "numpy", "pyarrow", "sqlglot", "polars"])
def test_the_python_interface_waits_with_engines_until_they_are_asked_for(python: set[str], module: str):
    assert module not in python


@pytest.fixture(scope="module")
def python() -> set[str]:
    names = "dq.Report, dq.status, dq.check, dq.backtest, dq.sample"
    return _imported(f"import dq, dq.cli.loading.contracts, dq.dataquality\n{names}\n")
