"""Small tables in this process: the verdicts that Spark gives, no job where none is needed."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.reach import anywhere

from dq.contracts.outcome import ReadError, UsageError
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.memory import RequiresSpark, answers, small_table
from dq.dataquality.answers.sources import NONE
from dq.dataquality.check import check, outline
from dq.dataquality.model.metric import SCHEMA, Aggregate, count
from dq.dataquality.model.predicate import In
from dq.dataquality.model.predicate import Path as Path_
from dq.dataquality.report import Report
from dq.dataquality.request import OpenedData, Request
from dq.dataquality.spark.dataset import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = dt.datetime(2026, 5, 2, 12, tzinfo=dt.UTC)
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
status: active
servers: [{{server: lake, type: local, path: '{lake}', format: {form}}}]
schema:
  - name: orders
    quality:
      - {{metric: rowCount, mustBe: 4}}
      - {{metric: duplicateValues, mustBe: 0, arguments: {{properties: [state, day]}}}}{more}
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint, primaryKey: true, primaryKeyPosition: 1}}
      - {{name: part, logicalType: integer, physicalType: smallint, primaryKey: true, primaryKeyPosition: 2}}
      - {{name: state, logicalType: string, required: true, enum: [{{value: open}}, {{value: 'pàid'}}]}}
      - {{name: code, logicalType: string, unique: true, logicalTypeOptions: {{minLength: 2, maxLength: 3}}}}
      - {{name: mail, logicalType: string, logicalTypeOptions: {{format: email}}}}
      - name: price
        logicalType: number
        physicalType: decimal(9,2)
        logicalTypeOptions: {{minimum: 0.5}}
      - {{name: share, logicalType: number, physicalType: double, logicalTypeOptions: {{maximum: 1.5}}}}
      - {{name: paid, logicalType: boolean}}
      - {{name: day, logicalType: date, logicalTypeOptions: {{minimum: '2026-05-01'}}}}
      - name: at
        logicalType: timestamp
        quality: [{{metric: nullValues, mustBeLessThan: 30, unit: percent}}]
      - {{name: gone, logicalType: string}}
slaProperties:
  - {{property: latency, value: 1, unit: d, element: orders.at}}
"""
KEPT: dict[str, Any] = {
    "id": pa.array([1, 1, 2, 3], pa.int64()),
    "part": pa.array([1, 2, 1, 1], pa.int16()),
    "state": ["open", "pàid", "open", "pàid"],
    "code": pa.array(["a😀", "bb", "ccc", None]),
    "mail": ["a@example.org", None, "b@example.org", "c@example.org"],
    "price": pa.array([Decimal("0.50"), None, Decimal("7"), Decimal("9999999.99")], pa.decimal128(9, 2)),
    "share": pa.array([-0.0, 1.5, None, float("-inf")], pa.float64()),
    "paid": pa.array([True, False, None, True]),
    "day": pa.array([dt.date(2026, 5, day) for day in (1, 2, 3, 4)]),
    "at": pa.array([NOW, NOW - dt.timedelta(days=1), None, NOW], pa.timestamp("us", "Europe/Berlin")),
}
BROKEN: dict[str, Any] = {
    **KEPT,
    "id": pa.array([1, 1, 1, 2], pa.int64()),
    "state": ["open", "lost", None, "open"],
    "code": pa.array(["a", "bb", "bb", "😀😀😀😀"]),
    "mail": ["a@example", "b", None, "c@example.org"],
    "price": pa.array([Decimal("0.49")] * 4, pa.decimal128(9, 2)),
    "share": pa.array([float("nan"), 1.6, None, 0.0], pa.float64()),
    "day": pa.array([dt.date(2026, 4, 30)] * 4),
    "at": pa.array([dt.datetime(2026, 4, 1, tzinfo=dt.UTC), None, None, None], pa.timestamp("ms", "UTC")),
}


