"""Clauses proven by what Iceberg keeps of its files: the same verdicts as a scan, or no proof."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fakes import lakehouse
from fakes.opened import open_frame
from fakes.reach import anywhere

from dq.contracts.check_result import Status
from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers import iceberg_statistics
from dq.dataquality.answers.sources import NONE, Optimization
from dq.dataquality.answers.statistics import UNKNOWN, ColumnStatistics, FileStatistics, StatisticsRequest
from dq.dataquality.check import check
from dq.dataquality.model.column import Column
from dq.dataquality.report import Report
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import Dataset, locate

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = lakehouse.MARKS
STATISTICS = frozenset({Optimization.STATISTICS})
# How much is done to a table; DQ_EXAMPLES asks for more, as it does of the random tables.
DEEDS = max(1, min(40, int(os.environ.get("DQ_EXAMPLES", "16")) // 5))

HEAD = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: '${PLACE}', format: %s}]
schema:
  - name: orders
"""
ORDERS = """
    quality: [{metric: rowCount, mustBeGreaterThan: 0}]
    properties:
      - {name: id, logicalType: integer, required: true, logicalTypeOptions: {minimum: 1, maximum: 40}}
      - name: price
        logicalType: number
        physicalType: decimal(9,2)
        logicalTypeOptions: {exclusiveMinimum: 0, maximum: 99.99}
      - {name: day, logicalType: date, required: true, partitioned: true, partitionKeyPosition: 1,
         logicalTypeOptions: {minimum: 2026-01-01}}
      - {name: at, logicalType: timestamp, logicalTypeOptions: {maximum: '2026-01-31T00:00:00Z'}}
      - {name: state, logicalType: string, required: true, enum: [{value: open}, {value: paid}]}
"""
COLUMNS = "id INT, price DECIMAL(9,2), day DATE, at TIMESTAMP, state STRING"


class Table:
    """An empty table of a format with these columns, partitioned by day unless another one is named."""

    def __init__(self, spark: SparkSession, form: str, folder: Path, columns: str = COLUMNS, by: str = "day"):
        self.spark, self.form = spark, form
        warehouse = str(spark.conf.get(f"spark.sql.catalog.{lakehouse.CATALOG}.warehouse"))
        self.name = f"{lakehouse.CATALOG}.shop.t{folder.name.replace('-', '_')}"
        self.path = f"{warehouse}/shop/{self.name.rpartition('.')[2]}"
        options = "'format-version'='2'"
        if form == "delta":
            self.path = str(folder / "table")
            self.name = f"delta.`{self.path}`"
            options = "'delta.columnMapping.mode'='name', 'delta.enableDeletionVectors'='true'"
        partitions = f"PARTITIONED BY ({by})" if by else ""
        self.sql(f"CREATE TABLE {{}} ({columns}) USING {form} {partitions} TBLPROPERTIES ({options})")

    def sql(self, statement: str) -> None:
        """Runs a statement; `{}` stands for the table."""
        self.spark.sql(statement.replace("{}", self.name))

    def insert(self, *rows: str) -> None:
        """Writes rows of a VALUES list into one file (of each partition)."""
        values = ", ".join(rows)
        self.sql("INSERT INTO {} SELECT /*+ COALESCE(1) */ * FROM VALUES [rows]".replace("[rows]", values))

    def compact(self) -> None:
        if self.form == "delta":
            self.sql("OPTIMIZE {}")
        else:
            lakehouse.compact(self.spark, self.name)

    def set(self, **properties: str) -> None:
        pairs = ", ".join(f"'{key.replace('_', '.')}'='{value}'" for key, value in properties.items())
        self.sql(f"ALTER TABLE {{}} SET TBLPROPERTIES ({pairs})")

    def dataset(self, body: str = ORDERS) -> tuple[Contract, Dataset]:
        parsed = parse((HEAD % self.form + body).encode(), "shop.odcs.yaml")
        assert parsed.contract is not None, parsed.findings
        made = parsed.contract
        return made, locate(made, made.objects[0], None, anywhere(PLACE=self.path))

    def both(self, *partitions: dict[str, str], body: str = ORDERS) -> Report:
        """The report with statistics, after it was compared with the report of a scan."""
        made, data = self.dataset(body)
        parts = partitions or None
        proven = check(Request(made, data, spark=self.spark, partitions=parts, optimizations=STATISTICS))
        scanned = check(Request(made, data, spark=self.spark, partitions=parts, optimizations=NONE))
        assert proven.results == scanned.results
        assert scanned.from_statistics == 0
        return proven

    def files(
        self, *columns: str, partitions: tuple[dict[str, str], ...] = ()
    ) -> list[FileStatistics] | None:
        """What the format's source says of these columns, such as `a` or `a.b`."""
        _, data = self.dataset()
        asked = frozenset(Column(tuple(column.split("."))) for column in columns)
        found = iceberg_statistics.files(
            open_frame(self.spark, data), data, partitions, StatisticsRequest(asked, asked)
        )
        return None if found is None else list(found)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Callable[..., Table]:
    return lambda form="iceberg", **more: Table(spark, form, tmp_path, **more)


