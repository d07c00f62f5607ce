from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes.opened import open_frame
from fakes.reach import anywhere

from dq.contracts.check_result import Status
from dq.contracts.model import Contract
from dq.contracts.outcome import ReadError, UsageError
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.request import Request
from dq.dataquality.spark.columnar_files import only_partitions
from dq.dataquality.spark.dataset import Dataset, locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: air\nversion: 1.0.0\n"
FLIGHTS = """
schema:
  - name: flights
    physicalName: flights_v1
    properties:
      - {name: id, logicalType: integer, physicalType: int, required: true, logicalTypeOptions: {minimum: 0}}
      - {name: carrier, logicalType: string}
      - {name: flight_date, logicalType: date, partitioned: true, partitionKeyPosition: 1}
      - {name: region, logicalType: string, partitioned: true, partitionKeyPosition: 2}
"""


def contract(servers: str, schema: str = FLIGHTS) -> Contract:
    parsed = parse(f"{HEAD}servers:\n{servers}\n{schema}".encode(), "air.odcs.yaml")
    assert parsed.contract is not None
    return parsed.contract


def at(path: Path | str, form: str = "parquet", schema: str = FLIGHTS) -> tuple[Contract, Dataset]:
    made = contract(f"  - {{server: disk, type: local, path: '{path}', format: {form}}}", schema)
    return made, locate(made, made.objects[0], None, anywhere())


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lake") / "flights"
    rows = [(day * 10 + row, "AA", f"2013-01-0{day}", "01") for day in (1, 2, 3) for row in range(day)]
    frame = spark.createDataFrame(rows, "id int, carrier string, flight_date string, region string")
    frame.coalesce(1).write.partitionBy("flight_date", "region").parquet(str(path))
    return path


@pytest.mark.spark
def test_only_the_partitions_asked_for_are_read(spark: SparkSession, lake: Path) -> None:
    _, dataset = at(lake)

    frame = open_frame(spark, dataset, [{"flight_date": "2013-01-02", "region": "01"}])

    assert sorted(row.id for row in frame.collect()) == [20, 21]
    execution = frame._jdf.queryExecution()
    filters = re.search(
        r"PartitionFilters: \[(.*?)\.{0,3}\]?, PushedFilters", execution.executedPlan().toString()
    )
    assert filters is not None
    assert "flight_date#" in filters.group(1)
    # Compared with a date, not cast to text.
    assert re.search(r"\(flight_date#\d+ = 2013-01-02\)", filters.group(1))
    scan = execution.executedPlan().collectLeaves().head()
    assert scan.metrics().apply("numFiles").value() == 1
    assert scan.metrics().apply("numOutputRows").value() == 2


@pytest.mark.spark
def test_partition_columns_have_the_types_of_the_contract(spark: SparkSession, lake: Path) -> None:
    _, dataset = at(lake)

    frame = open_frame(spark, dataset)

    assert dict(frame.dtypes) == {"id": "int", "carrier": "string", "flight_date": "date", "region": "string"}
    assert {row.region for row in frame.collect()} == {"01"}


@pytest.mark.spark
def test_a_delivered_partition_is_checked_from_its_files(spark: SparkSession, lake: Path) -> None:
    made, dataset = at(lake)

    report = check(Request(made, dataset, spark=spark, partitions=[{"flight_date": "2013-01-03"}]))

    assert {result.status for result in report.results} == {Status.PASS}
    required = next(result for result in report.results if result.check == "required")
    assert required.observed == "0 of 3 rows"


MONTHS = """
schema:
  - name: flights
    quality: [{metric: rowCount, mustBe: 2}]
    properties:
      - {name: id, logicalType: integer, physicalType: bigint}
      - {name: year, logicalType: integer, physicalType: int, partitioned: true, partitionKeyPosition: 1}
      - {name: month, logicalType: integer, physicalType: int, partitioned: true, partitionKeyPosition: 2}
"""


