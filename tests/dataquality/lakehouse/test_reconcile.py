"""All kinds of differences are named, and no other, whatever the formats of the two sides are."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes import lakehouse

import dq
from dq.dataquality.reconcile.outcome import Kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = lakehouse.MARKS

ORDERS = """
    SELECT id, date_add(DATE'2026-11-01', CAST(id % 5 AS INT)) AS day, concat('name of ', id) AS item,
        IF(id % 10 = 0, NULL, concat('note ', id)) AS note, CAST(id + 0.55 AS DECIMAL(12,2)) AS amount,
        id / 8 AS score, timestamp_seconds(1700000000 + id) AS at, id * 2 AS net, id * 3 AS gross,
        map('a', id, 'b', 2L) AS tags
    FROM range(80)
"""
# Column -> its planted changes by id.
CHANGES = {
    "amount": "CASE id WHEN 11 THEN round(amount, 1) WHEN 12 THEN amount + 3 ELSE amount END",
    "item": "CASE id WHEN 21 THEN 'name' ELSE item END",
    "note": "CASE id WHEN 30 THEN '' ELSE note END",
    "at": "CASE id WHEN 41 THEN at + INTERVAL 1 HOUR ELSE at END",
    "net": "CASE id WHEN 51 THEN gross ELSE net END",
    "gross": "CASE id WHEN 51 THEN net ELSE gross END",
    "tags": "map('b', 2L, 'a', id)",
}
PATTERNS = {
    "amount": (2, {"rounded": 1}),
    "item": (1, {"truncated on the right": 1}),
    "note": (1, {"empty instead of NULL": 1}),
    "at": (1, {"shifted by a zone's offset": 1}),
    "net": (1, {}),
    "gross": (1, {}),
}
LATE = "2026-11-05"


def _sides(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Return the orders, and the same with every kind of difference, in another order."""
    left = spark.sql(ORDERS)
    right = left.selectExpr(*(f"{CHANGES.get(name, name)} AS {name}" for name in left.columns))
    extra = right.where("id = 62").withColumn("id", -right.id)
    changed = [right.where(f"id NOT IN (57, 58) AND day <> '{LATE}'"), right.where("id = 61"), extra]
    return left, reduce(lambda rows, more: rows.unionByName(more), changed).orderBy("item")


def _write(frame: DataFrame, form: str, folder: Path) -> str:
    """Write a side in a format; return it as `dq reconcile` takes it."""
    writer = frame.coalesce(1).write.partitionBy("day")
    if form == "iceberg":
        name = f"{lakehouse.CATALOG}.reconcile.{folder.parent.name}_{folder.name}".replace("-", "_")
        frame.coalesce(1).sortWithinPartitions("day").writeTo(name).partitionedBy(frame.day).create()
        home = frame.sparkSession.conf.get(f"spark.sql.catalog.{lakehouse.CATALOG}.warehouse")
        return f"{home}/{name.removeprefix(lakehouse.CATALOG + '.').replace('.', '/')}"
    if form == "csv":
        # RFC 4180 knows no NULL: an unquoted empty field is one.
        writer.options(header=True, emptyValue='""', nullValue="").csv(str(folder))
    else:
        writer.format(form).save(str(folder))
    return f"{form}:{folder}"


@pytest.mark.parametrize(
    "forms",
    [
        ("parquet", "iceberg"),
        ("iceberg", "delta"),
        # `cli/test_reconcile.py` compares texts on each Spark.
        pytest.param(("delta", "csv"), marks=pytest.mark.alike),
        pytest.param(("csv", "parquet"), marks=pytest.mark.alike),
    ],
    ids="-".join,
)
def test_planted_differences_are_named_and_no_other(
    spark: SparkSession, tmp_path: Path, forms: tuple[str, str]
) -> None:
    frames = _sides(spark)
    if "csv" in forms:
        frames = frames[0].drop("tags"), frames[1].drop("tags")
    sides = [
        _write(frame, form, tmp_path / side)
        for frame, form, side in zip(frames, forms, ("left", "right"), strict=True)
    ]

    result = dq.reconcile(*sides, key=["id"], spark=spark)

    columns = [column for column in result.columns if column.differing]
    assert {column.name: (column.differing, dict(column.patterns)) for column in columns} == PATTERNS
    late = frames[0].where(f"day = '{LATE}'").count()
    assert dict(result.counts) == {Kind.MISSING: late + 2, Kind.EXTRA: 1, Kind.CHANGED: 6, Kind.REPEATED: 2}
    assert (result.swapped, result.uncompared) == ((("net", "gross", 1),), ())
    by_partition = {str(part): dict(part.differences) for part in result.partitions}
    assert by_partition[f"day={LATE}"] == {Kind.MISSING: late}


@pytest.mark.parametrize("form", ["iceberg", "delta", "csv"])
def test_the_same_rows_agree_in_every_format(spark: SparkSession, tmp_path: Path, form: str) -> None:
    frame = spark.sql(ORDERS).drop(*["tags"] if form == "csv" else [])
    sides = [_write(frame, "parquet", tmp_path / "left"), _write(frame, form, tmp_path / "right")]

    result = dq.reconcile(*sides, key=["id"], spark=spark)

    assert (result.agrees, result.uncompared) == (True, ()), result.columns
