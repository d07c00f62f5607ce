"""Files on which a proof by statistics could go wrong: every set of optimizations answers as a scan."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from fakes.reach import anywhere
from oracle.comparing import session_with

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.outcome import ReadError
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.sources import ALL, NONE
from dq.dataquality.check import check
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@dataclass(frozen=True)
class Attack:
    """`columns` is the contract's YAML of the properties; `write` puts files below a folder and may give a
    frame of its own; `ends` are the statuses of the clauses on values, None where they depend on Spark.
    """

    columns: str
    write: Callable[[SparkSession, Path], DataFrame | None]
    ends: str | None
    folder: str = "t"
    partitions: tuple[Mapping[str, str], ...] = ()
    table: str = ""


def put(folder: Path, columns: dict[str, Any], name: str = "a.parquet", **options: Any) -> None:
    """One Parquet file; values are lists, or arrays with a type."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / name, **options)


def _number(key: str, bound: object) -> str:
    return f"{{name: v, logicalType: integer, required: true, logicalTypeOptions: {{{key}: {bound}}}}}"


_PART = ", partitioned: true, partitionKeyPosition: 1"


def _by_part(kind: str, physical: str, *values: str) -> str:
    listed = ", ".join(f"{{value: {one}}}" for one in values)
    return (
        f"{{name: part, logicalType: {kind}, physicalType: '{physical}', required: true{_PART},"
        f" enum: [{listed}]}}"
        ", {name: v, logicalType: integer, logicalTypeOptions: {minimum: 0}}"
    )


def parts(*names: str) -> Callable[[SparkSession, Path], None]:
    def write(_: SparkSession, lake: Path) -> None:
        for name in names:
            put(lake / name, {"v": [1, 2]})

    return write


def files(*tables: dict[str, Any], **options: Any) -> Callable[[SparkSession, Path], None]:
    def write(_: SparkSession, lake: Path) -> None:
        for number, columns in enumerate(tables):
            put(lake, columns, f"{number}.parquet", **options)

    return write


def _twice(spark: SparkSession, lake: Path) -> DataFrame:
    put(lake, {"v": [1, None]})
    return spark.read.parquet(str(lake), str(lake))


def _added(spark: SparkSession, lake: Path) -> DataFrame:
    put(lake, {"v": [1]})
    frame = spark.read.parquet(str(lake))
    put(lake, {"v": [-1]}, "b.parquet")
    return frame


def _replaced(spark: SparkSession, lake: Path) -> DataFrame:
    put(lake, {"v": [1]})
    frame = spark.read.parquet(str(lake))
    put(lake, {"v": [-1]})
    return frame


def _hidden(_: SparkSession, lake: Path) -> None:
    put(lake, {"v": [1]})
    for name in ("_b.parquet", ".b.parquet"):
        put(lake, {"v": [-1]}, name)
    put(lake / "_temporary", {"v": [-1]})
    (lake / "_SUCCESS").touch()
    (lake / ".a.parquet.crc").write_bytes(b"crc\0")


def _without_bytes(_: SparkSession, lake: Path) -> None:
    put(lake, {"v": [1]})
    (lake / "b.parquet").touch()


def _torn(_: SparkSession, lake: Path) -> None:
    put(lake, {"v": [1]})
    put(lake, {"v": [2]}, "b.parquet")
    torn = (lake / "b.parquet").read_bytes()
    (lake / "b.parquet").write_bytes(torn[:-20])