GOOD = "(1, 1.50, DATE'2026-01-01', TIMESTAMP'2026-01-01 10:00:00.123456', 'open')"
MORE = "(2, 2.50, DATE'2026-01-02', TIMESTAMP'2026-01-02 10:00:00.123456', 'paid')"
BAD = "(99, -1, DATE'2025-12-31', TIMESTAMP'2026-02-02 00:00:00', 'lost')"


def test_what_the_log_says_proves_bounds_nulls_and_counts(table: Callable[..., Table]) -> None:
    orders = table()
    orders.insert(GOOD, MORE)

    report = orders.both()
    made, _ = orders.dataset()
    by_name = check(Request(made, orders.spark.table(orders.name), optimizations=STATISTICS))

    assert {result.status for result in report.results} == {Status.PASS}
    assert report.from_statistics >= 7
    assert by_name.from_statistics == report.from_statistics


def test_a_broken_promise_is_told_by_the_scan(table: Callable[..., Table]) -> None:
    orders = table()
    orders.insert(GOOD, BAD)

    report = orders.both()

    assert {result.property for result in report.with_status(Status.FAIL)} == {
        "id",
        "price",
        "day",
        "at",
        "state",
    }


def test_an_empty_table_is_proven_empty(table: Callable[..., Table]) -> None:
    orders = table()

    assert orders.files("id") == []
    assert [result.observed for result in orders.both().with_status(Status.FAIL)] == ["0 rows"]


def test_only_files_of_the_partitions_are_looked_at(table: Callable[..., Table]) -> None:
    orders = table()
    orders.insert(GOOD, BAD)

    report = orders.both({"day": "2026-01-01"})
    found = orders.files("id", partitions=({"day": "2026-01-01"},))

    assert {result.status for result in report.results} == {Status.PASS}
    assert report.from_statistics >= 7
    assert found is not None
    assert [(one.rows, one.is_complete) for one in found] == [(1, True)]


def test_a_file_with_rows_outside_of_the_partitions_is_not_whole(table: Callable[..., Table]) -> None:
    orders = table(by="")
    orders.insert(GOOD, MORE)

    report = orders.both({"day": "2026-01-01"})
    found = orders.files("id", partitions=({"day": "2026-01-01"},))
    other = orders.files("id", partitions=({"day": "2026-01-03"},))

    assert {result.status for result in report.results} == {Status.PASS}
    assert found is not None
    assert [(one.rows, one.is_complete) for one in found] == [(2, False)]
    assert other == []


DELETES = [
    pytest.param({"write_delete_mode": "merge-on-read"}, False, id="position deletes"),
    pytest.param(
        {"write_delete_mode": "merge-on-read", "format-version": "3"},
        False,
        id="deletion vectors",
    ),
    pytest.param({"write_delete_mode": "copy-on-write"}, True, id="copy on write"),
]


