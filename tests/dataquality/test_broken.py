"""What is broken in the data is an error of the checks that meet it, says where, and hides no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pyspark
import pytest
from fakes.opened import open_frame
from fakes.reach import anywhere

from dq.contracts.model import Contract
from dq.contracts.outcome import ReadError
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.model import run_context
from dq.dataquality.report import Report
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import Dataset, locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# Spark 3.5 does not always say in which file it fails.
SAYS_WHERE = not pyspark.__version__.startswith("3.")

HEAD = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
servers: [{server: lake, type: local, path: '%s', format: %s}]
schema:
  - name: orders
    quality: [{metric: rowCount, mustBeGreaterThan: 0}]
    properties:
      - {name: id, logicalType: integer, physicalType: int, required: true, logicalTypeOptions: {minimum: 1}}
      - {name: state, logicalType: string, required: true}
"""
DAY = "      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}\n"


def at(path: Path | str, form: str = "parquet", more: str = "") -> tuple[Contract, Dataset]:
    parsed = parse((HEAD % (path, form) + more).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract, locate(parsed.contract, parsed.contract.objects[0], None, anywhere())


def results_of(
    spark: SparkSession, path: Path, form: str = "parquet", more: str = "", **partition: str
) -> dict[str, tuple[str, str]]:
    """Status and message of every result, by property and check."""
    made, data = at(path, form, more)
    return told(check(Request(made, data, spark=spark, partitions=[partition] if partition else None)))


def told(report: Report) -> dict[str, tuple[str, str]]:
    return {
        f"{result.property} {result.check}".strip(): (result.status.value, result.message)
        for result in report.results
    }


def statuses(results: dict[str, tuple[str, str]]) -> dict[str, str]:
    return {name: status for name, (status, _) in results.items()}


def write(path: Path, *rows: tuple[object, ...], **types: pa.DataType) -> Path:
    """A Parquet file with these columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = zip(*rows, strict=True) if rows else [[] for _ in types]
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, types.values(), strict=True)]
    pq.write_table(pa.table(arrays, names=list(types)), path)
    return path


GOOD = {"id": pa.int32(), "state": pa.string()}
BOTH_PASS = {"id columns": "pass", "state columns": "pass"}


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def garbage(path: Path) -> None:
    path.write_bytes(b"PAR1" + b"\x00" * 400)


def other_format(path: Path) -> None:
    orc.write_table(pa.table({"id": [1]}), path)


@pytest.mark.parametrize("damage", [truncated, garbage, other_format])
def test_a_file_that_is_no_parquet_is_named_by_every_check_that_reads_it(
    spark: SparkSession, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    write(tmp_path / "day=2026-01-01" / "good.parquet", (1, "open"), **GOOD)
    bad = write(tmp_path / "day=2026-01-02" / "wrong.parquet", (2, "open"), **GOOD)
    made, data = at(tmp_path, more=DAY)
    schema = open_frame(spark, data).schema
    damage(bad)
    frame = spark.read.schema(schema).parquet(str(tmp_path))

    whole = told(check(Request(made, frame)))
    one = told(check(Request(made, frame, partitions=[{"day": "2026-01-01"}])))

    assert statuses(whole)["id required"] == "error"
    assert statuses(whole)["id columns"] == "pass"
    assert "wrong.parquet" in whole["id required"][1]
    assert set(statuses(one).values()) == {"pass"}


def test_a_table_of_damaged_files_alone_cannot_be_opened(spark: SparkSession, tmp_path: Path) -> None:
    truncated(write(tmp_path / "part.parquet", (1, "open"), **GOOD))

    with pytest.raises(ReadError, match=r"part\.parquet.*(Deliver this file again|Check that Spark may)"):
        open_frame(spark, at(tmp_path)[1])


def test_a_file_that_went_away_after_it_was_listed_is_named(spark: SparkSession, tmp_path: Path) -> None:
    gone = write(tmp_path / "gone.parquet", (1, "open"), **GOOD)
    write(tmp_path / "stays.parquet", (2, "open"), **GOOD)
    made, data = at(tmp_path)
    frame = open_frame(spark, data)
    gone.unlink()

    found = told(check(Request(made, frame)))

    assert found["id required"][0] == "error"
    assert "gone.parquet" in found["id required"][1]
    assert statuses(found)["id columns"] == "pass"


PLACES = [
    pytest.param("/nowhere", "parquet", "PATH_NOT_FOUND.*Check the server's path", id="no such path"),
    pytest.param("foo://bucket/x", "parquet", "scheme.*Correct the path", id="unknown scheme"),
    pytest.param("s3://bucket/x", "parquet", r"hadoop-aws:\d+\.\d+\.\d+\.$", id="S3 without its jar"),
]


@pytest.mark.parametrize(("path", "form", "said"), PLACES)
def test_a_place_that_cannot_be_read_says_how_it_is_mended(
    spark: SparkSession, path: str, form: str, said: str
) -> None:
    with pytest.raises(ReadError, match=said) as raised:
        open_frame(spark, at(path, form)[1])

    assert "\n" not in raised.value.message


@pytest.mark.parametrize("form", ["iceberg", "delta", "hudi", "avro"])
def test_a_format_without_its_jar_says_the_coordinates(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    (jar,) = run_context.coordinates(pyspark.__version__, [form])

    with pytest.raises(ReadError) as raised:
        open_frame(spark, at(tmp_path, form)[1])

    assert f"spark.jars.packages={jar}" in raised.value.hint


def test_a_partition_of_another_type_is_an_error_of_the_checks_that_read_the_column(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "day=2026-01-01" / "a.parquet", (1, "open"), **GOOD)
    write(tmp_path / "day=2026-01-02" / "b.parquet", ("x", "open"), id=pa.string(), state=pa.string())
    made, data = at(tmp_path, more=DAY)
    schema = "id INT, state STRING, day DATE"

    found = told(check(Request(made, spark.read.schema(schema).parquet(str(tmp_path)))))
    first = results_of(spark, tmp_path, more=DAY, day="2026-01-01")

    # The file's statistics know of no NULL, and are not asked: its rows cannot be read.
    assert statuses(found)["id required"] == "error"
    assert statuses(found)["id bounds"] == "error"
    assert ("b.parquet" in found["id bounds"][1]) is SAYS_WHERE
    assert statuses(found)["state required"] == "pass"
    assert statuses(found)["row_count"] == "pass"
    assert data.partitions == ("day",)
    assert statuses(first)["state required"] == "pass"


def test_a_column_that_came_later_is_null_before(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "day=2026-01-01" / "a.parquet", (1,), id=pa.int32())
    write(tmp_path / "day=2026-01-02" / "b.parquet", (2, "open"), **GOOD)
    made, _ = at(tmp_path, more=DAY)
    frame = spark.read.option("mergeSchema", "true").parquet(str(tmp_path))

    whole = told(check(Request(made, frame)))
    later = told(check(Request(made, frame, partitions=[{"day": "2026-01-02"}])))

    assert statuses(whole)["state required"] == "fail"
    assert "1 of 2 rows" in whole["state required"][1]
    assert statuses(later)["state required"] == "pass"


def test_a_column_that_was_dropped_is_missing_and_others_are_tested(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "a.parquet", (1,), id=pa.int32())

    found = results_of(spark, tmp_path)

    assert statuses(found)["state columns"] == "fail"
    assert statuses(found)["state required"] == "error"
    assert "column 'state' is missing" in found["state required"][1]
    assert statuses(found)["id required"] == "pass"


def test_a_partition_without_rows_or_files_has_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "day=2026-01-01" / "a.parquet", (1, "open"), **GOOD)
    write(tmp_path / "day=2026-01-02" / "b.parquet", **GOOD)
    (tmp_path / "day=2026-01-03").mkdir()

    for day in ("2026-01-02", "2026-01-03", "2026-01-04"):
        found = results_of(spark, tmp_path, more=DAY, day=day)

        assert statuses(found)["row_count"] == "fail"
        assert "0 rows" in found["row_count"][1]


def test_a_file_of_no_bytes_is_a_marker_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", (1, "open"), **GOOD)
    (tmp_path / "b.parquet").touch()

    found = results_of(spark, tmp_path)

    assert found["row_count"] == ("pass", "orders: 1 row")


LINES = {
    "csv": "id,state\n1,open\nmany,paid\n",
    "json": '{"id": 1, "state": "open"}\n{"id": "many", "state": "paid"}\n',
}


@pytest.mark.parametrize(("form", "text"), LINES.items(), ids=LINES)
def test_a_value_that_is_none_of_its_type_fails_its_column_and_is_never_a_null(
    spark: SparkSession, tmp_path: Path, form: str, text: str
) -> None:
    (tmp_path / f"part.{form}").write_text(text)
    made, data = at(tmp_path, form)

    report = check(Request(made, data, spark=spark))

    found = told(report)
    assert found["id columns"] == ("fail", "orders.id: 1 of 2 values are not of type int")
    assert [one.samples for one in report.results if one.check == "columns"] == [
        ({"file": f"part.{form}", "id": "many"},),
        (),
    ]
    assert statuses(found)["id bounds"] == "error"
    assert statuses(found)["id required"] == "pass"
    assert statuses(found)["state required"] == "pass"
    assert report.exit_code == 1


def test_json_that_is_cut_off_names_its_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "part.json").write_text('{"id": 1, "state": "open"}\n{"id": 2, "sta\n')

    with pytest.raises(ReadError, match=r"part\.json.*not JSON"):
        results_of(spark, tmp_path, "json")


def test_orc_with_another_type_fails_the_check_of_the_type(spark: SparkSession, tmp_path: Path) -> None:
    orc.write_table(pa.table({"id": ["many"], "state": ["open"]}), tmp_path / "part.orc")

    found = results_of(spark, tmp_path, "orc")

    assert statuses(found)["id columns"] == "fail"
    assert "string" in found["id columns"][1]
    assert statuses(found)["id bounds"] in ("error", "fail")
    assert statuses(found)["state required"] == "pass"
