"""Two sides that should agree: every planted difference is named, none is invented, and what it costs.

Planted: cells, rows, repeated keys, swapped columns, an empty text for NULL, rounding, a shifted zone, a cut
text, other order, a reordered map, a late partition, a renamed column. Counts of whole rows are compared with
DuckDB's `EXCEPT ALL`. Costs are CPU seconds as a ratio to a count of the same columns on both sides, to a
full outer join by hand, and to datacompy on Spark. Random pairs of tables have the verdict of counting their
rows in Python.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from _report import arguments, finish
from spark import environments, machine

import dq
from dq.dataquality.reconcile.outcome import Kind, Reconciliation
from dq.operations.runtime.context import runtime_context
from dq.operations.runtime.spark import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS, QUICK_ROWS = 18_000_000, 1_000_000
PEER_ROWS = 2_000_000
PLANTED, QUICK_PLANTED = 10_000_000, 100_000
GROWTH = 60_000_000
RUNS = 4
PAIRS, QUICK_PAIRS = 1_000, 2
COLUMNS = (
    "id", "customer", "amount", "price", "item", "note", "at", "day", "flag", "store", "score", "region",
    "net", "gross", "tags",
)  # fmt: skip
ORDERS = """
    SELECT id, id % 100003 AS customer, CAST(rand(1) * 100000 AS DECIMAL(12,2)) + 0.55 AS amount,
        rand(2) * 1000 AS price, concat('name of item ', id % 5000) AS item,
        IF(id % 10 = 0, NULL, concat('note ', id % 1000003)) AS note,
        timestamp_seconds(1700000000 + id) AS at,
        date_add(DATE'2026-11-01', CAST(id % 10 AS INT)) AS day, id % 7 = 0 AS flag,
        CAST(id % 1000 AS INT) AS store, rand(5) AS score, concat('eu-', id % 12) AS region, id * 2 AS net,
        id * 3 AS gross{tags}
    FROM range({rows})
