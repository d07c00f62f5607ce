"""Bad rows are set apart with the clauses that they break, and no classified value goes with them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dq.contracts.model import Contract
from dq.contracts.outcome import ReadError, UsageError
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.quarantine import Run, split, write
from dq.dataquality.request import Request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: shop\nversion: 1.0.0\n"
NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
RUN = Run("2026-01-02T030405Z", at=NOW)


def contract(schema: str) -> Contract:
    parsed = parse((HEAD + schema).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


SHOP = contract("""
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, primaryKey: true, primaryKeyPosition: 1}
      - {name: state, logicalType: string, enum: [{value: open}, {value: closed}]}
      - {name: mail, logicalType: string, required: true, classification: restricted}
      - name: buyer
        logicalType: object
        properties:
          - {name: age, logicalType: integer, classification: restricted}
          - {name: city, logicalType: string}
      - {name: customer, logicalType: integer, relationships: [{to: customers.id}]}
    quality:
      - {metric: rowCount, mustBeGreaterThan: 0}
  - name: customers
    properties:
      - {name: id, logicalType: integer}
""")
DDL = "id int, state string, mail string, buyer struct<age: int, city: string>, customer int, note string"
KEY, REQUIRED, MAIL = (
    "schema/orders/primaryKey",
    "schema/orders/properties/id/primaryKey",
    "schema/orders/properties/mail/required",
)
STATE, LINK = (
    "schema/orders/properties/state/enum",
    "schema/orders/properties/customer/relationships/customers.id",
)
ROWS = [
    (1, "open", "a@x.org", (30, "Ulm"), 7, "call eve"),
    (2, "ajar", None, (31, "Ulm"), 7, "x"),
    (3, "open", "c@x.org", None, 9, "x"),
    (4, "open", "d@x.org", (33, "Bonn"), None, "x"),
    (4, "closed", "e@x.org", (34, "Bonn"), 7, "x"),
    (None, None, "f@x.org", (35, "Bonn"), 7, None),
]
BROKEN = {
    (2, "ajar"): [STATE, MAIL],
    (3, "open"): [LINK],
    (4, "open"): [KEY],
    (4, "closed"): [KEY],
    (None, None): [REQUIRED],
}


@pytest.fixture(scope="module")
def orders(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, DDL).cache()


@pytest.fixture(scope="module")
def customers(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(7,), (None,)], "id int").cache()


def rules(frame: DataFrame) -> dict[tuple[object, object], list[str]]:
    return {(row["id"], row["state"]): row["_dq_rules"] for row in frame.collect()}


def test_each_row_is_good_or_bad_with_all_that_it_breaks(orders: DataFrame, customers: DataFrame) -> None:
    good, bad = split(Request(SHOP, orders, "orders", other_objects={"customers": customers}))

    assert good.collect() == orders.where("id = 1").collect()
    assert good.schema == orders.schema
    assert rules(bad) == BROKEN


def test_rows_without_a_fault_are_all_good(orders: DataFrame, customers: DataFrame) -> None:
    good, bad = split(Request(SHOP, orders.where("id = 1"), "orders", other_objects={"customers": customers}))

    assert (good.count(), bad.count(), bad.columns[-1]) == (1, 0, "_dq_rules")


def test_what_could_not_be_measured_leaves_nobody_knowing_what_is_good(orders: DataFrame) -> None:
    with pytest.raises(ReadError, match="no data of 'customers' was given"):
        split(Request(SHOP, orders, "orders"))


TOLERANT = contract("""
schema:
  - name: orders
    properties:
      - name: id
        logicalType: integer
        quality:
          - {metric: nullValues, mustBeLessThan: 2}
          - {metric: duplicateValues, mustBe: 0, severity: warning}
      - {name: k, logicalType: number, unique: true}
      - name: v
        logicalType: string
        required: true
        quality:
          - metric: duplicateValues
            mustBe: 0
            customProperties: [{property: scope, vendor: dq, value: {where: id < 5}}]
