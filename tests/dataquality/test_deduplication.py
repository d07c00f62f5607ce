"""Which row of a repeated key is kept, compared with plain Python; and writing of the good rows."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dq
from dq.contracts.outcome import ReadError, UsageError
from dq.contracts.types import row_type
from dq.contracts.yaml.parse import read
from dq.dataquality.check import check
from dq.dataquality.deduplication import Precedence
from dq.dataquality.quarantine import Run, split, write, write_good_rows
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import Dataset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: pay\nversion: 1.0.0\nstatus: active\n"
PAYMENTS = f"""{HEAD}
schema:
  - name: payments
    properties:
      - {{name: id, logicalType: integer, primaryKey: true, primaryKeyPosition: 1}}
      - {{name: region, logicalType: string, primaryKey: true, primaryKeyPosition: 2}}
      - {{name: mail, logicalType: string, unique: true}}
      - {{name: updatedAt, physicalName: updated_at, logicalType: timestamp}}
      - {{name: amount, logicalType: number}}
      - {{name: tags, logicalType: map, physicalType: "map<string,string>"}}
      - {{name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}}
"""
DDL = (
    "id int, region string, mail string, updated_at timestamp, amount double,"
    " tags map<string, string>, day date"
)
PRIMARY, MAIL = "schema/payments/primaryKey", "schema/payments/properties/mail/unique"
ID, REGION = (f"schema/payments/properties/{name}/primaryKey" for name in ("id", "region"))

Row = tuple[Any, ...]


def moment(day: int) -> dt.datetime:
    return dt.datetime(2026, 1, day)  # noqa: DTZ001  # as PySpark returns instants


# The oracle: the rules of the documentation in plain Python.


def order_of(row: Row, column: int) -> tuple[tuple[bool, Any], ...]:
    return (
        next(_terms(row[column])),
        next(_terms(row[6])),
        *(term for value in row for term in _terms(value)),
    )


def _terms(value: Any) -> Iterator[tuple[bool, Any]]:
    """NULL is smaller than every value, NaN larger than every number; maps are compared as Spark's text."""
    if value is None:
        yield from ((False, ""),) * 2
    elif isinstance(value, dict):
        text = ", ".join(f"{key} -> {'null' if item is None else item}" for key, item in value.items())
        yield from ((True, f"{{{text}}}"),) * 2
    elif isinstance(value, float):
        yield True, math.inf if math.isnan(value) else value
        # -0.0 is equal to 0.0, and its text comes before.
        yield True, str(value)
    else:
        yield from ((True, value),) * 2


def oracle(rows: Sequence[Row], newest: bool, column: int) -> list[tuple[Row, list[str]]]:
    """Return each row with the clauses that it breaks."""
    broken: list[set[str]] = [set() for _ in rows]
    for clause, key in ((PRIMARY, (0, 1)), (MAIL, (2,))):
        groups: dict[Row, list[int]] = defaultdict(list)
        for index, row in enumerate(rows):
            values = tuple(row[position] for position in key)
            if None not in values:
                groups[values].append(index)
        for group in groups.values():
            choose = max if newest else min
            best = choose(group, key=lambda index: order_of(rows[index], column))
            for index in group:
                broken[index] |= {clause} - ({clause} if index == best else set())
    for index, row in enumerate(rows):
        broken[index] |= {clause for clause, value in ((ID, row[0]), (REGION, row[1])) if value is None}
    return [(row, sorted(clauses)) for row, clauses in zip(rows, broken, strict=True)]


def comparable(row: Sequence[Any], clauses: Sequence[str] = ()) -> str:
    return json.dumps([*map(str, row), *sorted(clauses)])


def random_rows(seed: int, number: int) -> list[Row]:
    """Rows in which keys, NULLs, ties and identical rows are frequent."""
    generator = random.Random(seed)
    moments = [None, *(moment(1) + dt.timedelta(microseconds=step) for step in range(3))]
    choices: tuple[Sequence[Any], ...] = (
        (None, *range(6)),
        (None, "eu", "us"),
        (None, None, *(f"{name}@x.org" for name in "abcdefgh")),
        moments,
        (None, 0.0, -0.0, 1.5, math.nan, -math.inf),
        (None, {}, {"a": "1"}, {"a": None}),
        (None, dt.date(2026, 1, 1), dt.date(2026, 1, 2)),
    )
    return [tuple(generator.choice(values) for values in choices) for _ in range(number)]