@pytest.mark.spark
@pytest.mark.parametrize("form", ["parquet", "json"])
@pytest.mark.parametrize(
    ("folder", "layout"),
    [
        ("year={}/month={}", ""),
        ("{}/{}", ", customProperties: [{property: layout, vendor: dq, value: {path: '{year}/{month}'}}]"),
    ],
    ids=["hive", "template"],
)
def test_an_integer_key_is_found_in_each_spelling_of_its_folder(
    spark: SparkSession, tmp_path: Path, folder: str, layout: str, form: str
) -> None:
    for number, month in enumerate(["01", "1", "02", "10"]):
        frame = spark.createDataFrame([(number,)], "id bigint").coalesce(1)
        frame.write.format(form).save(str(tmp_path / folder.format(2026, month)))
    server = f"  - {{server: disk, type: local, path: '{tmp_path}', format: {form}{layout}}}"
    months = contract(server, MONTHS)
    dataset = locate(months, months.objects[0], None, anywhere())

    found = {}
    for scope in (("1",), ("01",), ("2", "10")):
        partitions = [{"year": "2026", "month": month} for month in scope]
        request = Request(months, dataset, spark=spark, partitions=partitions, start_session=lambda: spark)
        frame = only_partitions(open_frame(spark, dataset, partitions), partitions)
        found[scope] = (sorted(row.id for row in frame.collect()), check(request).rows)

    assert found == {("1",): ([0, 1], 2), ("01",): ([0, 1], 2), ("2", "10"): ([2, 3], 2)}


@pytest.mark.spark
def test_a_partition_without_files_is_an_empty_frame(spark: SparkSession, lake: Path) -> None:
    (lake / "flight_date=2013-02-01" / "region=01").mkdir(parents=True)
    _, dataset = at(lake)

    assert open_frame(spark, dataset, [{"flight_date": "2013-02-01"}]).count() == 0
    assert open_frame(spark, dataset, [{"flight_date": "2013-02-01", "region": "01"}]).count() == 0


@pytest.mark.spark
def test_a_folder_without_files_is_an_empty_frame_and_no_folder_is_unreadable(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.parquet").write_text("this is not parquet")

    empty = open_frame(spark, at(tmp_path / "empty")[1])

    assert (empty.count(), empty.columns) == (0, ["id", "carrier", "flight_date", "region"])
    with pytest.raises(ReadError, match=r"nowhere.*PATH_NOT_FOUND.*Check the server's path"):
        open_frame(spark, at(tmp_path / "nowhere")[1])
    with pytest.raises(ReadError, match=r"text\.parquet"):
        open_frame(spark, at(tmp_path / "text.parquet")[1])


PLAIN = """
schema:
  - name: flights
    properties:
      - {name: id, logicalType: integer, physicalType: int, required: true, logicalTypeOptions: {minimum: 0}}
      - {name: carrier, logicalType: string, required: true}
"""


@pytest.mark.spark
def test_a_corrupt_file_is_an_error_of_every_check_that_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "flights"
    spark.createDataFrame([(1, "AA")], "id int, carrier string").coalesce(1).write.parquet(str(path))
    good = next(path.glob("*.parquet"))
    (path / "part-bad.snappy.parquet").write_bytes(good.read_bytes()[:-40] + b"x" * 40)
    made, dataset = at(path, schema=PLAIN)
    frame = open_frame(spark, Dataset("flights", str(good), "parquet", None, dataset.columns, ()))
    broken = spark.read.schema(frame.schema).parquet(str(path))

    report = check(Request(made, broken))

    assert {result.status for result in report.results if result.check != "columns"} == {
        Status.ERROR,
        Status.PASS,
    }
    required = next(result for result in report.results if result.check == "required")
    assert required.status is Status.ERROR
    assert "part-bad" in required.message
    assert "\n" not in required.message
    assert "at org.apache" not in required.message
    assert report.exit_code == 3


@pytest.mark.spark
@pytest.mark.parametrize("form", ["json", "csv", "orc"])
def test_other_formats_have_the_types_of_the_contract(spark: SparkSession, tmp_path: Path, form: str) -> None:
    path = tmp_path / "flights"
    if form == "orc":
        spark.createDataFrame([("AA", 1)], "carrier string, id int").write.orc(str(path))
    else:
        path.mkdir()
        csv = "carrier,id\nAA,1\n"
        (path / f"one.{form}").write_text(csv if form == "csv" else json.dumps({"carrier": "AA", "id": 1}))
    made, dataset = at(path, form, PLAIN)

    report = check(Request(made, dataset, spark=spark))

    assert {result.status for result in report.results} == {Status.PASS}


@pytest.mark.spark
def test_a_text_that_is_no_number_is_an_error_and_never_a_silent_null(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "flights.csv"
    path.write_text("id,carrier\n1,AA\nmany,UA\n")
    made, dataset = at(path, "csv", PLAIN)

    report = check(Request(made, dataset, spark=spark))

    status = {result.clause: result.status for result in report.results}
    assert status["schema[0].properties[0].logicalTypeOptions.minimum"] is Status.ERROR
    assert status["schema[0].properties[1].required"] is Status.PASS


@pytest.mark.spark
def test_a_table_of_the_catalog_is_read_by_its_name(spark: SparkSession) -> None:
    made = contract("  - {server: hive, type: hive, host: h, database: '${DB:-default}'}", PLAIN)
    dataset = locate(made, made.objects[0], "hive", anywhere())
    spark.sql("DROP TABLE IF EXISTS flights")

    with pytest.raises(ReadError, match="TABLE_OR_VIEW_NOT_FOUND"):
        open_frame(spark, dataset)
    spark.createDataFrame([(1, "AA")], "id int, carrier string").write.saveAsTable("flights")

    assert dataset.table == "`default`.`flights`"
    assert open_frame(spark, dataset).count() == 1
    spark.sql("DROP TABLE flights")


@pytest.mark.spark
def test_a_null_partition_is_chosen_by_the_name_that_hive_gives_it(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, None, 1.5), (2, "x", 2.5)], "id int, p string, f float")

    assert [row.id for row in only_partitions(frame, [{"p": "__HIVE_DEFAULT_PARTITION__"}]).collect()] == [1]
    assert [row.id for row in only_partitions(frame, [{"id": "2", "p": "x"}, {"f": "1.5"}]).collect()] == [
        1,
        2,
    ]