def _legacy(spark: SparkSession, lake: Path) -> None:
    with session_with(spark, {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"}):
        spark.createDataFrame([(dt.date(1500, 1, 1),)], "v date").write.parquet(str(lake))


def _legacy_instants(spark: SparkSession, lake: Path) -> None:
    settings = {
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.session.timeZone": "America/New_York",
    }
    with session_with(spark, settings):
        early = dt.datetime(1850, 1, 1, tzinfo=dt.UTC)
        spark.createDataFrame([(early,)], "v timestamp").write.parquet(str(lake))


def _int96(spark: SparkSession, lake: Path) -> None:
    put(lake, {"v": pa.array([_NOON], pa.timestamp("us", "UTC"))}, use_deprecated_int96_timestamps=True)


def _moved(spark: SparkSession, lake: Path) -> DataFrame:
    put(lake / "part=2", {"v": [1]})
    spark.sql("DROP TABLE IF EXISTS moved")
    spark.sql(
        f"CREATE TABLE moved (v BIGINT, part INT) USING parquet PARTITIONED BY (part) LOCATION '{lake}'"
    )
    spark.sql(f"ALTER TABLE moved ADD PARTITION (part = 1) LOCATION '{lake}/part=2'")
    return spark.table("moved")


def _padded(spark: SparkSession, lake: Path) -> DataFrame:
    put(lake, {"v": ["a", "b"]})
    spark.sql("DROP TABLE IF EXISTS padded")
    spark.sql(f"CREATE TABLE padded (v CHAR(3)) USING parquet LOCATION '{lake}'")
    return spark.table("padded")


def _defaulted(spark: SparkSession, lake: Path) -> DataFrame:
    put(lake, {"w": [1, 2]})
    spark.sql("DROP TABLE IF EXISTS defaulted")
    spark.sql(f"CREATE TABLE defaulted (w BIGINT) USING parquet LOCATION '{lake}'")
    spark.sql("ALTER TABLE defaulted ADD COLUMN v INT DEFAULT 5")
    return spark.table("defaulted")


def _shaped(shape: Callable[[DataFrame], DataFrame]) -> Callable[[SparkSession, Path], DataFrame]:
    def write(spark: SparkSession, lake: Path) -> DataFrame:
        put(lake, {"v": [1, 2, 3]})
        return shape(spark.read.parquet(str(lake)))

    return write


def _dotted(_: SparkSession, lake: Path) -> None:
    put(lake, {"v": pa.array([{"x": None}], pa.struct([("x", pa.string())]))})
    put(lake, {"v.x": ["a"], "v": [{"x": "a"}]}, "b.parquet")


def _structs_by_case(_: SparkSession, lake: Path) -> None:
    put(lake, {"v": [{"x": 1, "y": 1}]})
    put(lake, {"v": [{"x": 1}], "V": [{"y": 1}]}, "b.parquet")


# The check ends, because a file may hold anything.
NO_WORD = "no word"
_NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
_MANY = [f"{number:06}" for number in range(3_000)]
_SINCE_1600 = (
    "{name: v, logicalType: date, logicalTypeOptions: {maximum: '1500-01-05', minimum: '1499-12-31'}}"
)
_INSTANT = (
    "{name: v, logicalType: timestamp, logicalTypeOptions:"
    " {minimum: '2026-01-01T12:00:00Z', maximum: '2026-01-01T12:00:00Z'}}"
)
_FIELD = "{name: v, logicalType: object, properties: [{name: x, logicalType: string, required: true}]}"
_NO_LONGER = "{name: v, logicalType: string, logicalTypeOptions: {maxLength: 1, minLength: 1}}"
_POSITIVE = _number("minimum", 1)
_TO_MOST = _number("maximum", 2**31)

ATTACKS = {
    "no statistics in one file of two": Attack(
        _POSITIVE,
        lambda _, lake: (
            put(lake, {"v": [1]}),
            put(lake, {"v": [-1]}, "b.parquet", write_statistics=False),
        )[-1],
        "pass fail",
    ),
    "a dictionary that became too large": Attack(
        _NO_LONGER.replace("1,", "6,"),
        files({"v": [*_MANY, "toolong"]}, dictionary_pagesize_limit=512, data_page_size=512),
        "fail pass",
    ),
    "a text in another row group": Attack(
        _NO_LONGER, files({"v": ["a", "b", "cc"]}, row_group_size=2), "fail pass"
    ),
    "texts in plain pages of one row group": Attack(
        _NO_LONGER,
        files({"v": ["a"]}, {"v": ["bb"]}, use_dictionary=False),
        "fail pass",
    ),
    "NaN beside a bound": Attack(
        "{name: v, logicalType: number, logicalTypeOptions: {minimum: 0, maximum: 5}}",
        files({"v": [1.0, float("nan"), 2.0]}),
        "fail fail",
    ),
    "only NaN": Attack(
        "{name: v, logicalType: number, required: true, logicalTypeOptions: {maximum: 5}}",
        files({"v": [float("nan")]}),
        "pass fail",
    ),
    "zero with two signs": Attack(
        "{name: v, logicalType: number, enum: [{value: 0}], logicalTypeOptions: {minimum: 0, maximum: 0}}",
        files({"v": [-0.0, 0.0]}),
        "pass pass pass",
    ),
    "a smaller type in one file": Attack(
        _TO_MOST,
        files({"v": pa.array([1], pa.int64())}, {"v": pa.array([7], pa.int32())}),
        None,
    ),
    "a larger type in one file": Attack(
        _number("maximum", 100),
        files({"v": pa.array([1], pa.int32())}, {"v": pa.array([2**40], pa.int64())}),
        # Before 4.0, Spark does not read the narrower one as the wider one.
        "pass fail" if pyspark.__version__ >= "4" else "error error",
    ),
    "unsigned bytes": Attack(
        _number("maximum", 254), files({"v": pa.array([1, 255], pa.uint8())}), "pass fail"
    ),
    "unsigned integers": Attack(
        _number("maximum", 2**31), files({"v": pa.array([1, 2**32 - 1], pa.uint32())}), "pass fail"
    ),
    "unsigned long integers": Attack(
        _number("maximum", 2**63), files({"v": pa.array([1, 2**64 - 1], pa.uint64())}), "pass fail"
    ),
    "dates of the old calendar": Attack(_SINCE_1600, _legacy, "pass pass"),
    "instants of the old calendar": Attack(
        "{name: v, logicalType: timestamp, logicalTypeOptions:"
        " {minimum: '1850-01-01T00:00:00Z', maximum: '1850-01-01T00:00:00Z'}}",
        _legacy_instants,
        "pass pass",
    ),
    "instants of 96 bits": Attack(_INSTANT, _int96, "pass pass"),
    "instants in milliseconds": Attack(
        _INSTANT, files({"v": pa.array([_NOON], pa.timestamp("ms", "UTC"))}), "pass pass"
    ),
    "instants beyond milliseconds": Attack(
        _INSTANT,
        files({"v": pa.array([_NOON.replace(microsecond=1)], pa.timestamp("us", "UTC"))}),
        "pass fail",
    ),
    "a date after the year 9999": Attack(
        "{name: v, logicalType: date, logicalTypeOptions: {maximum: '9999-12-31'}}",
        files({"v": pa.array([4_000_000], pa.int32()).cast(pa.date32())}),
        "fail",
    ),
    "decimals in bytes of any length": Attack(
        "{name: v, logicalType: number, logicalTypeOptions: {maximum: 1.5}}",
        files({"v": pa.array([Decimal("1.50"), Decimal("-2.00")], pa.decimal128(9, 2))}),
        "pass",
    ),
    "decimals in integers": Attack(
        "{name: v, logicalType: number, logicalTypeOptions: {maximum: 1.5, minimum: -2}}",
        files(
            {"v": pa.array([Decimal("1.51"), Decimal("-2.00")], pa.decimal128(9, 2))},
            store_decimal_as_integer=True,
        ),
        "fail pass",
    ),
    "decimals of another scale in one file": Attack(
        "{name: v, logicalType: number, logicalTypeOptions: {maximum: 2}}",
        files(
            {"v": pa.array([Decimal("1.50")], pa.decimal128(9, 2))},
            {"v": pa.array([Decimal("1.7")], pa.decimal128(9, 1))},
            store_decimal_as_integer=True,
        ),
        "error",
    ),
    "a file without rows": Attack(_POSITIVE, files({"v": pa.array([], pa.int64())}, {"v": [1]}), "pass pass"),
    "only files without rows": Attack(_POSITIVE, files({"v": pa.array([], pa.int64())}), "pass pass"),
    "a file without bytes": Attack(_POSITIVE, _without_bytes, "pass pass"),
    "a torn footer": Attack(_POSITIVE, _torn, NO_WORD),
    "hidden files": Attack(_POSITIVE, _hidden, "pass pass"),
    "a file that came after the listing": Attack(_POSITIVE, _added, "pass pass"),
    "a file that was replaced after the listing": Attack(_POSITIVE, _replaced, "pass fail"),
    "the same folder twice": Attack(
        f"{_POSITIVE[:-1]}, quality: [{{metric: nullValues, mustBe: 2}}]}}", _twice, "fail pass pass"
    ),
    "a frame with a filter": Attack(_POSITIVE, _shaped(lambda frame: frame.where("v > 1")), "pass pass"),
    "a frame with another value": Attack(
        _POSITIVE, _shaped(lambda frame: frame.selectExpr("-v AS v")), "pass fail"
    ),
    "a frame with a default for NULL": Attack(
        _POSITIVE, _shaped(lambda frame: frame.selectExpr("nullif(v, 1) AS v")), "fail pass"
    ),
    "a frame of two": Attack(
        _POSITIVE, _shaped(lambda frame: frame.union(frame.selectExpr("-v"))), "pass fail"
    ),
    "a frame with a limit": Attack(_POSITIVE, _shaped(lambda frame: frame.limit(1)), "pass pass"),
    "a name with a sign for a path": Attack(_POSITIVE, files({"v": [1]}), "pass pass", folder="a b%20c+d é"),
    "a field beside a name with a dot": Attack(_FIELD, _dotted, "fail"),
    "structs whose names differ by case": Attack(
        "{name: v, logicalType: object, properties: [{name: x, logicalType: integer, required: true}]}",
        _structs_by_case,
        "error",
    ),
    "a partition of a number": Attack(
        _by_part("integer", "int", "1", "2"), parts("part=1", "part=02"), "pass pass pass"
    ),
    "a partition of more digits than its type": Attack(
        _by_part("number", "decimal(9,2)", "1.01"), parts("part=1.005"), "pass fail pass"
    ),
    "a partition asked for with more digits than its type": Attack(
        _by_part("number", "decimal(9,2)", "1.01").replace(
            "]", "], quality: [{metric: nullValues, mustBe: 100, unit: percent}]", 1
        ),
        parts("part=1.005"),
        "pass pass skipped pass",
        partitions=({"part": "1.005"},),
    ),
    "a partition written with escaped letters": Attack(
        _by_part("string", "string", "é"), parts("part=%C3%A9"), "pass fail pass"
    ),
    "a partition with an escaped sign": Attack(
        _by_part("string", "string", "a/b=c"), parts("part=a%2Fb%3Dc"), "pass pass pass"
    ),
    "a partition whose files hold the column too": Attack(
        _by_part("integer", "int", "1"),
        lambda _, lake: put(lake / "part=1", {"v": [1], "part": [2]}),
        "pass pass pass",
    ),
    "a partition whose files hold what was promised instead": Attack(
        _by_part("integer", "int", "2"),
        lambda _, lake: put(lake / "part=1", {"v": [1], "part": pa.array([2], pa.int32())}),
        "pass fail pass",
    ),
    "a partition that the contract does not name": Attack(
        _by_part("integer", "int", "2").replace(_PART, ""),
        lambda _, lake: put(lake / "part=1", {"v": [1], "part": pa.array([2], pa.int32())}),
        "pass fail pass",
    ),
    "a folder above that looks like a partition": Attack(
        _by_part("integer", "int", "1"),
        lambda _, lake: put(lake, {"v": [1], "part": pa.array([2], pa.int32())}),
        "pass fail pass",
        folder="part=1/t",
    ),
    "a partition of NULL": Attack(
        _by_part("integer", "int", "1"), parts("part=__HIVE_DEFAULT_PARTITION__", "part=1"), "fail pass pass"
    ),
    "a partition that lies elsewhere": Attack(
        _by_part("integer", "int", "2"), _moved, "pass fail pass", table="moved"
    ),
    "texts that the table pads": Attack(
        "{name: v, logicalType: string, logicalTypeOptions: {maxLength: 1}}", _padded, "fail", table="padded"
    ),
    "a column with a default": Attack(_POSITIVE, _defaulted, "pass pass", table="defaulted"),
}


def _said(result: CheckResult) -> tuple[str, str, str]:
    """All that a reader sees; of an error, which engines word differently, only that it is one."""
    known = result.status is not Status.ERROR
    return result.status.value, result.observed, result.message if known else ""


@pytest.mark.parametrize("name", ATTACKS)
def test_every_lever_answers_as_a_scan(spark: SparkSession, tmp_path: Path, name: str) -> None:
    attack = ATTACKS[name]
    lake = tmp_path / attack.folder
    frame = attack.write(spark, lake)
    place = f"{{server: s, type: local, path: '{lake}', format: parquet}}"
    if attack.table:
        place = "{server: s, type: hive, host: h, database: default, format: parquet}"
    promised = parse(
        f"""
apiVersion: v3.2.0
kind: DataContract
id: hostile
version: 1.0.0
servers: [{place}]
schema:
  - name: t
    physicalName: {attack.table or "t"}
    quality: [{{metric: rowCount, mustBe: -1}}]
    properties: [{attack.columns}]
""".encode(),
        "hostile.odcs.yaml",
    )
    assert promised.contract is not None, promised.findings
    handed = frame is not None and not attack.table
    data: Any = frame if handed else locate(promised.contract, promised.contract.objects[0], None, anywhere())

    requests = [
        Request(
            promised.contract,
            data,
            spark=spark,
            partitions=attack.partitions or None,
            optimizations=optimizations,
            tasks_from=0,
        )
        for optimizations in (NONE, ALL)
    ]
    small = replace(requests[1], start_session=lambda: spark)
    if attack.ends == NO_WORD:
        for request in (*requests, small):
            with pytest.raises(ReadError):
                check(request)
        return
    scanned = check(requests[0])
    levered = [check(requests[1]), check(small)]

    said, *others = ({one.clause: _said(one) for one in report.results} for report in (scanned, *levered))
    for also in others:
        assert {path: (said[path], also[path]) for path in said if said[path] != also[path]} == {}
    told = ("columns", "additional_columns", "row_count")
    ends = " ".join(one.status for one in scanned.results if one.check not in told)
    assert attack.ends in (ends, None), said
