"""dq check begins Spark for the first table that needs it, and never where this process answers all."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dq.operations.runtime.spark import is_stock_spark

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {name}
version: 1.0.0
status: active
servers: [{{server: lake, type: local, path: lake/{name}, format: {form}}}]
schema:
  - name: {name}
    quality:
      - {{metric: rowCount, mustBeGreaterThan: 2}}
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint, required: true, unique: true}}
      - {{name: state, logicalType: string, enum: [{{value: open}}, {{value: paid}}]}}
"""
CSV = "id,state\n1,open\n1,lost\n"
# Each command line in one process: its exit code, and the groups of Spark's jobs and their pools until then.
SEVERAL = """
import json, sys
from dq.cli.main import run
for line in json.loads(sys.argv[1]):
    code = run(line)
    from pyspark import SparkContext
    context = SparkContext._active_spark_context
    groups = [name for name in "abcd" if context.statusTracker().getJobIdsForGroup(f"dq check {name}/{name}")]
    pools = context._jsc.sc().getAllPools()
    print(json.dumps([code, groups, [pools.apply(at).name() for at in range(pools.size())]]), file=sys.stderr)
"""


def table(folder: Path, name: str, form: str = "parquet", states: tuple[str, ...] = ("open",) * 3) -> None:
    lake = folder / "lake" / name
    lake.mkdir(parents=True)
    (folder / f"{name}.odcs.yaml").write_text(CONTRACT.format(name=name, form=form))
    if form == "csv":
        (lake / "part.csv").write_text(CSV)
    else:
        pq.write_table(pa.table({"id": range(len(states)), "state": states}), lake / "part.parquet")