TWO = "schema:\n  - {name: orders, physicalName: orders_v1}\n  - {name: lines}\n"
ONE = "schema:\n  - {name: orders, physicalName: orders_v1}\n"
PLACES = [
    pytest.param(
        "type: s3, location: 's3://b/orders', format: parquet", ONE, "s3a://b/orders", id="one object"
    ),
    pytest.param(
        "type: s3, location: 's3://b/', format: parquet", TWO, "s3a://b/orders_v1", id="two objects"
    ),
    pytest.param("type: local, path: 'd/{object}/x', format: csv", TWO, "d/orders_v1/x", id="placeholder"),
    pytest.param("type: local, path: 'd/{model}.csv', format: csv", ONE, "d/orders_v1.csv", id="model"),
    pytest.param("type: custom, path: '${ROOT}/${SUB:-raw}', format: orc", ONE, "/data/raw", id="variables"),
]


@pytest.mark.parametrize(("server", "schema", "path"), PLACES)
def test_a_path_follows_from_the_server(server: str, schema: str, path: str) -> None:
    made = contract(f"  - {{server: a, {server}}}", schema)

    assert locate(made, made.objects[0], None, anywhere(ROOT="/data")).path == path


def test_a_glue_server_names_a_table_and_the_dataset_terms_name_the_format() -> None:
    terms = "customProperties: [{property: dataset, vendor: dq, value: {format: delta}}]"
    made = contract(
        "  - {server: lake, type: glue, account: '1', database: sales, location: 's3://b', format: parquet}",
        f"schema:\n  - {{name: orders, {terms}}}\n",
    )

    dataset = locate(made, made.objects[0], "lake", anywhere())

    assert (dataset.table, dataset.path, dataset.format) == ("`sales`.`orders`", None, "delta")


WRONG = [
    pytest.param("{server: a, type: local, path: '${HOME}', format: csv}", None, "HOME", id="no value"),
    pytest.param("{server: a, type: local, path: x, format: xls}", None, "'xls'", id="format"),
    pytest.param("{server: a, type: local, path: x, format: csv}", "b", "no server 'b'", id="name"),
    pytest.param("{server: a, type: kinesis}", None, "which dq cannot read", id="no place"),
]


@pytest.mark.parametrize(("server", "name", "said"), WRONG)
def test_a_place_that_cannot_be_told_is_a_usage_error(server: str, name: str | None, said: str) -> None:
    made = contract(f"  - {server}", ONE)

    with pytest.raises(UsageError, match=re.escape(said)):
        locate(made, made.objects[0], name, anywhere())


def test_a_variable_is_taken_from_what_is_handed_in_and_not_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ROOT", "/environment")
    made = contract("  - {server: a, type: local, path: '${ROOT:-/default}', format: csv}", ONE)

    assert locate(made, made.objects[0], None, anywhere()).path == "/default"