@pytest.mark.parametrize(("properties", "whole"), DELETES)
def test_deleted_rows_are_counted_by_the_scan(
    table: Callable[..., Table], properties: dict[str, str], whole: bool
) -> None:
    orders = table(by="")
    orders.set(**properties)
    orders.insert(GOOD, MORE, BAD)
    orders.sql("DELETE FROM {} WHERE id = 99")
    orders.insert(GOOD)

    report = orders.both()
    found = orders.files("id")

    assert {result.status for result in report.results} == {Status.PASS}
    assert found is not None
    kept = [(1, True), (2, True)] if whole else [(1, True), (3, False)]
    assert sorted((one.rows, one.is_complete) for one in found) == kept


EVOLVED = """
    properties:
      - {name: id, logicalType: integer, required: true, logicalTypeOptions: {maximum: 9000000000}}
      - {name: c, logicalType: integer, required: true, logicalTypeOptions: {minimum: 10, maximum: 11}}
      - {name: b, logicalType: integer, required: true, logicalTypeOptions: {maximum: 5}}
      - {name: later, logicalType: integer, required: true}
"""


def test_facts_follow_a_column_and_not_its_name(table: Callable[..., Table]) -> None:
    last = 8_000_000_000
    made = table(columns="id INT, a INT, b INT", by="")
    made.insert("(1, 10, 20)")
    for change in (
        "RENAME COLUMN a TO c",
        "DROP COLUMN b",
        "ADD COLUMN b INT",
        "ALTER COLUMN id TYPE BIGINT",
        "ADD COLUMN later INT",
    ):
        made.sql(f"ALTER TABLE {{}} {change}")
    made.insert(f"({last}, 11, 5, 7)")

    report = made.both(body=EVOLVED)
    found = made.files("id", "c", "b", "later")

    failed = {(result.property, result.observed) for result in report.with_status(Status.FAIL)}
    assert failed == {("b", "1 of 2 rows"), ("later", "1 of 2 rows")}
    assert found is not None
    least = {
        tuple(file.statistics_of(Column((name,))).least for name in ("id", "c", "b", "later"))
        for file in found
    }
    assert least == {(1, 10, None, None), (last, 11, 5, 7)}


def test_a_table_with_hidden_partitions_that_change_is_proven(table: Callable[..., Table]) -> None:
    orders = table(by="days(at), truncate(2, state)")
    orders.insert(GOOD)
    made = lakehouse.loaded(orders.spark, orders.name)
    made.updateSpec().addField("day").removeField("at_day").commit()
    orders.sql("REFRESH TABLE {}")
    orders.insert(MORE)

    whole = orders.both()
    one = orders.both({"day": "2026-01-02"})

    assert {result.status for report in (whole, one) for result in report.results} == {Status.PASS}
    assert min(whole.from_statistics, one.from_statistics) >= 7


def test_what_was_not_written_down_is_not_known(table: Callable[..., Table]) -> None:
    orders = table()
    orders.set(write_metadata_metrics_default="none")
    orders.insert(GOOD)

    report = orders.both()
    found = orders.files("id", "state")

    assert found is not None
    assert [(one.rows, one.statistics_of(Column(("id",)))) for one in found] == [(1, UNKNOWN)]
    assert {result.status for result in report.results} == {Status.PASS}


def test_only_a_table_as_it_stands_now_is_known(table: Callable[..., Table]) -> None:
    orders = table()
    orders.insert(GOOD)
    _, data = orders.dataset()
    frame = open_frame(orders.spark, data)
    nothing = StatisticsRequest()

    assert iceberg_statistics.files(frame, data, (), nothing) is not None
    assert iceberg_statistics.files(frame.where("id = 1"), data, (), nothing) is None
    assert iceberg_statistics.files(frame.unionAll(frame), data, (), nothing) is None
    assert iceberg_statistics.files(orders.spark.range(1).toDF("id"), data, (), nothing) is None


