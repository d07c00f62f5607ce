"""dq as it is installed and submitted: from its wheel, on a cluster, through Spark Connect."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

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


def as_zip(wheel: Path, folder: Path) -> Path:
    """The wheel by a name that Spark puts on the path of executors."""
    return Path(shutil.copy(wheel, folder / "dq.zip"))


@pytest.fixture
def orders(tmp_path):
    """A folder with a contract and rows that break it twice."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "orders.csv").write_text("id,state\n1,open\n2,paid\n2,lost\n")
    (tmp_path / "orders.odcs.yaml").write_text(CONTRACT.replace("path: lake", f"path: {tmp_path}/lake"))
    return tmp_path


def run(folder: Path, *command: object, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def environment(**more: str) -> dict[str, str]:
    ours = ("DQ_", "SLACK_", "SPARK_", "PYSPARK_")
    others = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return others | jvm.SETTINGS | more


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
        *("--conf", "spark.ui.enabled=false", "--py-files", as_zip(wheel, orders)),
        *("--conf", f"spark.executor.extraJavaOptions={jvm.CLUSTER}"),
        ROOT / "api" / "__main__.py",
        *("check", "orders.odcs.yaml", "--format", "json", "--channel", "console"),
        SPARK_HOME=str(home),
        PYSPARK_PYTHON=str(python),
    )

    assert done.returncode == 1, done.stderr
    assert found(done.stdout) == FOUND
    assert "Executor added: app-" in done.stderr


ON_EXECUTORS = """
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.request import Request

Path("table").mkdir()
pq.write_table(pa.table({"id": [1, 2, 2], "state": ["open", "paid", "lost"]}), "table/part-0.parquet")
contract = parse(Path("orders.odcs.yaml").read_bytes(), "orders.odcs.yaml").contract

def check_on_executors(python_path):
    with SparkSession.builder.config("spark.executorEnv.PYTHONPATH", python_path).getOrCreate() as spark:
        frame = spark.read.parquet("table")
        reports = {
            "all": check(Request(contract, frame, tasks_from=0)),
            "scan": check(Request(contract, frame, optimizations=frozenset())),
        }
    return {
        name: [report.notes, [(result.clause, result.status.value, result.observed, result.samples)
                              for result in report.results]]
        for name, report in reports.items()
    }

print("REPORTS", json.dumps([check_on_executors(python_path) for python_path in sys.argv[1:]]))
"""


def other_version(wheel: Path, folder: Path) -> Path:
    """An installation of the wheel as another version."""
    zipfile.ZipFile(wheel).extractall(folder)
    (info,) = folder.glob("*.dist-info")
    metadata = (info / "METADATA").read_text("utf-8")
    (info / "METADATA").write_text(metadata.replace("\nVersion: ", "\nVersion: 9", 1), "utf-8")
    return folder


def broken_pyarrow(folder: Path) -> Path:
    """A pyarrow that was built for another system."""
    (folder / "pyarrow").mkdir(parents=True)
    (folder / "pyarrow" / "__init__.py").write_text("raise ImportError('libarrow.so cannot be opened')")
    return folder


@pytest.mark.spark
@pytest.mark.slow
def test_executors_that_cannot_run_the_tasks_leave_them_to_spark_and_the_report_says_why(
    wheel, python, orders, tmp_path
):
    """One driver, which has dq; its executors start anew for each path of Python."""
    import pyspark

    home = Path(pyspark.__file__).parent
    (orders / "program.py").write_text(ON_EXECUTORS)
    expected = {
        f"{tmp_path}/empty": " has no dq. Send an environment",
        f"{other_version(wheel, tmp_path / 'other')}": " has dq 90.1.0, and the driver ",
        f"{broken_pyarrow(tmp_path / 'broken')}:{wheel}": "Python tasks failed: libarrow.so cannot be opened",
    }
    done = run(
        orders,
        home / "bin" / "spark-submit",
        *("--master", "local-cluster[1,1,1024]", "--driver-memory", "1g"),
        *("--conf", "spark.ui.enabled=false", "--conf", f"spark.executor.extraJavaOptions={jvm.CLUSTER}"),
        "program.py",
        *(f"{jvm.WORKER}:{path}" for path in expected),
        SPARK_HOME=str(home),
        PYSPARK_PYTHON=str(python),
        PYTHONPATH=str(wheel),
    )

    assert "REPORTS " in done.stdout, done.stderr
    for reports, reason in zip(
        json.loads(done.stdout.partition("REPORTS ")[2]), expected.values(), strict=True
    ):
        (note,), results = reports["all"]
        assert note.startswith("Spark scans: ")
        assert reason in note
        assert reports["scan"] == [[], results]


