"""Clauses proven by what Parquet files say of themselves: the same verdicts as a scan, or no proof."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.reach import anywhere

from dq.contracts.check_result import Status
from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.sources import NONE, Optimization
from dq.dataquality.check import check
from dq.dataquality.report import Report
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
STATISTICS = frozenset({Optimization.STATISTICS})

HEAD = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: '${LAKE}', format: parquet}]
schema:
  - name: orders
"""


def contract(body: str) -> Contract:
    parsed = parse((HEAD + body).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


def of_column(column: str) -> Contract:
    return contract(f"    properties: [{{name: v, {column}}}]\n")


def both(spark: SparkSession, promised: Contract, lake: Path, *partitions: dict[str, str]) -> Report:
    """The report with statistics, after it was compared with the report of a scan."""
    data = locate(promised, promised.objects[0], None, anywhere(LAKE=str(lake)))
    parts = partitions or None
    proven = check(Request(promised, data, spark=spark, partitions=parts, optimizations=STATISTICS))
    scanned = check(Request(promised, data, spark=spark, partitions=parts, optimizations=NONE))
    assert proven.results == scanned.results
    assert scanned.from_statistics == 0
    return proven


def write(lake: Path, *tables: pa.Table, **options: Any) -> Path:
    lake.mkdir(exist_ok=True)
    for number, table in enumerate(tables):
        pq.write_table(table, lake / f"part-{number}.parquet", **options)
    return lake


ORDERS = contract("""
    quality: [{metric: rowCount, mustBeGreaterThan: 0}]
    properties:
      - {name: id, logicalType: integer, required: true, logicalTypeOptions: {minimum: 1, maximum: 9}}
      - name: price
        logicalType: number
        physicalType: decimal(9,2)
        logicalTypeOptions: {exclusiveMinimum: 0}
      - {name: day, logicalType: date, required: true, logicalTypeOptions: {minimum: 2026-01-01}}
      - name: state
        logicalType: string
        required: true
        enum: [{value: open}, {value: paid}]
        logicalTypeOptions: {pattern: '^[a-z]+$', maxLength: 4}
""")
_DAY = dt.date(2026, 5, 1)
# Spark gives a dictionary up that is not smaller than the values.
ROWS = 50 * [(1, Decimal("0.50"), _DAY, "open"), (9, None, _DAY, "paid"), (5, Decimal("7.00"), _DAY, "open")]
DDL = "id bigint, price decimal(9,2), day date, state string"


def test_healthy_data_is_proven_without_a_pass(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame(ROWS, DDL).repartition(2).write.parquet(str(tmp_path / "lake"))

    report = both(spark, ORDERS, tmp_path / "lake")

    assert {result.status for result in report.results} == {Status.PASS}
    # The four columns' presence is told by the schema alone.
    assert (report.passes, report.from_statistics, len(report.results)) == (0, 11, 16)
    assert Counter(one.answered_by for one in report.results) == {"statistics": 11, "schema": 5}


def test_only_what_is_not_proven_is_read(spark: SparkSession, tmp_path: Path) -> None:
    rows = [*ROWS, (0, Decimal("1.00"), _DAY, "lost")]
    spark.createDataFrame(rows, DDL).write.parquet(str(tmp_path / "lake"))

    report = both(spark, ORDERS, tmp_path / "lake")

    broken = {(result.property, result.check) for result in report.with_status(Status.FAIL)}
    assert broken == {("id", "bounds"), ("state", "enum")}
    assert (report.passes, report.from_statistics) == (1, 9)
    assert {one.property for one in report.results if one.answered_by == "scan"} == {"id", "state"}
    assert Counter(one.answered_by for one in report.results) == {"statistics": 9, "schema": 5, "scan": 2}


def test_partitions_are_proven_by_their_own_files(spark: SparkSession, tmp_path: Path) -> None:
    promised = contract("""
    quality: [{metric: rowCount, mustBe: 2}]
    properties:
      - {name: hour, logicalType: integer, partitioned: true, partitionKeyPosition: 1, required: true}
      - {name: v, logicalType: integer, required: true, logicalTypeOptions: {minimum: 0}}
    """)
    rows = [(1, 5), (1, 6), (2, -1), (2, None), (2, 7)]
    lake = tmp_path / "lake"
    spark.createDataFrame(rows, "hour int, v int").write.partitionBy("hour").parquet(str(lake))
    # The same hour under another spelling: Spark reads both for hour = 1.
    (lake / "hour=01").mkdir()

    good = both(spark, promised, lake, {"hour": "1"})
    bad = both(spark, promised, lake, {"hour": "2"}, {"hour": "1"})
    spelt = write(lake / "hour=01", pa.table({"v": pa.array([-3], pa.int32())})).parent
    more = both(spark, promised, spelt, {"hour": "1"})

    assert (good.passes, good.from_statistics, len(good.failed)) == (0, 4, 0)
    assert {(one.property, one.check) for one in bad.failed} == {
        ("", "row_count"),
        ("v", "required"),
        ("v", "bounds"),
    }
    assert {(one.property, one.check) for one in more.failed} == {("", "row_count"), ("v", "bounds")}


Tables = Callable[[], tuple[pa.Table, ...]]


def _of(kind: pa.DataType, *columns: list[Any]) -> tuple[pa.Table, ...]:
    return tuple(pa.table({"v": pa.array(values, kind)}) for values in columns)


_NAN = float("nan")
_LONG = "x" * 200
_MINIMUM = "logicalTypeOptions: {minimum: 0}"
# What the column promises, the files, how they are written, and how many clauses are proven.
CASES: dict[str, tuple[str, tuple[pa.Table, ...], dict[str, Any], int]] = {
    "integers": (f"logicalType: integer, {_MINIMUM}", _of(pa.int64(), [1, 2], [3]), {}, 1),
    "an integer below": (f"logicalType: integer, {_MINIMUM}", _of(pa.int64(), [1, 2], [-3]), {}, 0),
    "one file without statistics": (
        f"logicalType: integer, {_MINIMUM}",
        _of(pa.int64(), [1], [2]),
        {"write_statistics": False},
        0,
    ),
    "NULLs only": (f"logicalType: integer, {_MINIMUM}", _of(pa.int64(), [None], [None, 1]), {}, 1),
    "no rows": (f"logicalType: integer, {_MINIMUM}, required: true", _of(pa.int64(), []), {}, 2),
    "NaN, which statistics leave out": (
        f"logicalType: number, {_MINIMUM}",
        _of(pa.float64(), [1.0, _NAN]),
        {},
        0,
    ),
    "NaN is no NULL": ("logicalType: number, required: true", _of(pa.float64(), [1.0, _NAN]), {}, 1),
    "an integer type that Spark widens": (
        f"logicalType: integer, {_MINIMUM}",
        (*_of(pa.int64(), [1]), *_of(pa.int32(), [1])),
        {},
        0,
    ),
    "unsigned": (f"logicalType: integer, {_MINIMUM}", _of(pa.uint32(), [2**31 + 5]), {}, 0),
    "decimals as integers": (
        f"logicalType: number, physicalType: 'decimal(9,2)', {_MINIMUM}",
        _of(pa.decimal128(9, 2), [Decimal("0.00"), Decimal("9.99")]),
        {"store_decimal_as_integer": True},
        1,
    ),
    "decimals as bytes": (
        f"logicalType: number, physicalType: 'decimal(9,2)', {_MINIMUM}",
        _of(pa.decimal128(9, 2), [Decimal("-1.00"), Decimal("9.99")]),
        {},
        0,
    ),
    "dates": (
        "logicalType: date, logicalTypeOptions: {minimum: 1950-01-01}",
        _of(pa.date32(), [_DAY]),
        {},
        1,
    ),
    "dates of an uncertain calendar": (
        "logicalType: date, logicalTypeOptions: {maximum: 2100-01-01}",
        _of(pa.date32(), [dt.date(1500, 1, 1)]),
        {},
        0,
    ),
    "dates that Python cannot hold": (
        "logicalType: date, logicalTypeOptions: {maximum: 2100-01-01}",
        _of(pa.date32(), [2**31 - 1]),
        {},
        0,
    ),
    "instants": (
        "logicalType: timestamp, logicalTypeOptions: {minimum: 2026-01-01T00:00:00Z}",
        _of(pa.timestamp("us", tz="UTC"), [dt.datetime(2026, 1, 1, tzinfo=dt.UTC)]),
        {},
        1,
    ),
    "instants of old writers": (
        "logicalType: timestamp, logicalTypeOptions: {minimum: 2026-01-01T00:00:00Z}",
        _of(pa.timestamp("ns"), [dt.datetime(2026, 1, 1)]),  # noqa: DTZ001
        {"use_deprecated_int96_timestamps": True},
        0,
    ),
    "a dictionary": (
        "logicalType: string, enum: [{value: a}, {value: b}]",
        _of(pa.string(), ["a", "b", None, "a"]),
        {},
        1,
    ),
    "a dictionary with another value": (
        "logicalType: string, enum: [{value: a}]",
        _of(pa.string(), ["a", "b"]),
        {},
        0,
    ),
    "no dictionary": (
        "logicalType: string, enum: [{value: a}, {value: b}]",
        _of(pa.string(), ["a", "b"]),
        {"use_dictionary": False},
        0,
    ),
    "a dictionary that was given up half-way": (
        "logicalType: string, logicalTypeOptions: {maxLength: 2}",
        _of(pa.string(), ["ab"] * 50_000 + [f"{number:05}" for number in range(50_000)]),
        {"dictionary_pagesize_limit": 64},
        0,
    ),
    "a dictionary of integers": (
        "logicalType: integer, enum: [{value: 1}, {value: -2}]",
        _of(pa.int64(), [1, -2], [1]),
        {},
        1,
    ),
    **{
        f"a dictionary in {codec}": (
            "logicalType: string, logicalTypeOptions: {maxLength: 200, pattern: '^x'}",
            _of(pa.string(), [_LONG, "xy"]),
            {"compression": codec},
            2,
        )
        for codec in ("none", "gzip", "zstd", "lz4")
    },
    "a dictionary of megabytes, which are kilobytes as packed": (
        "logicalType: string, logicalTypeOptions: {maxLength: 2000000}",
        _of(pa.string(), ["x" * 1_900_000]),
        {"compression": "zstd"},
        0,
    ),
    "dictionaries of megabytes together": (
        "logicalType: string, logicalTypeOptions: {maxLength: 2000000}",
        _of(pa.string(), ["x" * 900_000], ["y" * 900_000]),
        {"compression": "zstd"},
        0,
    ),
    "data pages of version 2": (
        "logicalType: string, enum: [{value: a}]",
        _of(pa.string(), ["a", None]),
        {"data_page_version": "2.0"},
        1,
    ),
    "many row groups": (
        f"logicalType: integer, required: true, {_MINIMUM}",
        _of(pa.int64(), list(range(100))),
        {"row_group_size": 7},
        2,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_proof_and_scan_agree(spark: SparkSession, tmp_path: Path, case: str) -> None:
    column, tables, options, proven = CASES[case]

    report = both(spark, of_column(column), write(tmp_path / "lake", *tables, **options))

    assert report.from_statistics == proven


def test_a_file_with_a_name_of_another_case_proves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    lake = write(tmp_path / "lake", *_of(pa.int64(), [1]), pa.table({"V": pa.array([-1], pa.int64())}))

    report = both(spark, of_column(f"logicalType: integer, {_MINIMUM}"), lake)

    assert (report.from_statistics, len(report.failed)) == (0, 1)


def test_a_file_without_the_column_proves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    lake = write(tmp_path / "lake", *_of(pa.int64(), [1]), pa.table({"w": pa.array([-1], pa.int64())}))

    report = both(spark, of_column("logicalType: integer, required: true"), lake)

    assert report.from_statistics == 0


def test_fields_of_structs_are_proven_where_nothing_is_null(spark: SparkSession, tmp_path: Path) -> None:
    promised = contract("""
    properties:
      - name: place
        logicalType: object
        properties: [{name: zip, logicalType: string, required: true}]
    """)
    whole = pa.table({"place": pa.array([{"zip": "a"}])})
    gaps = pa.table({"place": pa.array([{"zip": "a"}, None])})

    proven = both(spark, promised, write(tmp_path / "whole", whole))
    scanned = both(spark, promised, write(tmp_path / "gaps", gaps))

    assert (proven.from_statistics, scanned.from_statistics) == (1, 0)


def test_a_frame_that_is_more_than_files_is_scanned(spark: SparkSession, tmp_path: Path) -> None:
    promised = of_column(f"logicalType: integer, {_MINIMUM}")
    frame = spark.read.parquet(str(write(tmp_path / "lake", *_of(pa.int64(), [1, -1]))))

    plain = check(Request(promised, frame.coalesce(1), optimizations=STATISTICS))
    filtered = check(Request(promised, frame.where("v > 0"), optimizations=STATISTICS))
    files = check(Request(promised, frame, optimizations=STATISTICS))

    assert (plain.from_statistics, filtered.from_statistics, files.from_statistics) == (0, 0, 0)
    assert [len(one.failed) for one in (plain, filtered, files)] == [1, 0, 1]


def test_a_frame_of_files_is_proven(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.parquet(str(write(tmp_path / "lake", *_of(pa.int64(), [1]))))

    report = check(Request(of_column(f"logicalType: integer, {_MINIMUM}"), frame, optimizations=STATISTICS))

    assert (report.from_statistics, report.passes) == (1, 0)


AGES = contract("""
    properties:
      - {name: at, logicalType: timestamp}
      - {name: day, logicalType: date, logicalTypeOptions: {maximum: 2026-12-31}}
slaProperties:
  - {property: latency, value: 4, unit: h, element: orders.at}
  - {property: retention, value: 1, unit: y, element: orders.day}
""")
_NOW = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
_LONG_AGO = dt.date(2020, 1, 1)
# Rows, how latency and retention end, and the passes by Spark.
AGED = {
    "fresh": ([(_NOW - dt.timedelta(hours=3), _DAY), (None, None)], ["pass", "pass"], 0),
    "stale, and kept too long": ([(_NOW - dt.timedelta(hours=5), _LONG_AGO)], ["fail", "fail"], 0),
    "nothing but NULL": ([(None, None)], ["fail", "pass"], 0),
    "no row": ([], ["fail", "pass"], 0),
    "the future": ([(_NOW + dt.timedelta(days=9), _DAY), (_NOW, None)], ["pass", "pass"], 1),
}


@pytest.mark.parametrize(("rows", "ends", "passes"), AGED.values(), ids=AGED)
def test_the_age_of_data_is_proven_by_the_extremes_of_its_files(
    spark: SparkSession, tmp_path: Path, rows: list[tuple[object, ...]], ends: list[str], passes: int
) -> None:
    types = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("day", pa.date32())])
    tables = [pa.Table.from_pylist([dict(zip(types.names, row, strict=True))], types) for row in rows]
    lake = write(tmp_path / "lake", *tables or [types.empty_table()])
    data = locate(AGES, AGES.objects[0], None, anywhere(LAKE=str(lake)))

    found = [
        check(Request(AGES, data, spark=spark, now=_NOW, optimizations=optimizations))
        for optimizations in (STATISTICS, NONE)
    ]

    assert found[0].results == found[1].results
    assert [one.status for one in found[0].results if one.check in ("latency", "retention")] == ends
    # The bound of the date, and both ages; what lies in the future is asked of Spark besides.
    assert [one.from_statistics for one in found] == [3, 0]
    assert found[0].passes == passes


@pytest.mark.parametrize("name", ["_metadata", "_common_metadata"])
def test_a_summary_of_footers_adds_no_row_and_no_file(spark: SparkSession, tmp_path: Path, name: str) -> None:
    # fastparquet, Dask and older Sparks write it; Spark lists it and reads no row of it.
    for number, column in enumerate(("v", "v")):
        pq.write_table(pa.table({column: [1, None, 3]}), tmp_path / f"part-{number}.parquet")
    pq.write_table(pa.table({"v": [1, None, 3], "other": [1, 2, 3]}), tmp_path / name)
    promised = contract("""
    quality: [{metric: rowCount, mustBe: 6}]
    properties:
      - name: v
        logicalType: integer
        physicalType: bigint
        quality: [{metric: nullValues, mustBe: 2}]
""")

    report = both(spark, promised, tmp_path)

    assert report.from_statistics > 0
    values = {result.check: result.value for result in report.results}
    assert (values["row_count"], values["null_values"]) == (6, 2)
    assert {result.status for result in report.results} == {Status.PASS}