EVERY = (
    "id BIGINT, v INT, price DECIMAL(9,2), wide DECIMAL(38,4), day DATE, at TIMESTAMP, civil TIMESTAMP_NTZ, "
)
EVERY += "state STRING, place STRUCT<zip: INT, town: STRING>, share DOUBLE"
SCALARS = ("id", "v", "price", "wide", "day", "at", "civil", "state", "share", "place.zip", "place.town")
DAYS = ("2026-01-01", "2026-01-02", "0001-01-01", "9999-12-31")
LONG = "the same forty characters at the front of"


def some_rows(chance: random.Random, first: int) -> str:
    """A VALUES list of 1 to 8 random rows, each one about as likely NULL as extreme in every column."""

    def one(*texts: str) -> str:
        return chance.choice(["NULL", *texts])

    def row(number: int) -> str:
        made = [
            str(first + number),
            one(str(chance.randint(-5, 5)), "-2147483648", "2147483647"),
            one("-0.01", "0.00", "9999999.99", str(chance.randint(1, 99))),
            one("9999999999999999999999999999999999.9999", "-9999999999999999999999999999999999.9998"),
            one(*(f"DATE'{day}'" for day in DAYS)),
            one("TIMESTAMP'2026-01-01 00:00:00.123456'", "TIMESTAMP'1883-11-18 12:03:58.999999'"),
            one("TIMESTAMP_NTZ'2026-03-29 02:30:00.000001'", "TIMESTAMP_NTZ'0001-01-01 00:00:00'"),
            one("''", "'é'", f"'{LONG} a'", f"'{LONG} b'", "'\U0001f600'"),
            chance.choice(
                ["NULL", "NAMED_STRUCT('zip', NULL, 'town', 'x')", "NAMED_STRUCT('zip', 7, 'town', NULL)"]
            ),
            one("CAST('NaN' AS DOUBLE)", "-0.0D", "CAST('Infinity' AS DOUBLE)", "1.5D"),
        ]
        return f"({', '.join(made)})"

    return "VALUES " + ", ".join(row(number) for number in range(chance.randint(1, 8)))


# What can be done to a table; words in brackets are drawn each time.
STEPS = (
    "INSERT INTO {} [rows]",
    "INSERT INTO {} SELECT /*+ COALESCE(1) */ * FROM [rows]",
    "DELETE FROM {} WHERE id % 3 = [few]",
    "DELETE FROM {} WHERE day = DATE'[day]'",
    "UPDATE {} SET v = NULL, state = 'new' WHERE id % 4 = [few]",
    "MERGE INTO {} AS t USING (SELECT [id]L AS id, 5 AS v) AS s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET v = s.v, price = NULL"
    " WHEN NOT MATCHED THEN INSERT (id, v, day) VALUES (s.id, s.v, DATE'2026-01-01')",
)


def drawn(step: str, chance: random.Random) -> str:
    return (
        step.replace("[rows]", some_rows(chance, chance.randint(0, 90)))
        .replace("[few]", str(chance.randint(0, 2)))
        .replace("[day]", chance.choice(DAYS))
        .replace("[id]", str(chance.randint(0, 90)))
    )


def verify(table: Table, *scopes: list[dict[str, str]]) -> None:
    """Every fact of every file is true of the rows that Spark reads from it, in each scope of partitions, and
    what the log says without Spark is true of all.

    A scope without partitions is the whole table.
    """
    _, data = table.dataset()
    shown = [f"{name} AS `{name}`" for name in SCALARS if name not in ("at", "civil")]
    shown += ["unix_micros(at) AS at", "unix_micros(CAST(civil AS TIMESTAMP)) AS civil"]
    rows = open_frame(table.spark, data).selectExpr("input_file_name() AS file", *shown).collect()
    said = lakehouse.by_log(table.path, table.form)
    assert said.rows == len(rows) or (said.rows is None and table.form == "iceberg")
    for name, told in said.nulls.items():
        assert told in (None, sum(row[name] is None for row in rows))
    if table.form == "delta":
        # Nothing else of it is used: Spark scans the table.
        return
    for partitions in scopes:
        found = table.files(*SCALARS, partitions=tuple(partitions))
        assert found is not None
        days = {partition["day"] for partition in partitions}
        held: dict[str, list[Row]] = {}
        for row in rows:
            if not days or str(row["day"]) in days:
                held.setdefault(row["file"].rpartition("/")[2], []).append(row)
        assert set(held) <= {file.path.rpartition("/")[2] for file in found}
        for file in found:
            seen = held.get(file.path.rpartition("/")[2], [])
            assert len(seen) == file.rows if file.is_complete else len(seen) <= file.rows
            for column, facts in file.columns.items():
                holds(facts, [row[str(column)] for row in seen], whole=file.is_complete)


