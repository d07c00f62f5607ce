"""Hashes of Parquet files in Python tasks: the same verdicts as Spark's, or none."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dq.contracts.types import DataType, parse
from dq.dataquality.reconcile.arrow_hashes import UncertainValue, row_hashes, spark_hashes
from dq.dataquality.reconcile.columns import Terms, pair_columns
from dq.dataquality.reconcile.compare import (
    Options,
    Side,
    partition_columns,
    reconcile,
    schema_of_side,
)
from dq.dataquality.reconcile.outcome import Kind, Reconciliation
from dq.dataquality.reconcile.parquet_sums import Grouping, parquet_side, sums_in_tasks
from dq.dataquality.spark.dataset import Dataset, files_of, open_table

pytestmark = pytest.mark.spark

NEVER = 1 << 60
VALUES: dict[str, tuple[Any, ...]] = {
    "boolean": (True, False),
    "int": (0, 1, -1, 2**31 - 1),
    "bigint": (0, 1, -1, 2**63 - 1, -(2**63)),
    "decimal(5,2)": (Decimal("0.00"), Decimal("-1.50"), Decimal("999.99")),
    "decimal(30,4)": (Decimal("0.0000"), Decimal("-1.5000"), Decimal("12345678901234567890123456.7891")),
    "float": (0.0, -0.0, 1.5, float("nan")),
    "double": (0.0, -0.0, 0.1, float("nan"), 1e300),
    "string": ("", "a", "a ", "\u00fc", "x" * 31, "x" * 32, "12345678" * 9 + "abc", "long " * 100),
    "binary": (b"", b"\0", b"\0\0", b"abc"),
    "date": (dt.date(1970, 1, 1), dt.date(2026, 3, 29), dt.date(1900, 1, 1)),
    "timestamp": (
        dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
        dt.datetime(2026, 3, 29, 1, 0, 0, 1, tzinfo=dt.UTC),
    ),
    "timestamp_ntz": (
        dt.datetime.fromisoformat("1970-01-01"),
        dt.datetime.fromisoformat("2026-03-29 01:00:00.000001"),
    ),
}
KEYS = ("int", "bigint", "string", "date", "timestamp", "decimal(5,2)", "boolean", "double")
# A type that has the same values on the other side.
WIDER = {"int": "bigint", "decimal(5,2)": "decimal(30,4)", "bigint": "decimal(30,4)"}


def arrow(values: Sequence[Any], kind: str) -> pa.Array:
    types = {
        "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"), "boolean": pa.bool_(),
        "int": pa.int32(), "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64(),
        "date": pa.date32(),
    }  # fmt: skip
    parsed = parse(kind)
    if parsed.name == "decimal":
        return pa.array(values, pa.decimal128(*parsed.numbers))
    return pa.array(values, types.get(kind) or pa.type_for_alias(kind))


def test_hashes_of_keys_are_those_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(1)
    kinds = [kind for kind in VALUES if kind != "decimal(30,4)"]
    columns = {
        f"c{number}": arrow([chance.choice((None, *VALUES[kind])) for _ in range(300)], kind)
        for number, kind in enumerate(kinds)
    }
    columns["c_text"] = pa.array([chance.choice("ab\u20ac") * chance.randrange(70) for _ in range(300)])
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path)).coalesce(1)
    forms = [parse(kind) for kind in [*kinds, "string"]]

    for names in (*([name] for name in columns), list(columns), list(reversed(columns))):
        masks = " | ".join(f"IF({name} IS NULL, {1 << bit}L, 0L)" for bit, name in enumerate(names))
        chosen = [forms[list(columns).index(name)] for name in names]
        normal = [
            f"CAST({name} AS BIGINT)" if form.name == "int" else
            f"(CAST({name} AS DOUBLE) + 0.0D)" if form.name in ("float", "double") else name
            for name, form in zip(names, chosen, strict=True)
        ]  # fmt: skip
        rows = frame.selectExpr(f"xxhash64({masks}, {', '.join(normal)}) AS hash").collect()
        as_compared = [DataType("bigint") if form.name == "int" else form for form in chosen]
        for begin in (0, 7):
            arrays = [columns[name].slice(begin) for name in names]
            assert spark_hashes(arrays, as_compared).view("int64").tolist() == [
                row.hash for row in rows[begin:]
            ], names


def test_rows_have_equal_hashes_exactly_if_they_are_equal() -> None:
    chance = random.Random(2)
    for kind, values in VALUES.items():
        rows = [(chance.choice((None, *values)), chance.choice((None, *values))) for _ in range(400)]
        arrays = [arrow([row[place] for row in rows], kind) for place in (0, 1)]
        hashes = row_hashes(arrays, [parse(kind)] * 2).tolist()
        # -0.0 is 0.0, and any NaN is NaN.
        texts = [repr(tuple(0.0 if value == 0 and kind in ("float", "double") else value for value in row))
                 for row in rows]  # fmt: skip
        assert len(set(zip(texts, hashes, strict=True))) == len(set(texts)) == len(set(hashes)), kind


def test_a_dictionary_of_texts_has_the_hashes_of_its_texts() -> None:
    texts = pa.array(["a", None, "bc", "a", "", "x" * 300] * 3)
    form = [DataType("string")]

    assert row_hashes([texts.dictionary_encode()], form).tolist() == row_hashes([texts], form).tolist()
    assert spark_hashes([texts.dictionary_encode()], form).tolist() == spark_hashes([texts], form).tolist()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([dt.date(2026, 1, 1), dt.date(1582, 10, 4)]),
        pa.array([dt.datetime(1899, 12, 31, 23, tzinfo=dt.UTC)], pa.timestamp("ms", "UTC")),
    ],
)
def test_old_dates_are_left_to_spark(column: pa.Array) -> None:
    form = [DataType("date" if pa.types.is_date(column.type) else "timestamp")]
    with pytest.raises(UncertainValue):
        row_hashes([column], form)
    assert len(row_hashes([pa.array([None], column.type)], form)) == 1


def side(spark: SparkSession, path: Path) -> Side:
    dataset = Dataset("rows", str(path), "parquet", None, DataType("struct"), ())
    dataset = replace(dataset, partitions=tuple(field.name for field in files_of(spark, dataset)[1]))
    return Side(path.name, open_table(spark, dataset), dataset)


def in_tasks(spark: SparkSession, sides: Sequence[Side], terms: Terms) -> bool:
    """Whether Python tasks read both sides."""
    pairing = pair_columns(*map(schema_of_side, sides), terms)
    partitioned_by = partition_columns(*sides)
    files = [parquet_side(side.frame, side.dataset, (), partitioned_by) for side in sides if side.dataset]
    known = [side for side in files if side is not None]
    return len(known) == 2 and (
        sums_in_tasks(
            known, pairing.columns, pairing.key, pairing.named(partitioned_by), Grouping(64, 24, 31)
        )
        is not None
    )


def compared(sides: Sequence[Side], terms: Terms, tasks_from: int, **options: Any) -> Reconciliation:
    return reconcile(*sides, terms, Options(partition_columns(*sides), tasks_from=tasks_from, **options))


def summary(result: Reconciliation) -> tuple[object, ...]:
    parts = [(str(part.partition), part.agrees, part.left_rows, part.right_rows, part.reason)
             for part in result.partitions]  # fmt: skip
    return dict(result.counts), result.columns, parts, result.swapped


def write(
    spark: SparkSession, rows: Sequence[Sequence[Any]], kinds: Sequence[str], path: Path, by: str
) -> None:
    names = [f"c{number}" for number in range(len(kinds))]
    columns = [arrow([row[number] for row in rows], kind) for number, kind in enumerate(kinds)]
    path.mkdir()
    pq.write_table(pa.table(dict(zip(names, columns, strict=True))), path / "arrow.parquet")
    frame = spark.read.parquet(str(path / "arrow.parquet"))
    writer = frame.repartition(2).write
    (writer.partitionBy(by) if by else writer).mode("overwrite").parquet(str(path / "table"))


@pytest.mark.parametrize("seed", range(4))
def test_random_tables_have_the_same_result_from_tasks_and_from_spark(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    keys = chance.sample(KEYS, chance.choice((1, 2)))
    kinds = [*keys, *chance.choices(list(VALUES), k=chance.randint(1, 4)), "string", "date"]
    rows = [[chance.choice((None, *VALUES[kind])) for kind in kinds] for _ in range(60)]
    # Keys are seldom repeated: a number of the row beside them.
    kinds, rows = ["bigint", *kinds], [[number, *row] for number, row in enumerate(rows)]
    other = [list(row) for row in rows]
    for _ in range(chance.choice((0, 1, 4))):
        row, column = chance.randrange(len(other)), chance.randrange(len(kinds))
        other[row][column] = chance.choice((None, *VALUES[kinds[column]]))
    if chance.random() < 0.5:
        other.append(chance.choice(other))
        other.pop(chance.randrange(len(other)))
    # Tasks compute no hashes of keys with more than 18 digits.
    other_kinds = [
        WIDER.get(kind, kind) if chance.random() < 0.3 and place > len(keys) else kind
        for place, kind in enumerate(kinds)
    ]
    by = chance.choice(("", f"c{len(kinds) - 1}", f"c{len(kinds) - 2}"))
    if by and kinds[int(by[1:])] == "string":
        # Spark writes a partition of an empty text as NULL, and a file system has no long names.
        for row in (*rows, *other):
            row[int(by[1:])] = (row[int(by[1:])] or "")[:100] or None
    chance.shuffle(other)
    write(spark, rows, kinds, tmp_path / "a", by)
    write(spark, other, other_kinds, tmp_path / "b", by)
    sides = [side(spark, tmp_path / name / "table") for name in ("a", "b")]
    terms = Terms(key=tuple(f"c{number}" for number in range(len(keys) + 1)))

    results = [compared(sides, terms, tasks_from) for tasks_from in (0, NEVER)]

    assert in_tasks(spark, sides, terms), f"seed {seed}: {kinds} and {other_kinds}, by {by}"
    assert summary(results[0]) == summary(results[1]), f"seed {seed}: {kinds} and {other_kinds}, by {by}"


@pytest.fixture
def orders(spark: SparkSession, tmp_path: Path) -> list[Side]:
    """Two tables by day; on the second of three days, one amount differs."""
    frame = spark.range(300).selectExpr(
        "id", "id * 2 AS amount", "concat('note ', id % 7) AS note",
        "date_add(DATE'2026-11-01', CAST(id % 3 AS INT)) AS day",
    )  # fmt: skip
    frame.write.partitionBy("day").parquet(str(tmp_path / "left"))
    changed = frame.withColumn("amount", frame.amount + (frame.id == 4).cast("long"))
    changed.repartition(3).write.partitionBy("day").parquet(str(tmp_path / "right"))
    return [side(spark, tmp_path / name) for name in ("left", "right")]


def test_partitions_are_named_counted_and_selected(spark: SparkSession, orders: list[Side]) -> None:
    terms = Terms(key=("id",))
    assert in_tasks(spark, orders, terms)

    result = compared(orders, terms, 0)
    scoped = compared(orders, terms, 0, partitions=({"day": "2026-11-01"}, {"day": "2026-11-03"}))
    no_details = compared(orders, terms, 0, details=False)

    assert [(str(part.partition), part.agrees, part.left_rows) for part in result.partitions] == [
        ("(('day', '2026-11-01'),)", True, 100),
        ("(('day', '2026-11-02'),)", False, 100),
        ("(('day', '2026-11-03'),)", True, 100),
    ]
    assert result.counts[Kind.CHANGED] == 1
    assert (scoped.agrees, len(scoped.partitions)) == (True, 2)
    assert [part.agrees for part in no_details.partitions] == [True, False, True]


def test_equal_sides_take_one_job_of_spark(spark: SparkSession, orders: list[Side]) -> None:
    context = spark.sparkContext
    context.setJobGroup("sums in tasks", "sums in tasks")
    left = orders[0]
    path = Path(str(left.dataset.path if left.dataset else ""))
    left.frame.repartition(2).write.partitionBy("day").mode("overwrite").parquet(str(path.parent / "copy"))
    copy = side(spark, path.parent / "copy")
    before = len(context.statusTracker().getJobIdsForGroup("sums in tasks"))

    result = compared([left, copy], Terms(key=("id",)), 0)

    assert result.agrees
    assert len(context.statusTracker().getJobIdsForGroup("sums in tasks")) == before + 1


def test_files_that_spark_may_read_otherwise_are_left_to_it(spark: SparkSession, tmp_path: Path) -> None:
    ids = pa.array([1, 2])
    tables = {
        "old dates": pa.table({"id": ids, "day": [dt.date(1500, 1, 1), dt.date(2026, 1, 1)]}),
        "nested": pa.table({"id": ids, "day": pa.array([[1], [2]])}),
        "unsigned": pa.table({"id": ids, "day": pa.array([1, 2], pa.uint32())}),
        "plain": pa.table({"id": ids, "day": pa.array([1, 2], pa.int32())}),
    }
    for name, table in tables.items():
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "part.parquet")
    late = tmp_path / "a column less in a file"
    late.mkdir()
    pq.write_table(tables["plain"], late / "a.parquet")
    pq.write_table(tables["plain"].select(["id"]), late / "b.parquet")

    for name in (*tables, late.name):
        sides = [side(spark, tmp_path / name)] * 2
        assert in_tasks(spark, sides, Terms(key=("id",))) is (name == "plain"), name
        assert compared(sides, Terms(key=("id",)), 0).agrees
    assert not in_tasks(spark, [side(spark, tmp_path / "plain")] * 2, Terms())


def test_a_cached_frame_is_read_by_spark(spark: SparkSession, orders: list[Side]) -> None:
    cached = replace(orders[0], frame=orders[0].frame.cache())
    try:
        assert not in_tasks(spark, [cached, orders[1]], Terms(key=("id",)))
    finally:
        cached.frame.unpersist()