""")


# Of the values of v, one is NULL and four repeat one. Whether rows are shown, and whether they are bad.
BOUNDED = {
    "more NULLs are asked for": ("nullValues, mustBeGreaterThan: 3", 0, 0),
    "another number of NULLs is": ("nullValues, mustBe: 2", 0, 0),
    "a NULL too many": ("nullValues, mustBe: 0", 1, 1),
    "any number but this one": ("nullValues, mustNotBe: 1", 1, 1),
    "fewer rows than a range": ("duplicateValues, mustBeBetween: [3, 9]", 0, 0),
    "more rows than a range that has none": ("duplicateValues, mustBeBetween: [0, 1]", 2, 4),
    "more rows than a range without none": ("duplicateValues, mustBeBetween: [1, 1]", 2, 0),
    "a share that is too small": ("nullValues, unit: percent, mustBeGreaterOrEqualTo: 50", 0, 0),
    "a share that is too large": ("nullValues, unit: percent, mustBeLessThan: 5", 1, 1),
    "more invalid values are asked for": (
        "invalidValues, arguments: {validValues: [a]}, mustBeGreaterThan: 4",
        0,
        0,
    ),
}


@pytest.mark.parametrize(("rule", "shown", "bad"), BOUNDED.values(), ids=BOUNDED)
def test_only_rows_that_are_too_many_are_shown_and_bad(
    spark: SparkSession, rule: str, shown: int, bad: int
) -> None:
    made = contract(
        f"schema: [{{name: t, properties: [{{name: v, logicalType: string, quality:"
        f" [{{metric: {rule}}}]}}]}}]\n"
    )
    frame = spark.createDataFrame([("a",), ("a",), ("b",), ("b",), (None,)], "v string")

    report = check(Request(made, frame))
    _, rows = split(Request(made, frame), report)

    (failed,) = report.failed
    assert len(failed.samples) == shown
    assert rows.count() == bad


def test_what_is_tolerated_or_only_warned_of_stays_and_a_scope_is_kept(spark: SparkSession) -> None:
    nan = float("nan")
    rows = [
        (None, nan, "a"),
        (1, nan, "b"),
        (1, 0.0, "c"),
        (7, -0.0, "c"),
        (2, 2.0, "d"),
        (3, 3.0, "d"),
        (9, 4.0, "d"),
    ]
    frame = spark.createDataFrame([*rows, (8, None, "e"), (8, None, "f")], "id int, k double, v string")

    good, bad = split(Request(TOLERANT, frame))

    assert sorted(row["v"] for row in good.collect()) == ["d", "e", "f"]
    assert sorted((row["v"], len(row["_dq_rules"])) for row in bad.collect()) == [
        ("a", 1), ("b", 1), ("c", 1), ("c", 1), ("d", 1), ("d", 1),
    ]  # fmt: skip


def test_bad_rows_are_written_masked_and_the_same_run_replaces_them(
    spark: SparkSession, orders: DataFrame, customers: DataFrame, tmp_path: Path
) -> None:
    others = {"customers": customers}
    report = check(Request(SHOP, orders, "orders", other_objects=others))

    for _ in range(2):
        written = write(SHOP, orders, report, f"{tmp_path}/q", RUN, other_objects=others)

    folder = (
        tmp_path / "q" / f"_dq_run={RUN.id}" / "_dq_contract=shop" / "_dq_object=orders" / "_dq_scope=table"
    )
    assert (written.rows, written.path) == (5, str(folder))
    kept = spark.read.parquet(f"{tmp_path}/q")
    assert rules(kept) == BROKEN
    assert {row["_dq_checked_at"].isoformat() for row in kept.collect()} == {"2026-01-02T03:04:05"}
    assert {row["mail"] for row in kept.collect()} == {"***", None}
    assert {(row["buyer"], row["note"]) for row in kept.collect()} == {(None, "***"), (None, None)}
    assert (kept.first()["_dq_object"], kept.first()["_dq_run"]) == ("orders", RUN.id)
    assert {field.name: field.dataType for field in kept.schema if field.name in orders.columns} == {
        field.name: field.dataType for field in orders.schema
    }
    everything = b"".join(file.read_bytes() for file in folder.iterdir())
    assert not any(secret in everything for secret in (b"@x.org", b"eve", b"Ulm", b"Bonn"))


def test_unmasked_rows_are_whole(
    spark: SparkSession, orders: DataFrame, customers: DataFrame, tmp_path: Path
) -> None:
    others = {"customers": customers}
    report = check(Request(SHOP, orders, "orders", other_objects=others))

    written = write(SHOP, orders, report, str(tmp_path), RUN, other_objects=others, unmasked=True)

    assert written.path is not None
    kept = spark.read.parquet(written.path).select(*orders.columns)
    assert sorted(kept.collect(), key=str) == sorted(orders.where("id > 1 OR id IS NULL").collect(), key=str)


def test_nothing_is_written_when_nothing_failed(
    orders: DataFrame, customers: DataFrame, tmp_path: Path
) -> None:
    others = {"customers": customers}
    report = check(Request(SHOP, orders.where("id = 1"), "orders", other_objects=others))

    written = write(SHOP, orders.where("id = 1"), report, f"{tmp_path}/q", RUN, other_objects=others)

    assert (written.rows, written.path) == (0, None)
    assert list(tmp_path.iterdir()) == []


RECENT = contract("""
schema:
  - name: orders
    properties:
      - {name: day, logicalType: date}
      - name: state
        logicalType: string
        quality:
          - metric: invalidValues
            arguments: {validValues: [open]}
            mustBe: 0
            customProperties: [{property: scope, vendor: dq, value: {rows: window, window: 7d, time: day}}]
          - metric: duplicateValues
            mustBe: 0
            customProperties: [{property: scope, vendor: dq, value: {rows: window, window: 7d, time: day}}]