def child(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A process whose Spark nobody has set up: of the options of its JVM only those that save time."""
    kept = {
        name: text for name, text in os.environ.items() if not name.startswith(("DQ_", "SPARK_", "SLACK_"))
    }
    options = shlex.split(os.environ.get("SPARK_SUBMIT_OPTS", ""))
    kept["SPARK_SUBMIT_OPTS"] = shlex.join(word for word in options if not word.startswith("-Dspark."))
    return subprocess.run(
        [sys.executable, "-c", *command],
        cwd=folder,
        env=kept | variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def dq(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return child(folder, "from dq.cli.main import main; main()", *arguments, **variables)


def test_small_tables_need_no_java_and_what_needs_it_says_so_of_itself(tmp_path):
    table(tmp_path, "a")
    table(tmp_path, "b")
    table(tmp_path, "c", "csv")
    without = {"JAVA_HOME": "/nowhere"}

    kept = dq(tmp_path, "check", "a.odcs.yaml", "--quarantine", "bad", "--channel", "console", **without)
    told = dq(tmp_path, "check", "--format", "json", "--channel", "console", **without)
    status = dq(tmp_path, "status", "--format", "json")

    assert (kept.returncode, " pass, in 1 pass" in kept.stdout, "no rows to write" in kept.stdout) == (
        0,
        True,
        True,
    )
    assert told.returncode == 2, told.stderr
    by_object = {report["object"]: report for report in json.loads(told.stdout)}
    assert [by_object[name]["error"] for name in "ab"] == [None, None]
    assert {result["status"] for name in "ab" for result in by_object[name]["results"]} == {"pass"}
    assert by_object["c"]["error"].startswith("Spark needs Java 17, but JAVA_HOME=/nowhere has no bin/java.")
    assert told.stderr.count("c/c: Spark needs Java 17") == 1
    assert {line["contract"] for line in json.loads(status.stdout)["checks"]} == {"a", "b"}


def test_one_small_partition_needs_neither_java_nor_pandas(tmp_path):
    """pandas alone takes 0.4 s of CPU to import."""
    table(tmp_path, "a")
    for day in ("2026-01-01", "2026-01-02"):
        folder = tmp_path / "lake" / "a" / f"day={day}"
        folder.mkdir()
        pq.write_table(pa.table({"id": [1, 2, 3], "state": ["open"] * 3}), folder / "part.parquet")
    (tmp_path / "lake" / "a" / "part.parquet").unlink()
    partitioned = "      - {name: day, logicalType: date, partitioned: true, primaryKey: true}\n"
    contract = CONTRACT.format(name="a", form="parquet").replace("unique: true", "primaryKey: true")
    (tmp_path / "a.odcs.yaml").write_text(contract + partitioned)
    script = (
        "import sys; from dq.cli.main import run; code = run(sys.argv[1:])\n"
        "print([name for name in ('pandas', 'pyspark') if name in sys.modules]); sys.exit(code)"
    )

    told = child(
        tmp_path, script, "check", "a.odcs.yaml", "--partition", "day=2026-01-02", JAVA_HOME="/nowhere"
    )

    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[-1] == "[]"


def test_keys_need_no_numpy(tmp_path):
    """As with Arrow alone, which does not bring it."""
    table(tmp_path, "a")
    table(tmp_path, "b")
    # Keys that ascend are different without a look at each.
    pq.write_table(pa.table({"id": [3, 1, 2], "state": ["open"] * 3}), tmp_path / "lake/a/part.parquet")
    pq.write_table(pa.table({"id": [3, 1, 3], "state": ["open"] * 3}), tmp_path / "lake/b/part.parquet")
    bare = "import sys; sys.modules['numpy'] = None; from dq.cli.main import main; main()"

    told = child(tmp_path, bare, "check", "--format", "json", "--channel", "console", JAVA_HOME="/nowhere")

    assert told.returncode == 1, told.stderr
    failed = {
        report["object"]: [result["check"] for result in report["results"] if result["status"] != "pass"]
        for report in json.loads(told.stdout)
    }
    assert failed == {"a": [], "b": ["unique"]}


@pytest.mark.spark
def test_spark_is_begun_half_way_with_the_results_of_a_scan(tmp_path):
    table(tmp_path, "a")
    table(tmp_path, "b", states=("open", "lost", "paid"))
    table(tmp_path, "c", "csv")
    table(tmp_path, "d")
    lines = [
        ["check", "--format", "json", "--channel", "console", "--parallel", "2", *more]
        for more in ((), ("--scan",))
    ]

    ran = child(tmp_path, SEVERAL, json.dumps(lines))

    first, second = (json.loads(line) for line in ran.stderr.splitlines() if line.startswith("[1"))
    decoder = json.JSONDecoder()
    told, end = decoder.raw_decode(ran.stdout)
    scanned, _ = decoder.raw_decode(ran.stdout[end:].lstrip())
    # The failing row of b is in memory, too.
    assert (first[:2], second[:2]) == ([1, ["c"]], [1, ["a", "b", "c", "d"]])
    assert {"dq-1", "dq-2"} & set(first[2])
    assert _verdicts(told) == _verdicts(scanned)
    assert [report["object"] for report in told] == ["a", "b", "c", "d"]


def _verdicts(reports: list[dict[str, Any]]) -> list[object]:
    """What was found, wherever."""
    return [
        (report["object"], report["error"], [{**one, "answered_by": None} for one in report["results"]])
        for report in reports
    ]


@pytest.mark.parametrize(
    ("environment", "known"),
    [
        ({}, True),
        ({"SPARK_LOCAL_DIRS": "/tmp", "PYSPARK_PYTHON": "python3", "HADOOP_HOME": "/opt/hadoop"}, True),
        ({"SPARK_SUBMIT_OPTS": "-Xmx2g -XX:+UseSerialGC"}, True),
        ({"SPARK_AUTH_SOCKET_TIMEOUT": "15", "SPARK_BUFFER_SIZE": "65536"}, True),
        ({"SPARK_SUBMIT_OPTS": "-Xmx2g -Dspark.sql.caseSensitive=true"}, False),
        ({"JAVA_TOOL_OPTIONS": '"-Dspark.sql.files.ignoreCorruptFiles=true"'}, False),
        ({"JDK_JAVA_OPTIONS": "@/etc/java.options"}, False),
        ({"PYSPARK_SUBMIT_ARGS": "--conf spark.sql.caseSensitive=true pyspark-shell"}, False),
        ({"SPARK_CONF_DIR": "/etc/spark"}, False),
        ({"HADOOP_CONF_DIR": "/etc/hadoop"}, False),
        ({"SPARK_REMOTE": "sc://spark"}, False),
        ({"MASTER": "yarn"}, False),
        ({"PYSPARK_GATEWAY_PORT": "1"}, False),
        ({"SPARK_OF_A_LATER_RELEASE": "1"}, False),
    ],
)
def test_who_may_have_set_spark_up_has_it_asked(environment, known):
    assert is_stock_spark(environment) is known


@pytest.mark.parametrize("name", ["spark-defaults.conf", "spark-env.sh", "core-site.xml"])
def test_a_folder_of_settings_beside_spark_has_it_asked(tmp_path, name):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / f"{name}.template").touch()
    home = {"SPARK_HOME": str(tmp_path)}
    before = is_stock_spark(home)

    (tmp_path / "conf" / name).touch()

    assert (before, is_stock_spark(home)) == (True, False)


ALONE = """\
import os, sys
import dq
report = dq.check("p.odcs.yaml", partitions=[{"day": "2026-05-02"}] if "day" in sys.argv else None)
print(report.verdict, report.rows, "pyspark" in sys.modules)
"""


@pytest.mark.parametrize("partition", [(), ("day",)])
def test_from_python_a_small_table_or_partition_is_checked_without_a_jvm(tmp_path, partition):
    column = "      - {name: day, logicalType: date, partitioned: true}\n" if partition else ""
    (tmp_path / "p.odcs.yaml").write_text(CONTRACT.format(name="p", form="parquet") + column)
    folder = tmp_path / "lake" / "p" / ("day=2026-05-02" if partition else "")
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": range(3), "state": ["open"] * 3}), folder / "part.parquet")

    done = child(tmp_path, ALONE, *partition, JAVA_HOME="/nowhere")

    assert done.stdout == "passed 3 False\n", done.stderr


def test_without_spark_the_clauses_that_need_it_are_named(tmp_path):
    options = "logicalTypeOptions: {pattern: '^[a-z]+$'}"
    text = CONTRACT.format(name="p", form="parquet").replace(
        "logicalType: string", f"logicalType: string, {options}"
    )
    assert options in text
    (tmp_path / "p.odcs.yaml").write_text(text)
    (tmp_path / "lake/p").mkdir(parents=True)
    pq.write_table(pa.table({"id": range(3), "state": ["open"] * 3}), tmp_path / "lake/p/part.parquet")

    done = child(tmp_path, ALONE, JAVA_HOME="/nowhere")

    assert (
        "Spark needs Java 17, but JAVA_HOME=/nowhere has no bin/java. It is needed for state pattern."
        in done.stderr
    )