def asked(spark: SparkSession | None, lake: Path, more: str = "", form: str = "parquet") -> Request:
    parsed = parse(CONTRACT.format(lake=lake, more=more, form=form).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    data = locate(parsed.contract, parsed.contract.objects[0], None, anywhere())
    begin = (lambda: spark) if spark is not None else None
    return Request(parsed.contract, data, spark=spark, now=NOW, start_session=begin)


def write(lake: Path, columns: dict[str, Any], files: int = 2) -> Path:
    lake.mkdir()
    table = pa.table(columns)
    size = max(1, table.num_rows // files)
    for number in range(files):
        pq.write_table(table.slice(number * size, size), lake / f"part-{number}.parquet")
    return lake


def jobs(spark: SparkSession, ask: Callable[[Request], Report], request: Request) -> tuple[Report, int]:
    """The report, and how many jobs Spark began for it."""
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    before = int(scheduler.nextJobId())
    return ask(request), int(scheduler.nextJobId()) - before


def scanned(request: Request) -> Report:
    return check(Request(request.contract, request.data, spark=request.spark, now=NOW, optimizations=NONE))


@pytest.mark.spark
def test_what_is_kept_costs_no_job_and_is_the_verdict_of_a_scan(spark, tmp_path):
    request = asked(spark, write(tmp_path / "lake", KEPT))

    told, begun = jobs(spark, check, request)

    by_spark = scanned(request)
    assert (told.results, told.coverage, told.rows) == (by_spark.results, by_spark.coverage, 4)
    # One column is missing, so that there is something to be told beside what passes.
    assert {str(one.status) for one in told.results} == {"pass", "fail"}
    assert begun == 0


SQL = "\n      - {type: sql, query: 'SELECT count(*) FROM ${object} WHERE share > 1', mustBe: 1}"


@pytest.mark.spark
def test_what_breaks_and_what_only_spark_asks_has_the_results_and_the_rows_of_a_scan(spark, tmp_path):
    request = asked(spark, write(tmp_path / "lake", BROKEN), SQL)

    told, begun = jobs(spark, check, request)
    by_spark, of_a_scan = jobs(spark, scanned, request)

    assert told.results == by_spark.results
    assert {one.check for one in told.results if one.samples} >= {"enum", "unique", "bounds", "format"}
    assert begun < of_a_scan


@pytest.mark.spark
def test_of_a_single_file_spark_is_asked_only_the_rest(spark, tmp_path):
    write(tmp_path / "lake", KEPT)
    request = asked(spark, tmp_path / "lake" / "part-0.parquet", SQL)

    assert check(request).results == scanned(request).results


@pytest.mark.spark
def test_files_that_go_before_spark_reads_them_are_said_not_to_be_there(spark, tmp_path):
    lake = write(tmp_path / "lake", KEPT)
    request = asked(spark, lake, SQL)

    def late() -> SparkSession:
        if lake.exists():
            lake.rename(tmp_path / "away")
        return spark

    with pytest.raises(ReadError, match="PATH_NOT_FOUND"):
        check(replace(request, start_session=late))


@pytest.mark.spark
def test_a_path_that_spark_looks_for_in_another_file_system_is_not_looked_for_here(spark, tmp_path):
    request = asked(spark, write(tmp_path / "lake", KEPT))
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    before, here = settings.get("fs.defaultFS"), OpenedData(request).small

    settings.set("fs.defaultFS", "hdfs://elsewhere")
    try:
        there = OpenedData(request).small
    finally:
        settings.set("fs.defaultFS", before)

    assert (here is None, there) == (False, None)


@pytest.mark.spark
def test_a_dry_run_of_a_small_table_foresees_what_spark_would(spark, tmp_path):
    request = asked(spark, write(tmp_path / "lake", KEPT), SQL)

    assert OpenedData(request).small is not None
    assert outline(request) == outline(replace(request, optimizations=NONE))


def test_a_small_table_needs_no_session(tmp_path):
    request = asked(None, write(tmp_path / "lake", KEPT))

    told = check(request)

    assert {one.check for one in told.failed} == {"columns"}


FAILING = """\
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
status: active
servers: [{{server: lake, type: local, path: '{lake}', format: parquet}}]
schema:
  - name: orders
    quality:
      - {{metric: duplicateValues, mustBe: 0, arguments: {{properties: [state, "no"]}}}}
      - {{metric: duplicateValues, mustBe: 0, arguments: {{properties: ["no", paid, day, at, local, price]}}}}
      - {{metric: nullValues, mustBe: 0, arguments: {{properties: [day, note]}}}}
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint{key}}}
      - {{name: "no", logicalType: integer, physicalType: int, logicalTypeOptions: {{maximum: 1}}}}
      - {{name: state, logicalType: string, required: true, enum: [{{value: open}}]}}
      - {{name: note, logicalType: string, unique: true, logicalTypeOptions: {{maxLength: 3}}{secret}}}
      - {{name: price, logicalType: number, physicalType: 'decimal(9,2)', logicalTypeOptions: {{minimum: 9}}}}
      - {{name: share, logicalType: number, physicalType: double, logicalTypeOptions: {{maximum: 1}}}}
      - {{name: paid, logicalType: boolean, required: true}}
      - {{name: day, logicalType: date, logicalTypeOptions: {{minimum: '2026-05-03'}}}}
      - {{name: at, logicalType: timestamp, logicalTypeOptions: {{maximum: '2026-04-01T00:00:00Z'}}}}
      - name: local
        logicalType: timestamp
        physicalType: timestamp_ntz
        logicalTypeOptions: {{maximum: '2026-04-01T00:00:00', timezone: false}}
"""
NOTES = ["ab", 'a "b" \\ c\t\n', "pàid 😀😀", "x" * 300, "x" * 201, "", None, "ab", "***", "open to all"]
SHARES = [1.5, -0.0, float("nan"), float("inf"), None, 2.25, 1234567.125, 0.001, 2.0, 99.99]


def _failing_rows(words: Sequence[str | None], shares: Sequence[float | None]) -> dict[str, Any]:
    rows = len(words)
    hours = [dt.timedelta(hours=number // 3, microseconds=1200 * (number % 3)) for number in range(rows)]
    return {
        "id": pa.array(range(rows), pa.int64()),
        "no": pa.array([number % 4 or None for number in range(rows)], pa.int32()),
        "state": [None if number % 7 == 6 else "open" if number % 2 else "shut" for number in range(rows)],
        "note": pa.array(words, pa.string()),
        "price": pa.array([Decimal(number % 5).scaleb(-2) for number in range(rows)], pa.decimal128(9, 2)),
        "share": pa.array(shares, pa.float64()),
        "paid": [None if number % 5 == 4 else bool(number % 2) for number in range(rows)],
        "day": [None if number % 6 == 5 else dt.date(2026, 5, 1 + number % 3) for number in range(rows)],
        "at": pa.array([NOW - hour for hour in hours], pa.timestamp("us", "UTC")),
        "local": pa.array([(NOW - hour).replace(tzinfo=None) for hour in hours], pa.timestamp("us")),
    }


def _failing_request(lake: Path, key: str = "", secret: str = "", **columns: Any) -> Request:
    write(lake, {**_failing_rows(NOTES * 3, SHARES * 3), **columns}, 3)
    parsed = parse(FAILING.format(lake=lake, key=key, secret=secret).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    data = locate(parsed.contract, parsed.contract.objects[0], None, anywhere())
    return Request(parsed.contract, data, now=NOW)


SECRET = ", classification: restricted"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("key", "secret", "notes"),
    [
        pytest.param("", "", NOTES * 3, id="wrong values"),
        pytest.param(", primaryKey: true", "", NOTES * 3, id="keys"),
        pytest.param(
            "", SECRET, ["open", "hut", "2026", None, "09:00:", "sh", "al", "T", "ope", ""] * 3, id="masked"
        ),
    ],
)
def test_failing_rows_need_no_session_and_are_those_of_a_scan(spark, tmp_path, key, secret, notes):
    request = _failing_request(tmp_path / "lake", key, secret, note=notes)

    told = check(request)

    by_spark = scanned(replace(request, spark=spark))
    assert told.results == by_spark.results
    assert sum(bool(result.samples) for result in told.results) >= 10


@pytest.mark.spark
@pytest.mark.parametrize(
    ("secret", "columns"),
    [
        pytest.param("", {"share": [1.1 + 2.2] * 30}, id="a double of 17 digits"),
        pytest.param("", {"share": [2e23] * 30}, id="a large double"),
        pytest.param(SECRET, {"note": ["STRAẞE"] * 30}, id="a secret whose lower case differs by language"),
    ],
)
def test_failing_rows_that_spark_may_write_in_another_way_are_left_to_it(spark, tmp_path, secret, columns):
    request = _failing_request(tmp_path / "lake", secret=secret, **columns)

    with pytest.raises(UsageError, match="needs a Spark session"):
        check(request)

    begun = replace(request, start_session=lambda: spark)
    assert check(begun).results == scanned(replace(request, spark=spark)).results


def _loop(lake: Path) -> None:
    (lake / "loop").symlink_to(lake)


def _unreadable(lake: Path) -> None:
    (lake / "part-1.parquet").write_bytes(b"PAR1 no footer PAR1")


def _changed(name: str, values: Any) -> Callable[[Path], None]:
    """The second file with another column."""

    def change(lake: Path) -> None:
        columns = {**KEPT, name: values} if values is not None else {**KEPT}
        if values is None:
            columns.pop(name)
        pq.write_table(pa.table(columns), lake / "part-1.parquet")

    return change


def _everywhere(name: str, values: Any, **options: Any) -> Callable[[Path], None]:
    """Both files with another column, or written in another way."""

    def change(lake: Path) -> None:
        for number in range(2):
            pq.write_table(pa.table({**KEPT, name: values}), lake / f"part-{number}.parquet", **options)

    return change


def _of_spark(note: str) -> Callable[[Path], None]:
    """Both files with what Spark would believe of its own."""

    def change(lake: Path) -> None:
        table = pa.table(KEPT)
        kinds = {"int64": "long", "int16": "short", "bool": "boolean", "date32[day]": "date"}
        fields = [
            {"name": one.name, "type": kinds.get(str(one.type), "string"), "nullable": True, "metadata": {}}
            for one in table.schema
        ]
        told = {"org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": note, "fields": fields})}
        for number in range(2):
            pq.write_table(table.replace_schema_metadata(told), lake / f"part-{number}.parquet")

    return change


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_loop, id="a link that leads in a circle"),
        pytest.param(_unreadable, id="a file that is no Parquet"),
        pytest.param(lambda lake: (lake / "part-1.parquet").write_bytes(b""), id="a file without a byte"),
        pytest.param(lambda lake: (lake / "_metadata").write_bytes(b"PAR1"), id="a summary beside the data"),
        pytest.param(lambda lake: (lake / "day=1").mkdir(), id="a folder that may be a partition"),
        pytest.param(lambda lake: os.mkfifo(lake / "pipe.parquet"), id="a pipe, on which one waits for ever"),
        pytest.param(lambda lake: (lake / "x.parquet").write_bytes(b"x" * (5 << 20)), id="too many bytes"),
        pytest.param(
            lambda lake: [(lake / f"{n}.parquet").write_bytes(b"PAR1") for n in range(5_000)],
            id="5,000 tiny files",
        ),
        pytest.param(_changed("gone", ["x"] * 4), id="a column in one file only"),
        pytest.param(_changed("state", None), id="a column in the other file only"),
        pytest.param(_changed("part", pa.array([1] * 4, pa.int32())), id="a column of two types"),
        pytest.param(_changed("PART", pa.array([1] * 4, pa.int16())), id="two names that differ by case"),
        pytest.param(_everywhere("more", [{"a": 1}] * 4), id="a struct"),
        pytest.param(_everywhere("more", [[1]] * 4), id="an array"),
        pytest.param(_everywhere("more", pa.array([1] * 4, pa.uint32())), id="an unsigned number"),
        pytest.param(
            _everywhere("more", pa.array([1] * 4, pa.time32("ms"))), id="a time, which Spark refuses"
        ),
        pytest.param(
            _everywhere("at", pa.array([NOW] * 4, pa.timestamp("ns", "UTC")), version="2.6"), id="nanoseconds"
        ),
        pytest.param(
            _everywhere("at", pa.array([NOW] * 4), use_deprecated_int96_timestamps=True), id="INT96"
        ),
        pytest.param(_everywhere("more", ["x"] * 4, compression="brotli"), id="a codec that Spark lacks"),
        pytest.param(
            _everywhere(
                "share",
                pa.array([1.0] * 4),
                use_dictionary=False,
                column_encoding={"share": "BYTE_STREAM_SPLIT"},
            ),
            id="an encoding that not every Spark has",
        ),
        pytest.param(_of_spark("struct"), id="another schema in Spark's own note"),
        pytest.param(_of_spark("udt"), id="a note that is no schema"),
    ],
)
def test_what_spark_may_read_in_another_way_is_left_to_spark(tmp_path, change):
    lake = write(tmp_path / "lake", KEPT)
    change(lake)

    with pytest.raises((RequiresSpark, ValueError, OSError, KeyError)):
        small_table(asked(None, lake).data)  # type: ignore[arg-type]  # it is a place