"""
# Column -> its planted changes, by the last digits of the id.
CHANGES = {
    "amount": "CAST(CASE id WHEN 1011 THEN round(amount, 1) WHEN 1012 THEN amount + 3 ELSE amount END"
    " AS DECIMAL(13,2))",
    "item": "CASE id WHEN 1021 THEN 'name of' ELSE item END",
    "note": "CASE id WHEN 1030 THEN '' ELSE note END",
    "at": "CASE id WHEN 1041 THEN at + INTERVAL 1 HOUR ELSE at END",
    "net": "CASE id WHEN 1051 THEN gross ELSE net END",
    "gross": "CASE id WHEN 1051 THEN net ELSE gross END",
    "tags": "map_from_entries(reverse(map_entries(tags)))",
}
EXPECTED = {
    "amount": (2, {"rounded": 1}),
    "item": (1, {"truncated on the right": 1}),
    "note": (1, {"empty instead of NULL": 1}),
    "at": (1, {"shifted by a zone's offset": 1}),
    "net": (1, {}),
    "gross": (1, {}),
}
TYPES = {
    "INT": ("0", "1", "2", "3"),
    "DECIMAL(20,4)": ("0", "1.5", "-1.5", "1.5001"),
    "DOUBLE": ("0D", "-0D", "CAST('NaN' AS DOUBLE)", "0.1D"),
    "STRING": ("''", "'a'", "'a '", "'\u00fc'"),
    "DATE": ("DATE'1970-01-01'", "DATE'2026-03-29'"),
    "TIMESTAMP": ("TIMESTAMP'1970-01-01 00:00:00 UTC'", "TIMESTAMP'2026-03-29 01:00:00.000001 UTC'"),
    "ARRAY<INT>": ("array()", "array(1)", "array(NULL)", "array(1, NULL)", "array(NULL, 1)"),
    "MAP<STRING,INT>": (
        "map()",
        "map('a', 1)",
        "map('a', NULL)",
        "map('a', 1, 'b', 2)",
        "map('b', 2, 'a', 1)",
    ),
}
# Spellings of one value.
SAME = {"-0D": "0D", "map('b', 2, 'a', 1)": "map('a', 1, 'b', 2)"}


def main() -> int:
    args = arguments(__doc__ or "", seed="number of the first random pair (default: 0)")
    metrics: dict[str, float] = {}
    for name in ("tools",) if args.quick else ("tools", "datacompy"):
        environments.python(name, _work())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        spark = session(runtime_context(None, [Path()]))
        spark.sparkContext.setLogLevel("OFF")
        metrics |= _planted(spark, QUICK_PLANTED if args.quick else PLANTED)
        metrics |= _costs(spark, QUICK_ROWS if args.quick else ROWS, grows=not args.quick)
        pairs, first = QUICK_PAIRS if args.quick else PAIRS, args.seed or 0
        wrong = [seed for seed in range(first, first + pairs) if not _pair_is_right(spark, seed)]
        print(f"wrong pairs: {wrong}" if wrong else "", end="", file=sys.stderr)
        metrics |= {"random pairs": float(pairs), "random pairs with another verdict": float(len(wrong))}
        spark.stop()
    goals = {
        "planted differences not named or invented": ("<", 1.0),
        "rows that DuckDB counts otherwise": ("<", 1.0),
        "random pairs with another verdict": ("<", 1.0),
        "equal sides / count": ("<", 1.5),
        "0.01 % differ / count": ("<", 2.5),
        "same files / count": ("<", 0.5),
    }
    if not args.quick:
        goals |= {
            "full outer join / equal sides": (">", 5.0),
            "datacompy / equal sides": (">", 5.0),
            "growth by rows": ("<", 1.1),
        }
    return finish(metrics, goals, args)


def _planted(spark: SparkSession, rows: int) -> dict[str, float]:
    """Compare a table with one that differs in every planted way, by key and as whole rows."""
    left = spark.sql(ORDERS.format(rows=rows, tags=", map('a', id, 'b', 2) AS tags"))
    left.write.partitionBy("day").parquet("planted-left")
    left = spark.read.parquet("planted-left")
    changed = left.selectExpr(
        *(f"{CHANGES[name]} AS {name}" if name in CHANGES else name for name in COLUMNS)
    )
    right = changed.where("id NOT IN (1061, 1062)").unionByName(changed.where("id = 1071"))
    right = right.unionByName(changed.where("id = 1081").selectExpr("*").withColumn("id", changed.id * -1))
    late = "2026-11-10"
    right.where(f"day <> '{late}'").repartition(5).write.partitionBy("day").parquet("planted-right")
    late_rows = left.where(f"day = '{late}'").count()
    keyed = dq.reconcile("planted-left", "planted-right", key=["id"], spark=spark)
    renamed = dq.reconcile(left, changed.withColumnRenamed("region", "area"), key=["id"], spark=spark)
    problems = _problems(keyed, late_rows)
    if [column.name for column in renamed.uncompared] != ["region", "area"]:
        problems.append(f"renamed: {renamed.uncompared}")
    if not dq.reconcile(left, left.repartition(7), key=["id"], spark=spark).agrees:
        problems.append("rows in another order differ")
    for problem in problems:
        print(f"  {problem}", file=sys.stderr)
    result = dq.reconcile("planted-left", "planted-right", ignore=["tags"], spark=spark)
    counted = _counted_by_duckdb()
    other = abs(result.counts[Kind.MISSING] - counted[0]) + abs(result.counts[Kind.EXTRA] - counted[1])
    print(f"  whole rows: {dict(result.counts)}, DuckDB: {counted}", file=sys.stderr)
    return {
        "rows with planted differences": float(rows),
        "planted differences not named or invented": float(len(problems)),
        "rows that DuckDB counts otherwise": float(other),
    }


def _problems(result: Reconciliation, late_rows: int) -> list[str]:
    """Return what differs from the planted differences."""
    columns = {
        column.name: (column.differing, dict(column.patterns))
        for column in result.columns
        if column.differing
    }
    # Rows that were planted into the late partition are part of it.
    expected = {Kind.MISSING: late_rows + 2, Kind.EXTRA: 1, Kind.CHANGED: 6, Kind.REPEATED: 2}
    comparisons = {
        "columns": (columns, EXPECTED),
        "kinds": (dict(result.counts), expected),
        "swapped": (result.swapped, (("net", "gross", 1),)),
        "not compared": (result.uncompared, ()),
        "late partition": (
            [str(part) for part in result.partitions if part.decision == "one side"],
            ["day=2026-11-10"],
        ),
    }
    return [
        f"{name}: {observed} and not {expected}"
        for name, (observed, expected) in comparisons.items()
        if observed != expected
    ]


def _counted_by_duckdb() -> tuple[int, int]:
    """Return the rows that only one side has, by DuckDB."""
    names = ", ".join(f'"{name}"' for name in COLUMNS if name != "tags")
    sides = [
        f"SELECT {names} FROM read_parquet('planted-{side}/*/*.parquet', hive_partitioning = true)"
        for side in ("left", "right")
    ]
    # DuckDB shows its progress on the same stream.
    queries = [
        f"SELECT count(*) FROM ({side} EXCEPT ALL {other})" for side, other in (sides, reversed(sides))
    ]
    code = f"import duckdb\nfor query in {queries!r}: print('rows', duckdb.sql(query).fetchall()[0][0])"
    python = environments.python("tools", _work())
    ran = subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True)
    counts = [line.split()[-1] for line in ran.stdout.splitlines() if "rows " in line]
    return int(counts[0]), int(counts[1])


def _costs(spark: SparkSession, rows: int, *, grows: bool) -> dict[str, float]:
    """Return CPU seconds as ratios to a count of the same columns on both sides."""
    _write(spark, rows, "left", "same", "other")
    seconds = _usual_cpu(
        {
            "count": lambda: _count(spark, "left", "same"),
            "equal sides": lambda: _expect(spark, "left", "same", 0),
            "whole rows": lambda: _expect(spark, "left", "same", 0, key=False),
            "0.01 % differ": lambda: _expect(spark, "left", "other", rows // 10_000),
            "same files": lambda: _expect(spark, "left", "left", 0),
            "one key in 90 % of the rows": lambda: _by_skewed_key(spark, 0, "-1"),
            "one key in 90 % of the rows, which differs": lambda: _by_skewed_key(spark, rows // 10 * 9, "-1"),
            "NULL as key in 90 % of the rows": lambda: _by_skewed_key(spark, 0, "NULL"),
            "full outer join": lambda: _join(spark, "left", "same"),
        }
    )
    count, equal, join = seconds.pop("count"), seconds["equal sides"], seconds.pop("full outer join")
    metrics = {"rows": float(rows), "count, CPU s": count}
    metrics |= {f"{name} / count": spent / count for name, spent in seconds.items()}
    metrics["full outer join / equal sides"] = join / equal
    if grows:
        _write(spark, PEER_ROWS, "few", "few-same")
        few_seconds = _usual_cpu({"few": lambda: _expect(spark, "few", "few-same", 0)})["few"]
        metrics["datacompy / equal sides"] = _by_datacompy("few", "few-same") / few_seconds
        _write(spark, GROWTH, "large", "large-same")
        large = _cpu(lambda: _expect(spark, "large", "large-same", 0))
        metrics["growth by rows"] = large / equal / (GROWTH / rows)
    return metrics


def _write(spark: SparkSession, rows: int, left: str, same: str, other: str = "") -> None:
    spark.sql(ORDERS.format(rows=rows, tags="")).write.parquet(left)
    frame = spark.read.parquet(left)
    frame.repartition(7).write.parquet(same)
    if other:
        changed = "CAST(IF(id % 10000 = 77, amount + 1, amount) AS DECIMAL(13,2)) AS amount"
        names = [changed if name == "amount" else name for name in frame.columns]
        frame.repartition(7).selectExpr(*names).write.parquet(other)


def _count(spark: SparkSession, *names: str) -> None:
    for name in names:
        frame = spark.read.parquet(name)
        frame.selectExpr(*(f"count({column})" for column in frame.columns)).collect()


def _expect(spark: SparkSession, left: str, right: str, changed: int, *, key: bool = True) -> None:
    result = dq.reconcile(left, right, key=["id"] if key else [], spark=spark)
    if (result.agrees, result.counts[Kind.CHANGED]) != (not changed, changed):
        raise SystemExit(f"{left} and {right}: {dict(result.counts)}, and {changed} rows were changed")


def _by_skewed_key(spark: SparkSession, repeated: int, value: str) -> None:
    """Compare sides in which 90 % of the rows have the same key, among them rows that differ or none."""
    left, right = (
        spark.read.parquet(name).selectExpr("*", f"IF(id % 10 = 3, id, {value}) AS key").drop("id")
        for name in ("left", "other" if repeated else "same")
    )
    result = dq.reconcile(left, right, key=["key"], spark=spark)
    if (result.agrees, result.counts[Kind.REPEATED]) != (not repeated, repeated):
        raise SystemExit(f"one key in 90 % of the rows: {dict(result.counts)}, and {repeated} are repeated")


def _by_datacompy(*names: str) -> float:
    """Return the CPU seconds of datacompy, which runs in a process of its own."""
    # It keeps both tables and what it derives from them in memory.
    settings = {
        "spark.driver.memory": "8g",
        "spark.sql.shuffle.partitions": "8",
    }
    python = environments.python("datacompy", _work())
    words = [python, Path(__file__).with_name("_datacompy.py"), *names, "id", json.dumps(settings)]
    # Spark tells its children how to reach its own JVM, and where they find modules.
    own = ("PYSPARK_", "PYTHON", "SPARK_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    ran = subprocess.run(list(map(str, words)), check=True, stdout=subprocess.PIPE, text=True, env=env)
    answer = json.loads(ran.stdout.splitlines()[-1])
    if "Number of rows with some compared columns unequal: 0" not in answer["report"]:
        raise SystemExit(f"datacompy reports other rows:\n{answer['report'][:2000]}")
    return float(answer["seconds"])


def _work() -> Path:
    """Return the folder with the environments of other tools."""
    return (Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "dq-bench").expanduser()


def _join(spark: SparkSession, *names: str) -> None:
    left, right = (spark.read.parquet(name) for name in names)
    differs = " OR ".join(f"NOT (l.{name} <=> r.{name})" for name in left.columns)
    left.alias("l").join(right.alias("r"), on=_same_id(left, right), how="full_outer").where(differs).count()


def _same_id(left: DataFrame, right: DataFrame) -> object:
    return left.id.eqNullSafe(right.id)


def _usual_cpu(works: Mapping[str, Callable[[], None]]) -> dict[str, float]:
    """Return the CPU seconds of several runs, which take turns: the lower of the two in the middle.

    In the first ones the JVM compiles, which takes longer than a scan of a million rows; and the seconds of a
    process that ended while they were read are missing.
    """
    spent = [{name: _cpu(work) for name, work in works.items()} for _ in range(RUNS)]
    for name in works:
        print(f"  {name}: {', '.join(f'{run[name]:.1f}' for run in spent)} CPU s", file=sys.stderr)
    return {name: statistics.median_low(run[name] for run in spent) for name in works}


def _cpu(work: Callable[[], None]) -> float:
    before = machine.cpu_seconds()
    work()
    return machine.cpu_seconds() - before


def _pair_is_right(spark: SparkSession, seed: int) -> bool:
    """Compare two random tables, one a shuffled copy of the other with a few changes, with counting rows."""
    chance = random.Random(seed)
    types = chance.choices(list(TYPES), k=chance.randint(1, 6))
    rows = [
        [chance.choice(("NULL", *TYPES[kind])) for kind in types] for _ in range(chance.choice((1, 5, 40)))
    ]
    other = [list(row) for row in rows]
    for _ in range(chance.choice((0, 0, 1, 3))):
        column = chance.randrange(len(types))
        chance.choice(other)[column] = chance.choice(("NULL", *TYPES[types[column]]))
    if chance.random() < 0.3:
        other.append(chance.choice(other))
    chance.shuffle(other)
    names = ", ".join(f"c{number}" for number in range(len(types)))
    frames = [
        spark.sql(f"VALUES {', '.join(_cells(row, types) for row in table)} AS t({names})")
        for table in (rows, other)
    ]
    left, right = (
        Counter(tuple(SAME.get(value, value) for value in row) for row in table) for table in (rows, other)
    )
    counts = dq.reconcile(*frames, spark=spark).counts
    return (counts[Kind.MISSING], counts[Kind.EXTRA]) == ((left - right).total(), (right - left).total())


def _cells(row: list[str], types: list[str]) -> str:
    return f"({', '.join(f'CAST({value} AS {kind})' for value, kind in zip(row, types, strict=True))})"


if __name__ == "__main__":
    sys.exit(main())
