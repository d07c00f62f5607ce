"""The columns of Parquet and ORC data are those of every file, and a type that Spark refuses costs itself."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from fakes.reach import anywhere

from dq.contracts.check_result import CheckResult
from dq.contracts.outcome import ReadError
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.sources import ALL, NONE
from dq.dataquality.check import check
from dq.dataquality.request import Request
from dq.dataquality.spark.columnar_files import MAX_INSPECTED_FILES
from dq.dataquality.spark.dataset import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HEAD = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: '${LAKE}', format: %s}]
schema:
  - name: orders
    customProperties: [{property: dataset, vendor: dq, value: {additionalColumns: forbid}}]
    properties:
"""
ID = "      - {name: id, logicalType: integer, required: true}\n"
DAY = "      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}\n"
NOTE = "      - {name: note, logicalType: string, required: true}\n"
AT = "      - {name: at, logicalType: time, required: true, unique: true}\n"


def results(
    spark: SparkSession, lake: Path, body: str, form: str = "parquet", *partitions: dict[str, str]
) -> dict[str, CheckResult]:
    """By column and check, the same with and without optimizations."""
    parsed = parse((HEAD % form + body).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    data = locate(parsed.contract, parsed.contract.objects[0], None, anywhere(LAKE=str(lake)))
    found, scanned = (
        check(Request(parsed.contract, data, spark=spark, partitions=partitions or None, optimizations=some))
        for some in (ALL, NONE)
    )
    assert found.results == scanned.results
    return {f"{one.property} {one.check}".strip(): one for one in found.results}


def write(form: str, file: Path, /, **columns: pa.Array) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    (pq.write_table if form == "parquet" else orc.write_table)(pa.table(columns), file)


@pytest.mark.parametrize("form", ["parquet", "orc"])
@pytest.mark.parametrize("first", ["a", "z"])
def test_a_column_that_one_file_has_is_an_additional_one(
    spark: SparkSession, tmp_path: Path, form: str, first: str
) -> None:
    write(form, tmp_path / f"{first}.{form}", id=pa.array([1]), ssn=pa.array(["123"]))
    write(form, tmp_path / f"m.{form}", id=pa.array([2]))

    found = results(spark, tmp_path, ID, form)

    assert found["additional_columns"].status == "fail"
    assert "ssn" in found["additional_columns"].message
    assert found["id required"].status == "pass"


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_column_that_only_the_last_file_has_is_there_and_said_so(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    write(form, tmp_path / f"a.{form}", id=pa.array([1]))
    write(form, tmp_path / f"b.{form}", id=pa.array([2]))
    write(form, tmp_path / f"c.{form}", id=pa.array([3]), note=pa.array(["x"]))

    found = results(spark, tmp_path, ID + NOTE, form)

    assert found["note columns"].status == "pass"
    assert "in 1 of 3 files, NULL in the others" in found["note columns"].message
    assert found["note required"].observed == "2 of 3 rows"
    assert found["id columns"].message.count("files") == 0


@pytest.mark.parametrize("second", ["2026-01-02", "2026-1-2"])
def test_only_the_files_of_the_partitions_are_looked_at(
    spark: SparkSession, tmp_path: Path, second: str
) -> None:
    write("parquet", tmp_path / "day=2026-01-01" / "a.parquet", id=pa.array([1]))
    write("parquet", tmp_path / f"day={second}" / "a.parquet", id=pa.array([2]), ssn=pa.array(["123"]))

    whole = results(spark, tmp_path, ID + DAY)
    first = results(spark, tmp_path, ID + DAY, "parquet", {"day": "2026-01-01"})
    later = results(spark, tmp_path, ID + DAY, "parquet", {"day": "2026-01-02"})

    assert [one["additional_columns"].status for one in (whole, first, later)] == ["fail", "pass", "fail"]
    assert first["id required"].status == "pass"
    assert whole["day columns"].status == "pass"


def test_columns_are_merged_without_case(spark: SparkSession, tmp_path: Path) -> None:
    write("parquet", tmp_path / "a.parquet", id=pa.array([1]), NOTE=pa.array(["x"]))
    write("parquet", tmp_path / "b.parquet", id=pa.array([2]), note=pa.array(["y"]))

    found = results(spark, tmp_path, ID + NOTE)

    assert {one.status for one in found.values()} == {"pass"}


def test_a_dot_in_a_name_is_no_way_into_a_struct(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a", "b"):
        columns = {"id": pa.array([1]), "x.y": pa.array([2]), "x": pa.array([{"y": 1}])}
        write("parquet", tmp_path / f"{name}.parquet", **columns)
    dotted = "      - {name: x.y, logicalType: integer, required: true}\n"

    found = results(spark, tmp_path, ID + dotted)

    assert (found["x.y columns"].status, found["x.y required"].status) == ("pass", "pass")
    assert found["additional_columns"].observed.count("x") == 1


TIMES = {"millis": pa.time32("ms"), "micros": pa.time64("us")}


@pytest.mark.parametrize("kind", TIMES.values(), ids=TIMES)
def test_a_column_of_times_costs_only_itself(spark: SparkSession, tmp_path: Path, kind: pa.DataType) -> None:
    times = pa.array([dt.time(1), None], kind)
    write("parquet", tmp_path / "a.parquet", id=pa.array([1, None]), at=times)
    write("parquet", tmp_path / "b.parquet", id=pa.array([2, 3]), at=times, ssn=pa.array(["1", "2"]))

    found = results(spark, tmp_path, ID + AT)

    assert {name: one.status.value for name, one in found.items()} == {
        "additional_columns": "fail",
        "id columns": "pass",
        "id required": "fail",
        "at columns": "error",
        "at logical_type": "error",
        "at required": "error",
        "at unique": "error",
    }
    stored = "INT32 as TIME(MILLIS)" if kind == pa.time32("ms") else "INT64 as TIME(MICROS)"
    assert {one.message for name, one in found.items() if name.startswith("at ")} == {
        f"orders.at: Spark cannot read {stored}"
    }


def test_what_one_file_alone_has_of_a_type_that_spark_refuses_costs_itself(
    spark: SparkSession, tmp_path: Path
) -> None:
    write("parquet", tmp_path / "a.parquet", id=pa.array([1]))
    write("parquet", tmp_path / "b.parquet", id=pa.array([2]), at=pa.array([dt.time(1)], pa.time32("ms")))

    found = results(spark, tmp_path, ID + AT)

    assert (found["id required"].status, found["at columns"].status) == ("pass", "error")
    assert found["additional_columns"].status == "pass"


OTHERS = {
    "unsigned": pa.array([1, 2], pa.uint32()),
    "instants": pa.array([0, 1], pa.timestamp("us", tz="UTC")),
    "times without zone": pa.array([0, 1], pa.timestamp("us")),
    "lists": pa.array([[1], None]),
    "structs": pa.array([{"x": 1}, None]),
    "decimals": pa.array([1, 2], pa.decimal128(9, 2)),
    "bytes": pa.array([b"a", None]),
    "small numbers": pa.array([1, 2], pa.int8()),
    "flags": pa.array([True, None]),
}


def test_beside_a_column_of_times_the_others_have_the_types_that_spark_gives_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    from dq.dataquality.spark.columnar_files import schema_without_illegal

    plain, timed = tmp_path / "plain.parquet", tmp_path / "timed.parquet"
    columns = {name.replace(" ", "_"): values for name, values in OTHERS.items()}
    write("parquet", plain, **columns)
    write("parquet", timed, **columns, at=pa.array([dt.time(1)] * 2, pa.time32("ms")))

    told = schema_without_illegal(str(timed))

    assert told is not None
    assert [field.dataType.simpleString() for field in told.fields[:-1]] == [
        field.dataType.simpleString() for field in spark.read.parquet(str(plain)).schema.fields
    ]


ONLY_TYPE = "      - {name: id, logicalType: integer}\n"


@pytest.mark.parametrize("form", ["parquet", "orc"])
@pytest.mark.parametrize("texts", ["a", "z"])
def test_every_file_keeps_the_type_that_is_promised(
    spark: SparkSession, tmp_path: Path, form: str, texts: str
) -> None:
    write(form, tmp_path / f"m.{form}", id=pa.array([1]), note=pa.array(["x"]))
    write(form, tmp_path / f"n.{form}", id=pa.array([2]), note=pa.array(["x"]))
    write(form, tmp_path / f"{texts}.{form}", id=pa.array(["x"]), note=pa.array(["x"]))

    found = results(spark, tmp_path, ID + NOTE, form)

    assert found["id columns"].status == "fail"
    assert "string cannot hold integer" in found["id columns"].message
    assert found["id columns"].message.endswith("in 1 of 3 files")
    # Spark reads one type, and what is not read by it is not known.
    assert found["id required"].status == "error"
    assert " of 3 files, and " in found["id required"].message
    assert (found["note columns"].status, found["note required"].status) == ("pass", "pass")


def struct(**fields: str) -> pa.Array:
    return pa.array([dict(fields)])


PLACE = """      - name: place
        logicalType: object
        properties:
          - {name: zip, logicalType: string, required: true}
          - {name: city, logicalType: string}
"""
EXACT = "      - {name: id, logicalType: integer, physicalType: bigint}\n"
MONEY = "      - {name: id, logicalType: number, required: true}\n"
DATE = "      - {name: id, logicalType: date, required: true}\n"
# What stands in two files, the contract, and how clauses end.
TWO_FILES: dict[str, tuple[pa.Array, pa.Array, str, dict[str, str]]] = {
    "a field that came later": (
        struct(zip="1"),
        struct(zip="2", city="x"),
        PLACE,
        {"place columns": "pass", "place.city columns": "pass", "place.zip required": "pass"},
    ),
    "a field of another type": (
        struct(zip="1", city="x"),
        pa.array([{"zip": "2", "city": 3}]),
        PLACE,
        {"place.city columns": "fail", "place.zip columns": "pass", "place.zip required": "error"},
    ),
    "a text instead of an object": (
        struct(zip="1", city="x"),
        pa.array(["{}"]),
        PLACE,
        {"place columns": "pass", "place.zip columns": "error", "place.zip required": "error"},
    ),
    "decimals of other lengths": (
        pa.array([1], pa.decimal128(9, 2)),
        pa.array([1], pa.decimal128(18, 2)),
        MONEY,
        {"id columns": "pass", "id required": "pass"},
    ),
    "decimals of other scales": (
        pa.array([1], pa.decimal128(9, 2)),
        pa.array([1], pa.decimal128(9, 3)),
        MONEY,
        {"id columns": "pass", "id required": "error"},
    ),
    "numbers of other widths": (
        pa.array([1], pa.int32()),
        pa.array([1], pa.int64()),
        EXACT,
        {"id columns": "fail"},
    ),
    "a day and an instant": (
        pa.array([1], pa.date32()),
        pa.array([1], pa.timestamp("us")),
        DATE,
        {"id columns": "fail", "id required": "error"},
    ),
    "an instant stored in two ways": (
        pa.array([1], pa.timestamp("us", tz="UTC")),
        pa.array([1], pa.timestamp("ns", tz="UTC")),
        DATE.replace("date", "timestamp"),
        {"id columns": "error", "id required": "error"},
    ),
    "texts with an index of words": (
        pa.array(["x"]),
        pa.array(["x"]).dictionary_encode(),
        DATE.replace("date", "string"),
        {"id columns": "pass", "id required": "pass"},
    ),
}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("first", "second", "body", "expected"), TWO_FILES.values(), ids=TWO_FILES)
def test_what_two_files_hold_is_told(
    spark: SparkSession,
    tmp_path: Path,
    first: pa.Array,
    second: pa.Array,
    body: str,
    expected: dict[str, str],
    turned: bool,
) -> None:
    column = "place" if body == PLACE else "id"
    for name, values in zip("ba" if turned else "ab", (first, second), strict=True):
        write("parquet", tmp_path / f"{name}.parquet", **{column: values})

    found = results(spark, tmp_path, body)

    told = {name: found[name].status.value for name in expected}
    assert told == expected, {name: one.message for name, one in found.items()}


def test_an_empty_file_hides_no_column(spark: SparkSession, tmp_path: Path) -> None:
    write("parquet", tmp_path / "a.parquet", id=pa.array([1]))
    write("parquet", tmp_path / "b.parquet", id=pa.array([1]), ssn=pa.array(["1"]))
    (tmp_path / "z.parquet").touch()

    found = results(spark, tmp_path, ID)

    assert (found["additional_columns"].status, found["id required"].status) == ("fail", "pass")


def test_a_file_that_cannot_be_looked_at_may_hold_any_column(spark: SparkSession, tmp_path: Path) -> None:
    write("parquet", tmp_path / "a.parquet", id=pa.array([1]))
    write("parquet", tmp_path / "b.parquet", id=pa.array([1]))
    (tmp_path / "c.parquet").write_bytes(b"PAR1 and no more")

    with pytest.raises(ReadError, match=r"c\.parquet cannot be read, so its columns are unknown"):
        results(spark, tmp_path, ID)


def test_many_files_are_looked_at_where_spark_cannot_merge_them(spark: SparkSession, tmp_path: Path) -> None:
    plain = tmp_path / "000.parquet"
    write("parquet", plain, id=pa.array([1]))
    for number in range(1, MAX_INSPECTED_FILES):
        os.link(plain, tmp_path / f"{number:05}.parquet")
    write("parquet", tmp_path / "x.parquet", id=pa.array(["1"]))
    write("parquet", tmp_path / "y.parquet", id=pa.array([1]), ssn=pa.array(["1"]))

    found = results(spark, tmp_path, ONLY_TYPE)

    assert (found["id columns"].status, found["additional_columns"].status) == ("fail", "fail")
    assert f"in 1 of {MAX_INSPECTED_FILES + 2} files" in found["id columns"].message