def test_old_days_bombs_and_texts_that_are_none_are_left_to_spark(tmp_path):
    old = write(tmp_path / "old", {"day": pa.array([dt.date(1582, 10, 4)] * 4)})
    late = write(tmp_path / "late", {"day": pa.array([2**62] * 4, pa.timestamp("us"))})
    bomb = write(tmp_path / "bomb", {"day": pa.array(["x" * 200_000] * 2_000)})

    for lake in (old, late, bomb):
        assert sum(file.stat().st_size for file in lake.iterdir()) < 1 << 20
        with pytest.raises((RequiresSpark, OverflowError, ValueError)):
            small_table(asked(None, lake).data).columns(["day"])  # type: ignore[arg-type]  # it is a place


def test_what_spark_adds_up_in_doubles_is_left_to_it(tmp_path):
    lake = write(
        tmp_path / "lake", {"id": pa.array([2**63 - 1, 2**63 - 1, 1, -1]), "share": [0.1, 1e308, 1.0, 2.0]}
    )
    table = small_table(asked(None, lake).data)  # type: ignore[arg-type]  # it is a place
    # By the last digit Spark's 5.05e18 is another one than the exact one.
    rounded = Aggregate("stddev_samp", Path_(("id",)))
    sums = [Aggregate("try_sum", Path_((name,))) for name in ("id", "share")]

    told = answers([rounded, *sums], table)

    assert told.keys() == {SCHEMA, count(), sums[0]}