ON_OTHER_DISKS = """
from pathlib import Path

from pyspark.sql import SparkSession

from dq.cli.main import run
from dq.dataquality.results import COLUMNS

def check(*options):
    print("CODE", run(["check", "orders.odcs.yaml", "--all", "--channel", "console", *options]))

check("--clean", "own/clean", "--quarantine", "own/bad", "--keep", "first by state")
check("--results-table", "own/results")
columns = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS)
folder = Path("own/table").absolute()
SparkSession.active().sql(f"CREATE TABLE results ({columns}) USING parquet LOCATION '{folder}'")
check("--results-table", "results")
for _ in range(2):
    check("--results-table", "./results")
print("CODE", run(["check", "own/orders.odcs.yaml", "--all", "--channel", "console"]))
"""


@pytest.fixture
def master(orders) -> Iterator[str]:
    """The address of a cluster whose executors have an empty folder `own` of their own."""
    import pyspark

    (orders / "own").mkdir()
    spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs "$0" && exec "$@"', str(orders / "own")]
    if os.geteuid():
        hidden[1:1] = ["--user", "--map-root-user"]
    if subprocess.run([*hidden, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine gives its users no mount namespaces")
    daemons_environment = os.environ | {
        "SPARK_DAEMON_JAVA_OPTS": jvm.CLUSTER,
        "SPARK_WORKER_DIR": str(orders / "work"),
    }
    options = ["--host", "127.0.0.1", "--webui-port", "0"]
    log = orders / "master.log"
    with ExitStack() as daemons, log.open("wb") as stderr:
        command = [spark_class, "org.apache.spark.deploy.master.Master", *options, "--port", "0"]
        daemons.enter_context(daemon(command, daemons_environment, stderr))
        address = None
        while address is None:
            time.sleep(0.2)
            address = re.search(r"Starting Spark master at (\S+)", log.read_text("utf-8"))
        worker = [*hidden, spark_class, "org.apache.spark.deploy.worker.Worker", *options]
        daemons.enter_context(
            daemon([*worker, "--cores", "1", "--memory", "1g", address[1]], daemons_environment, stderr)
        )
        yield address[1]


@contextmanager
def daemon(command: list[str], environment: dict[str, str], stderr: IO[bytes]) -> Iterator[None]:
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=stderr)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@pytest.mark.spark
@pytest.mark.slow
def test_rows_that_executors_write_to_their_own_disks_are_an_error_and_not_zero_rows(orders, master):
    (orders / "own" / "lake").mkdir()
    (orders / "own" / "lake" / "orders.csv").write_text((orders / "lake" / "orders.csv").read_text())
    contract = (orders / "orders.odcs.yaml").read_text()
    (orders / "own" / "orders.odcs.yaml").write_text(contract.replace("/lake,", "/own/lake,"))
    settings = f"--master {master} --conf spark.ui.enabled=false --conf spark.executor.extraJavaOptions="
    done = run(
        orders,
        *(sys.executable, "-c", ON_OTHER_DISKS),
        PYSPARK_SUBMIT_ARGS=f"{settings}'{jvm.CLUSTER}' pyspark-shell",
        PYSPARK_PYTHON=sys.executable,
    )

    written, read = done.stdout.partition("CODE 3")[::2]
    shared = "The executors of a cluster do not see the files of this machine"
    assert re.search(rf"Good rows: .* 0 of 1 rows arrived. {shared}", written), done.stdout + done.stderr
    assert re.search(rf"Quarantine: .* 0 of 2 rows arrived. {shared}", written)
    assert "CODE 3" in read
    assert re.search(rf"orders.csv.*does not exist.*{shared}", done.stderr, re.DOTALL), done.stderr
    assert re.findall(rf"results cannot be written to (\S+): 0 of 6 rows arrived. {shared}", done.stderr) == [
        "own/results",
        "results",
    ]
    assert pq.read_table(orders / "results").num_rows == 12


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_that_waits_for_machines_of_a_cluster_says_so(orders, master):
    """The only worker has less memory than an executor needs; it could also be down."""
    settings = f"--master {master} --conf spark.ui.enabled=false --conf spark.executor.memory=9g"
    process = subprocess.Popen(
        [sys.executable, "-m", "dq", "check", "orders.odcs.yaml", "--all", "--channel", "console"],
        cwd=orders,
        env=environment(PYSPARK_SUBMIT_ARGS=f"{settings} --conf spark.starvation.timeout=1s pyspark-shell"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    end = threading.Timer(600, process.kill)
    end.start()
    printed = []
    for line in process.stderr:
        printed.append(line)
        if "resources" in line:
            break
    process.kill()
    process.wait()
    end.cancel()

    assert printed[-1:] == [
        "spark: Initial job has not accepted any resources; check your cluster UI to ensure that workers are"
        " registered and have sufficient resources\n"
    ]


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
    assert report["from_statistics"] == 0
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
    counts = {"from_statistics": made.from_statistics, "passes": made.passes}
    return {**counts, "notes": made.notes, "results": results}

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
    all_levers, *without = (report["from_statistics"] for report in reports.values())
    assert (all_levers >= 4, without) == (True, [0, 0, 0])
    assert "OUTCOMES True 1 1" in done.stdout, done.stderr
