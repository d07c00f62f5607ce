"""The same rows in every format that can be read, however they came to be there: the same results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes import lakehouse
from fakes.opened import open_frame
from fakes.reach import anywhere

from dq.contracts.check_result import Status
from dq.contracts.model import Contract
from dq.contracts.outcome import ReadError
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.report import Report
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = lakehouse.MARKS

CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
status: active
servers: [{server: lake, %s}]
schema:
  - name: orders
    quality: [{metric: rowCount, mustBe: 5}]
    properties:
      - {name: line, logicalType: integer, physicalType: int, required: true, unique: true}
      - {name: id, logicalType: integer, physicalType: bigint, required: true}
      - {name: price, logicalType: number, physicalType: "decimal(9,2)", logicalTypeOptions: {minimum: 0}}
      - {name: at, logicalType: timestamp, logicalTypeOptions: {minimum: '2026-01-01T00:00:00Z'}}
      - {name: state, logicalType: string, enum: [{value: open}, {value: paid}]}
      - name: place
        logicalType: object
        properties:
          - {name: zip, logicalType: integer, physicalType: int, required: true}
          - {name: town, logicalType: string}
      - {name: tags, logicalType: array, logicalTypeOptions: {minItems: 1}, items: {logicalType: string}}
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
"""
ROWS = """
SELECT INT(line) AS line, BIGINT(id) AS id, CAST(price AS DECIMAL(9,2)) AS price, CAST(at AS TIMESTAMP) AS at,
    state, NAMED_STRUCT('zip', INT(zip), 'town', 'X') AS place, ARRAY('a', COALESCE(state, '-')) AS tags,
    DATE(day) AS day
FROM VALUES
    (1, 1, 1.50, '2026-01-01 10:00:00.123456', 'open', 7, '2026-01-01'),
    (2, NULL, 2.50, '2026-01-01 11:00:00', 'paid', NULL, '2026-01-01'),
    (3, 3, -1, '2025-12-31 23:59:59.999999', 'lost', 7, '2026-01-02'),
    (4, 3, NULL, NULL, NULL, 7, '2026-01-02'),
    (5, 5, 0, '2026-01-02 00:00:00', 'open', 7, '2026-01-02')
AS t(line, id, price, at, state, zip, day)
"""
# The same, written in another way: what has to be mended afterwards.
RAW = """
SELECT line, id, IF(line = 5, CAST(99 AS DECIMAL(9,2)), price) AS price, at, state, place, tags, day
FROM ([rows])
UNION ALL SELECT line + 100, id, price, at, 'junk', place, tags, day FROM ([rows])
""".replace("[rows]", ROWS)
MENDED = (
    "DELETE FROM {} WHERE line > 103",
    "MERGE INTO {} AS t USING (SELECT 5 AS line, 0 AS price) AS s ON t.line = s.line"
    " WHEN MATCHED THEN UPDATE SET price = s.price",
    "UPDATE {} SET state = 'gone' WHERE line > 100",
    "DELETE FROM {} WHERE state = 'gone'",
)

Place = tuple[str, "DataFrame | None"]