def test_a_list_of_very_many_numbers_is_left_to_spark_whose_jobs_can_be_stopped(tmp_path):
    lake = write(tmp_path / "lake", {"share": pa.array([0.5] * 40_000)})
    table = small_table(asked(None, lake).data)  # type: ignore[arg-type]  # it is a place
    long, short = (
        count(In(Path_(("share",)), tuple(float(number) for number in range(size)))) for size in (5_000, 2)
    )

    told = answers([long, short], table)

    assert told.get(short) == 0
    assert long not in told


PARTITIONED = """\
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
status: active
servers: [{{server: lake, type: local, path: '{lake}', format: parquet}}]
schema:
  - name: orders
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint, primaryKey: true, primaryKeyPosition: 1}}
      - {{name: state, logicalType: string, enum: [{{value: open}}]}}
      - {{name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}}
      - {{name: hour, logicalType: integer, physicalType: int, partitioned: true, partitionKeyPosition: 2}}
    quality: [{{metric: rowCount, mustBe: 2}}]
"""


def partitioned(lake: Path) -> Request:
    """Days with two hours of two rows each."""
    for at, (day, hour) in enumerate((day, hour) for day in (1, 2, 3) for hour in (0, 1)):
        folder = lake / f"day=2026-05-0{day}" / f"hour={hour}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [2 * at, 2 * at + 1], "state": ["open"] * 2}), folder / "a.parquet")
    parsed = parse(PARTITIONED.format(lake=lake).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    data = locate(parsed.contract, parsed.contract.objects[0], None, anywhere())
    return Request(parsed.contract, data, partitions=[{"day": "2026-05-02", "hour": "1"}], now=NOW)


def test_a_small_partition_needs_no_session_for_it_or_for_its_table(tmp_path):
    told = check(partitioned(tmp_path))

    assert [(one.check, str(one.status)) for one in told.results if str(one.status) != "pass"] == []
    assert told.rows == 2
    # Of the key, all of the table is looked at.
    (key,) = (one for one in told.results if one.check == "unique" or "key" in one.message)
    assert "whole table" in key.message


@pytest.mark.spark
def test_a_small_partition_has_the_verdicts_of_a_scan(spark, tmp_path):
    request = partitioned(tmp_path)
    pq.write_table(
        pa.table({"id": [0, 1, 9], "state": ["open", "gone", None]}),
        tmp_path / "day=2026-05-02" / "hour=1" / "a.parquet",
    )
    for partitions in ([{"day": "2026-05-02", "hour": "1"}], [{"day": "2026-05-02"}], [{"hour": "0"}]):
        asked = replace(request, partitions=partitions, start_session=lambda: spark)

        told, scan = check(asked), check(replace(asked, spark=spark, start_session=None, optimizations=NONE))

        assert (told.results, told.rows) == (scan.results, scan.rows)
        assert OpenedData(asked).small is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda lake: (lake / "day=2026-05-02" / "hour=1").rename(lake / "day=2026-05-02" / "hour=x"),
        lambda lake: (lake / "day=2026-05-01").rename(lake / "2026-05-01"),
        lambda lake: pq.write_table(pa.table({"id": [1]}), lake / "a.parquet"),
        lambda lake: pq.write_table(
            pa.table({"id": ["1"], "state": ["open"]}), lake / "day=2026-05-01" / "hour=0" / "a.parquet"
        ),
        lambda lake: (lake / "day=2026-05-02" / "hour=1" / "a.parquet").write_bytes(b""),
        lambda lake: (lake / "day=2026-05-01" / "_metadata").write_bytes(b""),
    ],
)
def test_of_partitions_what_spark_may_read_in_another_way_is_left_to_it(tmp_path, change):
    request = partitioned(tmp_path)

    before = OpenedData(request).small
    change(tmp_path)

    assert before is not None
    assert OpenedData(request).small is None
