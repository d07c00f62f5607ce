"""Many small tables in one run: seconds and Spark jobs for each, and the verdicts beside those by Spark.

A registry of contracts, each with a Parquet table of up to some thousand rows: dimensions, events with floats
and instants, keys of two columns; one table of twenty breaks its contract, and one of fifty has a rule that
only Spark can test. `dq check` tests them all in one application, and a sample of them once more with
`--scan`, by Spark alone: every result has to be the same. Beside it, a loop by hand reads the same contracts
with PyYAML and the same tables with pyarrow, and tests nothing.

Then one partition of 72 rows of a table by day, of a sound day and of one that breaks the contract, by a
process of its own, without Java.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
import os
import random
import resource
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from _cost import PACKAGES, cpu_seconds, in_turns, read_plainly
from _report import arguments, finish
from spark import machine

from dq.cli.main import run
from dq.operations.runtime.context import runtime_context
from dq.operations.runtime.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES, QUICK_TABLES, SCANNED, QUICK_SCANNED = 2_000, 120, 100, 24
BROKEN, BY_SPARK = 20, 50
IMPORTS = f"{PACKAGES}; import sqlalchemy, pyarrow.parquet, pyarrow.compute"
DAYS, DAY_ROWS, TURNS, QUICK_TURNS = 30, 72, 7, 3
NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
HEAD = """\
apiVersion: v3.2.0
kind: DataContract
id: {name}
version: 1.0.0
status: active
servers: [{{server: lake, type: local, path: lake/{name}, format: parquet}}]
schema:
  - name: {name}
    quality:
      - {{id: enough, metric: rowCount, mustBeGreaterThan: 0}}
{more}    properties:
      - {{name: id, logicalType: integer, physicalType: bigint, primaryKey: true, primaryKeyPosition: 1}}
      - {{name: part, logicalType: integer, physicalType: int, primaryKey: true, primaryKeyPosition: 2}}
      - {{name: state, logicalType: string, required: true, enum: [{{value: open}}, {{value: paid}}]}}
      - {{name: code, logicalType: string, unique: true, logicalTypeOptions: {{minLength: 3, maxLength: 9}}}}
      - {{name: mail, logicalType: string, logicalTypeOptions: {{format: email}}}}
      - {{name: price, logicalType: number, physicalType: 'decimal(9,2)', logicalTypeOptions: {{minimum: 0}}}}
      - name: share
        logicalType: number
        physicalType: double
        logicalTypeOptions: {{minimum: 0, maximum: 1}}
      - {{name: day, logicalType: date, required: true, logicalTypeOptions: {{minimum: '2020-01-01'}}}}
      - {{name: at, logicalType: timestamp, required: true}}
slaProperties:
  - {{property: latency, value: 2, unit: d, element: {name}.at}}