@pytest.mark.parametrize(
    ("seed", "keep"),
    [(1, "newest by updatedAt"), (2, "first by updated_at"), (3, "newest by amount"), (4, "first by day")],
)
def test_the_kept_rows_are_those_of_plain_python(spark: SparkSession, keep: str, seed: int) -> None:
    rows = random_rows(seed, 80)
    column = {"updatedAt": 3, "updated_at": 3, "amount": 4, "day": 6}[keep.split()[-1]]
    expected = oracle(rows, keep.startswith("newest"), column)
    for parts in (1, 5):
        frame = spark.createDataFrame(rows, DDL).repartition(parts)

        good, bad, report = dq.gate(frame, PAYMENTS, keep=keep)

        assert good.columns == frame.columns
        assert Counter(map(comparable, good.collect())) == Counter(
            comparable(row) for row, clauses in expected if not clauses
        )
        assert Counter(comparable(row[:-1], row["_dq_rules"]) for row in bad.collect()) == Counter(
            comparable(row, clauses) for row, clauses in expected if clauses
        )
        rechecked = dq.check(PAYMENTS, good)
        assert not [result for result in rechecked.failed if result.check in ("primary_key", "unique")]
        assert {result.check for result in report.failed} >= {"primary_key", "unique"}


def located(contract: str, folder: Path) -> Dataset:
    schema_object = read(contract).objects[0]
    return Dataset(schema_object.name, str(folder), "parquet", None, row_type(schema_object), ("day",))


def request_for(contract: str, folder: Path, spark: SparkSession, day: str | None = None) -> Request:
    partitions = [{"day": day}] if day else None
    return Request(read(contract), located(contract, folder), spark=spark, partitions=partitions)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Path:
    """Random payments as Parquet with a folder for each day."""
    folder = tmp_path / "lake" / "payments"
    frame = spark.createDataFrame(random_rows(7, 80), DDL)
    frame.repartition(3).write.partitionBy("day").parquet(str(folder))
    return folder


# Spark ranks rows in the test of plain Python, and writes folders of partitions in those below.
@pytest.mark.alike
def test_rows_of_a_partition_are_compared_with_those_of_all_partitions(
    spark: SparkSession, lake: Path, tmp_path: Path
) -> None:
    """The good rows of all days, each cleaned alone, are those of the whole table."""
    precedence = Precedence.parse("newest by updatedAt")
    days = ["2026-01-01", "2026-01-02", "__HIVE_DEFAULT_PARTITION__"]
    superseded = {}
    bad = []
    for day in days:
        request = request_for(PAYMENTS, lake, spark, day)
        report = check(request)
        cleaned = write_good_rows(request, report, f"{tmp_path}/clean", precedence)
        assert cleaned.path == f"{tmp_path}/clean/day={day}"
        superseded[day] = {dict(partition)["day"] for partition in cleaned.superseded}
        arguments = {"spark": spark, "precedence": precedence, "unmasked": True}
        quarantined = write(
            request.contract, request.data, report, f"{tmp_path}/bad", Run("1", day), **arguments
        )
        bad += [
            comparable([row[name] for name in DDL_NAMES], row["_dq_rules"])
            for row in spark.read.parquet(str(quarantined.path)).collect()
        ]

    source, clean = spark.read.parquet(str(lake)), spark.read.parquet(f"{tmp_path}/clean")
    rows = [tuple(row) for row in source.select(*DDL_NAMES).collect()]
    expected = oracle(rows, True, 3)
    assert clean.schema == source.schema
    assert Counter(map(comparable, clean.select(*DDL_NAMES).collect())) == Counter(
        comparable(row) for row, clauses in expected if not clauses
    )
    assert Counter(bad) == Counter(comparable(row, clauses) for row, clauses in expected if clauses)
    assert superseded == _superseded_days(rows, days)
    request = request_for(PAYMENTS, tmp_path / "clean", spark)
    assert not [result for result in check(request).failed if result.check in ("primary_key", "unique")]


