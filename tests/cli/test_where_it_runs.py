"""dq as it is installed and submitted: from its wheel, on a cluster, through Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fakes import jvm
from fakes.wheel import ROOT, built, python_without_dq

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: lake, format: csv}
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, physicalType: bigint, primaryKey: true}
      - {name: state, logicalType: string, enum: [{value: open}, {value: paid}]}
"""
# What every place has to find in the rows below.
FOUND = {
    ("id", "primary_key", "1 row", '[{"count": 2, "id": "2"}]'),
    ("state", "enum", "1 of 3 rows", '[{"id": "2"}]'),
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return python_without_dq(tmp_path_factory.mktemp("python"))


@pytest.fixture
def orders(tmp_path):
    """A folder with a contract and rows that break it twice."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "orders.csv").write_text("id,state\n1,open\n2,paid\n2,lost\n")
    (tmp_path / "orders.odcs.yaml").write_text(CONTRACT.replace("path: lake", f"path: {tmp_path}/lake"))
    return tmp_path


def run(folder: Path, *command: object, **more: str) -> subprocess.CompletedProcess[str]:
    ours = ("DQ_", "SLACK_", "SPARK_", "PYSPARK_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment |= jvm.SETTINGS | more
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def found(printed: str) -> set[tuple[str, str, str, str]]:
    # spark-submit writes what its program says on stderr to stdout, too.
    (report,), _ = json.JSONDecoder().raw_decode(printed, printed.index("[\n"))
    return {
        (
            one["target"]["property"],
            one["check"],
            one["measure"]["observed"],
            json.dumps(one["samples"], sort_keys=True),
        )
        for one in report["results"]
        if one["status"] != "pass"
    }


def test_the_wheel_installs_as_one_package(wheel, python, orders, tmp_path):
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    program = "import dq, dq.examples, dq.store; print(dq.__file__, dq.check.__module__, dq.store.__file__)"

    shown = run(orders, python, "-c", program, PYTHONPATH=str(site))
    validated = run(orders, python, "-m", "dq", "validate", "orders.odcs.yaml", PYTHONPATH=str(site))
    alone = run(orders, python, "-c", "import dq")

    assert shown.stdout.split() == [
        f"{site}/dq/__init__.py",
        "dq.operations.frames",
        f"{site}/dq/store/__init__.py",
    ]
    assert "1 contract" in validated.stdout, validated.stderr
    assert "No module named 'dq'" in alone.stderr


def test_the_store_is_made_from_inside_of_the_wheel(wheel, python, orders):
    program = "import dq.store.engine as at; at.open_store('sqlite:///store.db'); print(at.__file__)"

    shown = run(orders, python, "-c", program, PYTHONPATH=str(wheel))

    assert shown.stdout.startswith(str(wheel)), shown.stderr
    assert (orders / "store.db").stat().st_size > 0


@pytest.mark.spark
@pytest.mark.slow
def test_spark_submit_takes_the_wheel_to_a_cluster(wheel, python, orders):
    import pyspark

    home = Path(pyspark.__file__).parent
    done = run(
        orders,
        home / "bin" / "spark-submit",
        *("--master", "local-cluster[1,1,1024]", "--driver-memory", "1g"),
        *("--conf", "spark.ui.enabled=false", "--py-files", wheel),
        *("--conf", f"spark.executor.extraJavaOptions={jvm.SMALL}"),
        ROOT / "api" / "__main__.py",
        *("check", "orders.odcs.yaml", "--format", "json", "--channel", "console"),
        SPARK_HOME=str(home),
        PYSPARK_PYTHON=str(python),
    )

    assert done.returncode == 1, done.stderr
    assert found(done.stdout) == FOUND
    assert "Executor added: app-" in done.stderr


ON_CONNECT = """
import sys
from pathlib import Path
from dq.cli.main import run

copy = Path("copy")
copy.mkdir()
for file in Path("lake").iterdir():
    (copy / file.name).write_text(file.read_text().replace("open", "closed"))
code = run(sys.argv[1:])
assert run(["reconcile", "lake", "copy", "--key", "id"]) == 1
sys.exit(code)
"""


@pytest.mark.slow
def test_spark_connect_gives_the_same_report_and_writes_the_good_rows(orders):
    """Not among the tests for Spark 3.5, which has no server of Connect in its package."""
    command = (sys.executable, "-c", ON_CONNECT, "check", "orders.odcs.yaml", "--format", "json")
    places = ("--channel", "console", "--keep", "first by state", "--clean", orders / "clean")

    done = run(orders, *command, *places, SPARK_REMOTE="local[1]")

    assert done.returncode == 1, done.stderr
    assert found(done.stdout) == FOUND
    [report], end = json.JSONDecoder().raw_decode(done.stdout)
    assert report["proven"] == 0
    assert report["cleaned"]["rows"] == 1
    [file] = (orders / "clean/orders/orders").glob("*.parquet")
    assert pq.read_table(file).to_pylist() == [{"id": 1, "state": "open"}]
    lines = done.stdout[end:].strip().splitlines()
    assert lines[:2] == ["lake and copy differ.", "Decided by rows."]
    assert "Rows: 0 missing, 0 extra, 1 changed, 0 repeated." in lines
    assert "  changed  id='1': state 'open' -> 'closed'" in lines


ON_FILES = """
import json, os, shutil, sys, threading
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from dq.contracts.types import DataType
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.reconcile.columns import Terms, pair_columns
from dq.dataquality.reconcile.compare import Options, Side, reconcile, schema_of_side
from dq.dataquality.reconcile.parquet_sums import Grouping, parquet_side, sums_in_tasks
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import Dataset

# A column that is named like a folder above the table is one of the files.
lake = Path("zone=eu/orders").absolute()
files = [lake / f"day=2026-05-0{day}/hour=03%3A00/part 0.parquet" for day in (1, 2)]
for file in files:
    file.parent.mkdir(parents=True)
    columns = {"id": [*range(1000), 7], "state": ["open"] * 1000 + ["lost"], "zone": ["us"] * 1001}
    pq.write_table(pa.table(columns), file)
contract = parse(Path("orders.odcs.yaml").read_bytes(), "orders.odcs.yaml").contract
spark = SparkSession.builder.getOrCreate()
frame = spark.read.parquet(str(lake))

def report(frame, **options):
    made = check(Request(contract, frame, tasks_from=0, **options))
    results = [
        (result.clause, result.status.value, result.observed, result.samples)
        for result in made.results
    ]
    return {"proven": made.proven, "passes": made.passes, "notes": made.notes, "results": results}

reports = {"all": report(frame), "scan": report(frame, optimizations=frozenset())}
reports["filtered"] = report(frame.where("id < 9999"))
done = threading.Event()

def touch():
    for second in count(1):
        os.utime(files[0], (second, second))
        if done.wait(0.002):
            return

thread = threading.Thread(target=touch)
thread.start()
reports["changing"] = report(frame)
done.set()
thread.join()
print("REPORTS", json.dumps(reports))

shutil.copytree(lake, "copy")
part = Path("copy/day=2026-05-02/hour=03%3A00/part 0.parquet")
table = pq.read_table(part, partitioning=None)
states = table["state"].to_pylist()
pq.write_table(table.set_column(1, "state", pa.array(["closed", *states[1:]])), part)
keys = ("day", "hour")
sides = [
    Side(path, spark.read.parquet(path), Dataset("orders", path, "parquet", None, DataType("struct"), keys))
    for path in (str(lake), str(Path("copy").absolute()))
]
pairing = pair_columns(*map(schema_of_side, sides), Terms(("id",)))
columns = pairing.columns, pairing.key, pairing.named(keys), Grouping(64, 24, 31)
in_tasks = sums_in_tasks([parquet_side(side.frame, side.dataset, (), keys) for side in sides], *columns)
outcomes = [reconcile(*sides, Terms(("id",)), Options(keys, tasks_from=rows)) for rows in (0, 1 << 60)]
print("OUTCOMES", in_tasks is not None, *(outcome.counts["changed"] for outcome in outcomes))
"""
ON_FILES_CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
schema:
  - name: orders
    quality: [{metric: rowCount, mustBe: 2002}]
    properties:
      - {name: id, logicalType: integer, physicalType: bigint, required: true, unique: true}
      - {name: state, logicalType: string, enum: [{value: open}]}
      - {name: zone, logicalType: string, enum: [{value: us}]}
      - {name: day, logicalType: date, required: true, partitioned: true, partitionKeyPosition: 1}
      - {name: hour, logicalType: string, required: true, partitioned: true, partitionKeyPosition: 2}
"""


@pytest.mark.slow
def test_spark_connect_answers_from_statistics_and_tasks_if_both_sides_see_the_same_files(tmp_path):
    (tmp_path / "orders.odcs.yaml").write_text(ON_FILES_CONTRACT)

    # The daemon of the workers is one of the tests.
    places = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(jvm.WORKER)}
    done = run(tmp_path, sys.executable, "-c", ON_FILES, SPARK_REMOTE="local[2]", **places)

    assert "REPORTS " in done.stdout, done.stderr
    reports, _ = json.JSONDecoder().raw_decode(done.stdout.partition("REPORTS ")[2])
    assert [report["notes"] for report in reports.values()] == [
        [],
        [],
        ["All rows are read: the DataFrame is not the unmodified files of one table."],
        ["All rows are read: the DataFrame is not the unmodified files of one table."],
    ]
    scanned = reports["scan"]["results"]
    assert {status for _, status, _, _ in scanned} == {"pass", "fail"}
    assert all(report["results"] == scanned for report in reports.values())
    # The row count, three columns without NULL, and the values of a column and of the folders.
    assert [report["proven"] for report in reports.values()] == [reports["all"]["proven"], 0, 0, 0]
    assert reports["all"]["proven"] >= 4
    assert "OUTCOMES True 1 1" in done.stdout, done.stderr