def contract(server: str) -> Contract:
    parsed = parse((CONTRACT % server).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


def reports(spark: SparkSession, place: Place) -> list[Report]:
    """The reports on the whole table, and on one of its days."""
    server, frame = place
    made = contract(server)
    data = frame if frame is not None else locate(made, made.objects[0], None, anywhere())
    return [
        check(Request(made, data, spark=spark, partitions=partitions))
        for partitions in (None, [{"day": "2026-01-02"}])
    ]


def files(form: str) -> Callable[[SparkSession, Path], Place]:
    def write(spark: SparkSession, folder: Path) -> Place:
        # JSON has milliseconds unless it is told.
        instants = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
        writer = spark.sql(ROWS).coalesce(1).write.option("timestampFormat", instants)
        writer.partitionBy("day").format(form).save(str(folder / "t"))
        return f"type: local, path: '{folder / 't'}', format: {form}", None

    return write


def table(spark: SparkSession, folder: Path) -> Place:
    spark.sql("DROP TABLE IF EXISTS orders")
    spark.sql(ROWS).write.partitionBy("day").saveAsTable("orders")
    return "type: hive, host: h, database: default", None


def view(spark: SparkSession, folder: Path) -> Place:
    spark.sql("DROP TABLE IF EXISTS orders")
    spark.sql(ROWS).createOrReplaceTempView("orders")
    return "type: hive, host: h, database: ''", None


def frame(spark: SparkSession, folder: Path) -> Place:
    return "type: local, path: nowhere, format: parquet", spark.sql(ROWS)


def iceberg(
    mode: str, *, path: bool, mended: tuple[str, ...] = MENDED
) -> Callable[[SparkSession, Path], Place]:
    def write(spark: SparkSession, folder: Path) -> Place:
        name = f"{lakehouse.CATALOG}.{folder.name.replace('-', '_')}.orders"
        modes = ", ".join(f"'write.{step}.mode'='{mode}'" for step in ("delete", "update", "merge"))
        spark.sql(
            f"CREATE TABLE {name} USING iceberg PARTITIONED BY (day) TBLPROPERTIES ({modes})"
            + " AS [rows]".replace("[rows]", RAW)
        )
        for statement in mended:
            spark.sql(statement.replace("{}", name))
        if not path:
            return f"type: hive, host: h, database: {name.rpartition('.')[0]}", None
        lakehouse.compact(spark, name)
        warehouse = spark.conf.get(f"spark.sql.catalog.{lakehouse.CATALOG}.warehouse")
        return f"type: local, path: '{warehouse}/{name.split('.')[1]}/orders', format: iceberg", None

    return write


def delta(
    vectors: str, *, path: bool, mended: tuple[str, ...] = MENDED
) -> Callable[[SparkSession, Path], Place]:
    def write(spark: SparkSession, folder: Path) -> Place:
        spark.sql("DROP TABLE IF EXISTS orders")
        spark.sql(
            f"CREATE TABLE orders USING delta PARTITIONED BY (day) LOCATION '{folder}/t'"
            f" TBLPROPERTIES ('delta.enableDeletionVectors'='{vectors}')"
            + " AS [rows]".replace("[rows]", RAW)
        )
        for statement in mended:
            spark.sql(statement.replace("{}", "orders"))
        if not path:
            return "type: hive, host: h, database: default", None
        spark.sql("OPTIMIZE orders")
        spark.sql("DROP TABLE orders")
        return f"type: local, path: '{folder}/t', format: delta", None

    return write


def hudi(kind: str, query: str = "") -> Callable[[SparkSession, Path], Place]:
    def write(spark: SparkSession, folder: Path) -> Place:
        path = str(folder / "t")
        # Hudi takes a table of this name for its own.
        spark.sql("DROP TABLE IF EXISTS orders")
        options = {
            "hoodie.table.name": "orders",
            "hoodie.datasource.write.recordkey.field": "line",
            "hoodie.datasource.write.precombine.field": "line",
            "hoodie.datasource.write.partitionpath.field": "day",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.upsert.shuffle.parallelism": "2",
            "hoodie.delete.shuffle.parallelism": "2",
            "hoodie.compact.inline": "true" if query else "false",
            "hoodie.compact.inline.max.delta.commits": "1",
        }
        writer = spark.sql(RAW).write.format("hudi").options(**options)
        writer.mode("overwrite").save(path)
        for action, rows in (("upsert", spark.sql(ROWS)), ("delete", spark.sql(RAW).where("line > 100"))):
            changed = rows.write.format("hudi").options(**options)
            changed.option("hoodie.datasource.write.operation", action).mode("append").save(path)
        if not query:
            return f"type: local, path: '{path}', format: hudi", None
        read = spark.read.format("hudi").option("hoodie.datasource.query.type", query).load(path)
        return f"type: local, path: '{path}', format: hudi", read.drop(*read.columns[:5])

    return write


PLACES: dict[str, Callable[[SparkSession, Path], Place]] = {
    "orc": files("orc"),
    "avro": files("avro"),
    "json": files("json"),
    "a table of Spark": table,
    "a view": view,
    "a DataFrame": frame,
    "iceberg, copy on write, compacted": iceberg("copy-on-write", path=True),
    "iceberg, merge on read": iceberg("merge-on-read", path=False),
    "delta, deletion vectors": delta("true", path=False),
    "delta, copy on write, compacted": delta("false", path=True),
}
if "hudi" in lakehouse.FORMATS:
    PLACES |= {
        "hudi, copy on write": hudi("COPY_ON_WRITE"),
        "hudi, merge on read": hudi("MERGE_ON_READ"),
        "hudi, merge on read, compacted and read optimised": hudi("MERGE_ON_READ", "read_optimized"),
    }


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[Report]:
    return reports(spark, files("parquet")(spark, tmp_path_factory.mktemp("parquet")))


# Files and frames are read on each Spark in `dataquality/spark` and `dataquality/test_formats.py`.
# Copy on write leaves plain files behind.
PLAIN = {
    *("orc", "json", "a table of Spark", "a view", "a DataFrame"),
    *("iceberg, copy on write, compacted", "delta, copy on write, compacted"),
}


@pytest.mark.parametrize(
    "place", [pytest.param(place, marks=[pytest.mark.alike] if place in PLAIN else []) for place in PLACES]
)
def test_the_same_rows_have_the_same_results_wherever_they_lie(
    spark: SparkSession, tmp_path: Path, expected: list[Report], place: str
) -> None:
    found = reports(spark, PLACES[place](spark, tmp_path))

    assert [report.results for report in found] == [report.results for report in expected]
    assert [len(report.with_status(Status.FAIL)) for report in found] == [5, 4]


NEW: dict[str, Callable[[SparkSession, Path], Place]] = {
    "iceberg": iceberg("copy-on-write", path=True, mended=()),
    "delta": delta("false", path=True, mended=()),
}


@pytest.mark.parametrize("form", NEW)
def test_a_data_file_that_is_gone_is_named(spark: SparkSession, tmp_path: Path, form: str) -> None:
    server, _ = NEW[form](spark, tmp_path)
    made = contract(server)
    data = locate(made, made.objects[0], None, anywhere())
    listed = open_frame(spark, data).selectExpr("input_file_name() AS file").distinct().collect()
    lost = min(row["file"].rpartition("/")[2] for row in listed)
    (file,) = Path(str(data.path)).rglob(lost)
    file.unlink()

    report = check(Request(made, data, spark=spark))

    scanned = next(result for result in report.results if result.check == "unique")
    assert scanned.status is Status.ERROR
    assert lost in scanned.message
    assert {one.status for one in report.results if one.check == "columns"} == {Status.PASS}


def test_an_avro_file_that_is_none_cannot_be_opened(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "part.avro").write_text("this is not avro")
    made = contract(f"type: local, path: '{tmp_path}', format: avro")

    with pytest.raises(ReadError, match="Not an Avro data file"):
        open_frame(spark, locate(made, made.objects[0], None, anywhere()))


@pytest.mark.parametrize("turned", [False, True])
def test_the_columns_of_every_avro_file_count(spark: SparkSession, tmp_path: Path, turned: bool) -> None:
    made = contract(f"type: local, path: '{tmp_path}', format: avro")
    first, second = "SELECT 1 AS id, 'x' AS ssn", "SELECT 'a' AS id"
    for query in (second, first) if turned else (first, second):
        spark.sql(query).coalesce(1).write.format("avro").mode("append").save(str(tmp_path))

    report = check(Request(made, locate(made, made.objects[0], None, anywhere()), spark=spark))

    told = {f"{one.property} {one.check}".strip(): one for one in report.results}
    assert told["row_count"].observed == "2 rows"
    assert "ssn" in told["additional_columns"].message
    assert told["id columns"].message.endswith("in 1 of 2 files")
    assert told["id required"].status is Status.ERROR


def test_an_avro_folder_without_files_has_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    made = contract(f"type: local, path: '{tmp_path}', format: avro")

    assert open_frame(spark, locate(made, made.objects[0], None, anywhere())).count() == 0


@pytest.mark.parametrize(
    ("form", "said"), [("delta", "not a Delta table"), ("iceberg", "Check the server's path")]
)
def test_a_folder_that_is_no_table_says_so(spark: SparkSession, tmp_path: Path, form: str, said: str) -> None:
    made = contract(f"type: local, path: '{tmp_path}', format: {form}")

    with pytest.raises(ReadError) as raised:
        open_frame(spark, locate(made, made.objects[0], None, anywhere()))

    assert said in raised.value.hint