DDL_NAMES = ["id", "region", "mail", "updated_at", "amount", "tags", "day"]


def _superseded_days(rows: Sequence[Row], days: Sequence[str]) -> dict[str, set[str]]:
    """Return for each day the other days with a row whose key is kept on this day."""
    superseded: dict[str, set[str]] = {day: set() for day in days}
    for key in ((0, 1), (2,)):
        groups: dict[Row, list[Row]] = defaultdict(list)
        for row in rows:
            if None not in (values := tuple(row[position] for position in key)):
                groups[values].append(row)
        for group in groups.values():
            kept, *others = (
                "__HIVE_DEFAULT_PARTITION__" if row[6] is None else str(row[6])
                for row in sorted(group, key=lambda row: order_of(row, 3), reverse=True)
            )
            superseded[kept] |= {*others} - {kept}
    return superseded


@pytest.mark.parametrize("keep", ["newest by updatedAt", "first by updatedAt"])
def test_a_column_of_one_partition_does_not_keep_a_row_of_each(
    spark: SparkSession, tmp_path: Path, keep: str
) -> None:
    """The rows are equal but for a column that is only in the files of one day, before `updated_at`."""
    tie = spark.createDataFrame([(1, "eu", moment(1))], "id int, region string, updated_at timestamp")
    tie.selectExpr("'b' AS added", "*").write.parquet(f"{tmp_path}/lake/day=2026-01-01")
    tie.write.parquet(f"{tmp_path}/lake/day=2026-01-02")
    contract = PAYMENTS.replace(", unique: true", "")

    for day in ("2026-01-01", "2026-01-02"):
        request = request_for(contract, tmp_path / "lake", spark, day)
        write_good_rows(request, check(request), f"{tmp_path}/clean", Precedence.parse(keep))

    clean = spark.read.option("mergeSchema", "true").parquet(f"{tmp_path}/clean").collect()
    assert [row["day"] for row in clean] == [dt.date(2026, 1, 2 if keep.startswith("newest") else 1)]