def holds(facts: ColumnStatistics, seen: list[object], *, whole: bool) -> None:
    values = [value for value in seen if value is not None]
    if facts.nulls is not None:
        assert not whole or len(seen) - len(values) == facts.nulls
        assert whole or facts.nulls or len(values) == len(seen)
    least, greatest = comparable(facts.least), comparable(facts.greatest)
    if values and least is not None:
        assert least <= min(values) <= max(values) <= greatest
    if facts.attained and whole:
        assert (min(values), max(values)) == (least, greatest)
    if facts.values is not None:
        assert set(values) <= {comparable(value) for value in facts.values}


def comparable(value: Any) -> Any:
    """Instants as microseconds, because Python has no years before 1 in some zones."""
    if not isinstance(value, dt.datetime):
        return value
    zone = dt.UTC if value.tzinfo else None
    return (value - dt.datetime(1970, 1, 1, tzinfo=zone)) // dt.timedelta(microseconds=1)


PROMISED = """
    quality: [{metric: rowCount, mustBeGreaterThan: 5}]
    properties:
      - {name: id, logicalType: integer, required: true, logicalTypeOptions: {minimum: 0, maximum: 99}}
      - {name: v, logicalType: integer, required: true, logicalTypeOptions: {minimum: -5}}
      - {name: price, logicalType: number, logicalTypeOptions: {minimum: 0}}
      - {name: wide, logicalType: number, logicalTypeOptions: {maximum: 1}}
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1, required: true}
      - {name: at, logicalType: timestamp, logicalTypeOptions: {minimum: '2020-01-01T00:00:00Z'}}
      - {name: state, logicalType: string, required: true, enum: [{value: new}, {value: ''}]}
      - name: place
        logicalType: object
        properties: [{name: zip, logicalType: integer, required: true, logicalTypeOptions: {minimum: 7}}]
"""


def test_a_delta_table_is_scanned_without_a_note(table: Callable[..., Table]) -> None:
    orders = table("delta")
    orders.insert(GOOD, BAD)

    report = orders.both()
    made, _ = orders.dataset()
    by_name = check(Request(made, orders.spark.table(orders.name), optimizations=STATISTICS))

    assert (report.from_statistics, by_name.from_statistics, report.notes, by_name.notes) == (0, 0, (), ())
    assert by_name.results == report.results


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("form", ["iceberg", "delta"])
def test_every_fact_is_true_of_the_rows_whatever_was_done_to_the_table(
    table: Callable[..., Table], form: str, seed: int
) -> None:
    chance = random.Random(f"{form}{seed}")
    made = table(form=form, columns=EVERY, by="day" if seed % 2 else "")
    if form == "iceberg" and chance.random() < 0.7:
        made.set(
            **dict.fromkeys(("write_delete_mode", "write_update_mode", "write_merge_mode"), "merge-on-read")
        )

    for _ in range(2):
        made.sql(drawn(STEPS[1], chance))
    for _ in range(DEEDS):
        made.sql(drawn(chance.choice(STEPS), chance))
        verify(made, [], [{"day": "2026-01-01"}, {"day": "9999-12-31"}])
    made.both(body=PROMISED)
    made.both({"day": "2026-01-01"}, body=PROMISED)
    made.compact()
    verify(made, [])
    made.both(body=PROMISED)