""")
_OLD, _NEW = dt.date(2020, 1, 1), dt.date(2026, 1, 1)


@pytest.fixture(scope="module")
def aged(spark: SparkSession) -> DataFrame:
    rows = [(_OLD, "lost"), (_OLD, "gone"), (_NEW, "gone"), (_NEW, "open"), (_OLD, "open"), (_NEW, "open")]
    return spark.createDataFrame(rows, "day date, state string").cache()


def test_a_row_older_than_the_window_of_a_rule_is_good(aged: DataFrame) -> None:
    report = check(Request(RECENT, aged, now=NOW))

    good, bad = split(Request(RECENT, aged), report)

    assert sorted(row["state"] for row in good.collect()) == ["gone", "lost", "open"]
    assert {row["day"] for row in good.collect()} == {_OLD}
    assert sorted((row["day"], row["state"]) for row in bad.collect()) == [
        (_NEW, "gone"), (_NEW, "open"), (_NEW, "open"),
    ]  # fmt: skip


def test_a_window_ends_with_the_time_that_split_is_told(aged: DataFrame) -> None:
    _, bad = split(Request(RECENT, aged, now=NOW))

    assert {row["day"] for row in bad.collect()} == {_NEW}
    with pytest.raises(ReadError, match=r"pass now=…"):
        split(Request(RECENT, aged))


def test_only_rows_within_the_window_are_written_apart(
    spark: SparkSession, aged: DataFrame, tmp_path: Path
) -> None:
    report = check(Request(RECENT, aged, now=NOW))

    written = write(RECENT, aged, report, str(tmp_path), RUN)

    assert written.rows == 3
    assert {row["day"] for row in spark.read.parquet(str(tmp_path)).collect()} == {_NEW}


DAILY = contract("""
schema:
  - name: flights
    properties:
      - {name: id, logicalType: integer, unique: true}
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
""")


def test_of_a_partition_those_rows_are_bad_whose_key_stands_anywhere(
    spark: SparkSession, tmp_path: Path
) -> None:
    one, two = dt.date(2026, 1, 1), dt.date(2026, 1, 2)
    frame = spark.createDataFrame([(1, one), (5, one), (5, one), (1, two), (2, two)], "id int, day date")
    partitions = [{"day": "2026-01-02"}]
    report = check(Request(DAILY, frame, partitions=partitions))

    run = Run("r/1", "day=2026-01-02", NOW)
    written = write(DAILY, frame, report, str(tmp_path), run)

    assert written.rows == 1
    (kept,) = spark.read.parquet(str(tmp_path)).collect()
    assert (kept["id"], kept["day"], kept["_dq_run"], kept["_dq_scope"]) == (1, two, "r/1", "day=2026-01-02")


def test_a_place_that_cannot_be_written_and_a_name_of_ours_are_said(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.createDataFrame([(1, "x"), (1, "x")], "id int, _dq_rules string")
    (tmp_path / "file").write_text("")
    rows = frame.select("id")
    report = check(Request(DAILY, rows))

    with pytest.raises(UsageError, match="column '_dq_rules'"):
        write(DAILY, frame, report, str(tmp_path), RUN)
    with pytest.raises(ReadError, match="cannot be written"):
        write(DAILY, rows, report, f"{tmp_path}/file/x", RUN)