def test_the_whole_table_replaces_all_that_was_cleaned_before(
    spark: SparkSession, lake: Path, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        (tmp_path / "clean/day=1999-01-01").mkdir(parents=True)
        (tmp_path / "clean/day=1999-01-01/old.parquet").write_text("")
        request = request_for(PAYMENTS, lake, spark)
        report = check(request)
        precedence = Precedence.parse("first by updatedAt")
        for _ in range(2):
            cleaned = write_good_rows(request, report, f"{tmp_path}/clean", precedence)
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")

    good, _ = split(request, report, precedence)
    clean = spark.read.parquet(f"{tmp_path}/clean")
    assert (cleaned.rows, cleaned.path, cleaned.superseded) == (good.count(), f"{tmp_path}/clean", ())
    assert Counter(map(comparable, clean.collect())) == Counter(map(comparable, good.collect()))
    assert clean.schema == good.schema


def test_a_partition_without_good_rows_replaces_its_folder(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(None, "eu", None, None, None, None, dt.date(2026, 1, 1))]
    spark.createDataFrame(rows, DDL).write.partitionBy("day").parquet(f"{tmp_path}/lake")
    spark.createDataFrame(random_rows(1, 9), DDL).drop("day").write.parquet(
        f"{tmp_path}/clean/day=2026-01-01"
    )
    request = request_for(PAYMENTS, tmp_path / "lake", spark, "2026-01-01")

    cleaned = write_good_rows(request, check(request), f"{tmp_path}/clean")

    assert cleaned.rows == 0
    assert spark.read.parquet(f"{tmp_path}/clean").count() == 0


def test_a_partition_has_one_folder_however_its_value_is_written(spark: SparkSession, tmp_path: Path) -> None:
    contract = PAYMENTS.replace("day, logicalType: date", "day, logicalType: integer")
    rows = [(number, "eu", None, None, None, None, 1) for number in range(3)]
    ddl = DDL.replace("day date", "day int")
    spark.createDataFrame(rows, ddl).write.partitionBy("day").parquet(f"{tmp_path}/lake")

    for day in ("1", "01"):
        request = request_for(contract, tmp_path / "lake", spark, day)
        cleaned = write_good_rows(request, check(request), f"{tmp_path}/clean")

    assert cleaned.path == f"{tmp_path}/clean/day=1"
    assert spark.read.parquet(f"{tmp_path}/clean").count() == 3


def test_an_older_row_does_not_replace_one_that_breaks_another_clause(spark: SparkSession) -> None:
    contract = PAYMENTS.replace("amount, ", "amount, required: true, ")
    old, new = moment(1), moment(2)
    rows = [(1, "eu", None, old, 1.0, None, None), (1, "eu", None, new, None, None, None)]

    good, bad = dq.split(contract, spark.createDataFrame(rows, DDL), keep="newest by updated_at")

    assert good.count() == 0
    assert {row["updated_at"]: row["_dq_rules"] for row in bad.collect()} == {
        old: [PRIMARY],
        new: ["schema/payments/properties/amount/required"],
    }


def test_a_row_has_to_be_kept_for_each_of_its_keys(spark: SparkSession) -> None:
    """The first row loses its primary key to the second, which loses its mail to the third."""
    rows = [
        (1, "eu", "a@x.org", moment(1), None, None, None),
        (1, "eu", "b@x.org", moment(2), None, None, None),
        (2, "eu", "b@x.org", moment(3), None, None, None),
    ]

    good, bad = dq.split(PAYMENTS, spark.createDataFrame(rows, DDL), keep="newest by updated_at")

    assert [(row["id"], row["mail"]) for row in good.collect()] == [(2, "b@x.org")]
    assert {row["mail"]: row["_dq_rules"] for row in bad.collect()} == {
        "a@x.org": [PRIMARY],
        "b@x.org": [MAIL],
    }


NESTED = f"""{HEAD}
schema:
  - name: payments
    properties:
      - {{name: id, logicalType: integer}}
      - name: audit
        logicalType: object
        properties: [{{name: changed, logicalType: timestamp}}]
    quality:
      - metric: duplicateValues
        arguments: {{properties: [id]}}
        mustBe: 0
        customProperties: [{{property: scope, vendor: dq, value: {{where: id < 5}}}}]
"""


def test_a_rule_on_some_rows_ranks_these_rows_by_a_nested_column(spark: SparkSession) -> None:
    rows = [(1, (day,)) for day in (moment(1), moment(2), None)]
    rows += [(7, row[1]) for row in rows]
    frame = spark.createDataFrame(rows, "id int, audit struct<changed: timestamp>")

    good, _ = dq.split(NESTED, frame, keep="newest by audit.changed")

    assert sorted((row["id"], str(row["audit"]["changed"])) for row in good.collect()) == [
        (1, "2026-01-02 00:00:00"), (7, "2026-01-01 00:00:00"), (7, "2026-01-02 00:00:00"), (7, "None"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("keep", "message", "hint"),
    [
        ("latest by day", "invalid keep 'latest by day'", "'newest by COLUMN'"),
        ("newest by", "invalid keep 'newest by'", "'newest by COLUMN'"),
        ("newest by updated", "unknown column 'updated'", "Did you mean 'updatedAt'?"),
        ("newest by xyz", "unknown column 'xyz'", "Its columns: amount, day, id"),
        (
            "first by tags",
            "the column is map<string,string>, which has no order",
            "a date, timestamp or number",
        ),
    ],
)
def test_a_precedence_that_cannot_be_applied_is_refused(
    spark: SparkSession, keep: str, message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as raised:
        dq.gate(spark.createDataFrame([], DDL), PAYMENTS, keep=keep)

    assert message in raised.value.message
    assert hint in raised.value.hint


def test_a_precedence_needs_a_key_and_the_column_in_the_data(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], DDL)
    keyless = PAYMENTS.replace("primaryKey: true, ", "").replace(", unique: true", "")
    with pytest.raises(UsageError, match="no primary or unique key is checked"):
        dq.split(keyless, frame, keep="newest by day")
    with pytest.raises(UsageError, match="'updated_at' is missing"):
        dq.split(PAYMENTS, frame.drop("updated_at"), keep="newest by updated_at")
    texts = frame.drop("day").selectExpr("*", "map('a', 1) AS day")
    with pytest.raises((UsageError, ReadError), match="no order"):
        dq.split(PAYMENTS, texts, keep="newest by day")