"""
SQL = "      - {type: sql, query: 'SELECT count(*) FROM ${object} WHERE price > 1e6', mustBe: 0}\n"


def main() -> int:
    args = arguments(__doc__ or "", tables=f"how many, by default {TABLES}")
    tables = args.tables or (QUICK_TABLES if args.quick else TABLES)
    scanned = QUICK_SCANNED if args.quick else SCANNED
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as days:
        scopes = {"sound": f"day={_deliver_days(Path(days))}", "broken": "day=2026-11-02"}
        os.chdir(days)
        # Before there is a session here: it sets variables that say that Spark is set up.
        commands = {name: _without_java("days.odcs.yaml", "--partition", day) for name, day in scopes.items()}
        partitions = in_turns(
            {**commands, "imports": [sys.executable, "-c", IMPORTS]}, QUICK_TURNS if args.quick else TURNS
        )
        os.chdir(folder)
        os.environ["DQ_STORE_URL"] = "sqlite:///store.db"
        for number in range(tables):
            _deliver(Path(folder), number)
        begun = time.monotonic()
        spark = session(runtime_context(None, [Path()]))
        started = time.monotonic() - begun
        _check(spark, "t0000.odcs.yaml")
        begun, cpu, before = time.monotonic(), machine.cpu_seconds(), _jobs(spark)
        batch_results = _check(spark, ".", "--all")
        seconds, cpu, jobs = time.monotonic() - begun, machine.cpu_seconds() - cpu, _jobs(spark) - before
        # Every kind of table is among the first.
        names = [f"t{number:04d}.odcs.yaml" for number in range(min(scanned, tables))]
        begun, before = time.monotonic(), _jobs(spark)
        scan_results = _check(spark, *names, "--scan")
        scan_seconds, scan_jobs = time.monotonic() - begun, _jobs(spark) - before
        _deliver_days(Path(folder))
        by_scope = {
            " ".join(words): [
                _check(spark, "days.odcs.yaml", *words, *options) for options in ((), ("--scan",))
            ]
            for words in (["--all"], *(["--partition", day] for day in scopes.values()))
        }
        spark.stop()
        by_hand = cpu_seconds(lambda: _read_by_hand(Path(folder)))
    differing = [name for name, results in scan_results.items() if batch_results[name] != results]
    for scope, (results, by_spark) in by_scope.items():
        if results != by_spark:
            differing.append(scope)
            print(f"  {scope}: {results} is {by_spark} by Spark", file=sys.stderr)
    for name in (name for name in differing[:5] if name in scan_results):
        print(f"  {name}: {batch_results[name]} is {scan_results[name]} by Spark", file=sys.stderr)
    metrics = {
        "tables": float(len(batch_results)),
        "the session, s": started,
        "all of them, s": seconds,
        "s per table": seconds / tables,
        "by hand, CPU s per table": by_hand / tables,
        "CPU of a table / by hand": cpu / by_hand,
        "CPU s per table": cpu / tables,
        "Spark jobs per table": jobs / tables,
        "peak memory of Python, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "with --scan, s per table": scan_seconds / len(scan_results),
        "with --scan, Spark jobs per table": scan_jobs / len(scan_results),
        "a sound partition without Java, CPU s": partitions["sound"].cpu,
        "a broken partition without Java, CPU s": partitions["broken"].cpu,
        "a sound partition / what it imports of others": partitions["sound"].cpu / partitions["imports"].cpu,
        "a broken partition / what it imports of others": partitions["broken"].cpu
        / partitions["imports"].cpu,
        "compared with --scan": float(len(scan_results) + len(by_scope)),
        "other verdicts": float(len(differing)),
        "broken among the compared": float(sum("fail" in str(results) for results in scan_results.values())),
    }
    goals = {
        # Few tables do not make up for what the JVM compiles first.
        "CPU of a table / by hand": ("<", 60.0 if args.quick else 25.0),
        "Spark jobs per table": ("<", 0.2),
        # 1.5 CPU seconds on a machine where the imports take 0.6.
        "a sound partition / what it imports of others": ("<", 2.5),
        "a broken partition / what it imports of others": ("<", 2.5),
        "other verdicts": ("<", 1.0),
    }
    return finish(metrics, goals, args)


def _read_by_hand(folder: Path) -> None:
    """Reads all contracts and all rows."""
    read_plainly(folder.glob("*.odcs.yaml"))
    for table in (folder / "lake").iterdir():
        pq.read_table(table)


def _deliver(folder: Path, number: int) -> None:
    name, chance = f"t{number:04d}", random.Random(number)
    rules = SQL if number % BY_SPARK == BY_SPARK - 1 else ""
    (folder / f"{name}.odcs.yaml").write_text(HEAD.format(name=name, more=rules), "utf-8")
    rows = chance.choice((10, 200, 1_000, 3_000))
    table = _rows(rows, chance, broken=number % BROKEN == BROKEN - 1)
    (folder / "lake" / name).mkdir(parents=True)
    cut = rows // chance.choice((1, 2, 3)) or 1
    for part, at in enumerate(range(0, rows, cut)):
        pq.write_table(table.slice(at, cut), folder / "lake" / name / f"part-{part}.parquet")


def _deliver_days(folder: Path) -> dt.date:
    """Writes a table by day, and gives the last one; the last row of the second breaks the contract."""
    head = HEAD.replace(
        "{{name: day, logicalType: date,", "{{name: day, logicalType: date, partitioned: true,"
    )
    (folder / "days.odcs.yaml").write_text(head.format(name="days", more=""), "utf-8")
    day = dt.date(2026, 11, 1)
    table = _rows(DAYS * DAY_ROWS, random.Random(0), broken=False).drop_columns(["day"])
    for number in range(DAYS):
        day = dt.date(2026, 11, 1) + dt.timedelta(days=number)
        rows = table.slice(number * DAY_ROWS, DAY_ROWS)
        if number == 1:
            states = pa.array([*rows["state"].to_pylist()[:-1], "lost"])
            rows = rows.set_column(rows.column_names.index("state"), "state", states)
        place = folder / "lake" / "days" / f"day={day}"
        place.mkdir(parents=True)
        pq.write_table(rows, place / "part-0.parquet")
    return day


def _without_java(*words: str) -> list[str]:
    """A check in a process that has no Java, and may find failures."""
    line = [str(Path(sys.executable).with_name("dq")), "check", *words, "--as-of", NOW.isoformat()]
    script = '"$@" --channel console >/dev/null 2>&1 || [ $? -eq 1 ]'
    return [
        "env",
        "JAVA_HOME=/nowhere",
        "DQ_STORE_URL=sqlite:///partitions.db",
        "sh",
        "-c",
        script,
        "sh",
        *line,
    ]


def _rows(rows: int, chance: random.Random, *, broken: bool) -> pa.Table:
    numbers = range(rows)
    share = [None if chance.random() < 0.1 else chance.random() for _ in numbers]
    code: list[str | None] = [f"c{number:05d}" for number in numbers]
    state = [chance.choice(("open", "paid")) for _ in numbers]
    if broken:
        fault = chance.choice(("share", "code", "state"))
        if fault == "share":
            share[-1] = float("nan")
        elif fault == "code":
            code[-1] = code[0]
        else:
            state[-1] = "lost"
    columns: dict[str, Any] = {
        "id": pa.array([number // 2 for number in numbers], pa.int64()),
        "part": pa.array([number % 2 for number in numbers], pa.int32()),
        "state": pa.array(state),
        "code": pa.array(code),
        "mail": pa.array([f"m{number}@example.org" for number in numbers]),
        "price": pa.array(
            [Decimal(chance.randrange(10**6)).scaleb(-2) for _ in numbers], pa.decimal128(9, 2)
        ),
        "share": pa.array(share, pa.float64()),
        "day": pa.array([dt.date(2026, 11, 1)] * rows),
        "at": pa.array([NOW - dt.timedelta(hours=1, seconds=n) for n in numbers], pa.timestamp("us", "UTC")),
    }
    return pa.table(columns)


def _check(spark: SparkSession, *words: str) -> dict[str, Any]:
    """The results that `dq check` prints of each contract, without their cost."""
    spark.sparkContext.setLogLevel("OFF")
    line = ["check", *words, "--as-of", NOW.isoformat(), "--channel", "console", "--format", "json"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        code = run(line)
    if code not in (0, 1):
        raise SystemExit(f"dq check ended with {code}: {printed.getvalue()[:2000]}")
    return {report["contract"]: report["results"] for report in json.loads(printed.getvalue())}


def _jobs(spark: SparkSession) -> int:
    """Number of jobs that the application has begun."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().nextJobId())


if __name__ == "__main__":
    sys.exit(main())
