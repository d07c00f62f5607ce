"""Keys in the places of Iceberg and Delta where they hide, and gone only when their files are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import lakehouse
from fakes.erasure import KEY, OTHER, Place, files_with, hit_files, plant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = lakehouse.MARKS
FORMATS = pytest.mark.parametrize("format", ["delta", "iceberg"])


class Lakehouse(Place):
    """A table `people` of Delta or Iceberg, in which each row has one of two people."""

    def __init__(self, spark: SparkSession, folder: Path, format: str, **properties: str) -> None:
        super().__init__(folder, format)
        name = "e" + folder.name.replace("-", "_")
        self.spark = spark
        self.name = f"delta.`{self.lake}`"
        if format == "iceberg":
            home = str(spark.conf.get(f"spark.sql.catalog.{lakehouse.CATALOG}.warehouse"))
            self.name = f"{lakehouse.CATALOG}.shop.{name}"
            self.lake = Path(f"{home}/shop/{name}")
            contract = (folder / "registry/people.odcs.yaml").read_text()
            self.put("registry/people.odcs.yaml", contract.replace(str(folder / "lake"), str(self.lake)))
        self.sql(
            "CREATE TABLE {} (id BIGINT, email STRING, note STRING, contacts ARRAY<STRING>, day DATE) "
            f"USING {format} PARTITIONED BY (day) {self.terms(format, **properties)}"
        )

    @staticmethod
    def terms(format: str, **properties: str) -> str:
        if format == "delta":
            properties = {
                "delta.columnMapping.mode": "name",
                "delta.enableDeletionVectors": "true",
            } | properties
        else:
            mode = "merge-on-read"
            properties = {
                "format-version": "2",
                "write.delete.mode": mode,
                "write.update.mode": mode,
            } | properties
        pairs = ", ".join(f"'{name}'='{value}'" for name, value in properties.items())
        return f"TBLPROPERTIES ({pairs})"

    def sql(self, statement: str) -> None:
        self.spark.sql(statement.replace("{}", self.name))

    def insert(self, *emails: str) -> None:
        rows = ", ".join(f"(1L, '{email}', 'x', array('{email}'), DATE'2026-05-01')" for email in emails)
        self.sql("INSERT INTO {} SELECT /*+ COALESCE(1) */ * FROM VALUES [rows]".replace("[rows]", rows))

    def hits_and_truth(self, number: int, text: str = KEY) -> tuple[set[str], set[str], tuple]:
        outcome = self.find(f"out{number}")
        return set(hit_files(outcome)), _data(files_with(self.lake, text)), outcome.search.gaps


def _data(paths: set[str]) -> set[str]:
    return {path for path in paths if not path.endswith(".crc") or "/_delta_log/" in path}


@FORMATS
def test_deleted_rows_are_in_old_files_until_these_are_gone(
    spark: SparkSession, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _place(spark, tmp_path, format, monkeypatch)
    place.insert(KEY, OTHER)
    place.insert(OTHER)
    place.sql(f"DELETE FROM {{}} WHERE email = '{KEY}'")  # noqa: S608

    hits, truth, gaps = place.hits_and_truth(1)

    assert gaps == ()
    assert any(path.endswith(".parquet") for path in hits)
    assert hits == truth


@FORMATS
def test_an_orphan_is_searched(
    spark: SparkSession, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _place(spark, tmp_path, format, monkeypatch)
    place.insert(OTHER)
    source = next(path for path in place.lake.rglob("*.parquet") if "_delta_log" not in str(path))
    table = pq.ParquetFile(source).read()
    at = next(at for at, name in enumerate(table.column_names) if table.column(at)[0].as_py() == OTHER)
    orphan = table.set_column(at, table.schema.field(at), pa.array([KEY]))
    pq.write_table(orphan, source.with_name("orphan.parquet"))

    hits, truth, gaps = place.hits_and_truth(1)

    assert hits == truth == {str(source.with_name("orphan.parquet"))}
    assert gaps == ()


@FORMATS
def test_a_renamed_column_is_searched_in_old_files(
    spark: SparkSession, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _place(spark, tmp_path, format, monkeypatch)
    place.sql("ALTER TABLE {} RENAME COLUMN email TO mail")
    place.insert(KEY, OTHER)
    place.sql("ALTER TABLE {} RENAME COLUMN mail TO email")
    place.insert(OTHER)

    hits, truth, gaps = place.hits_and_truth(1)

    assert hits == truth
    assert gaps == ()


@FORMATS
def test_a_table_whose_history_is_gone_has_no_key(
    spark: SparkSession, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _place(spark, tmp_path, format, monkeypatch)
    place.insert(OTHER, "carl@example.com")

    hits, truth, gaps = place.hits_and_truth(1)

    assert (hits, truth, gaps) == (set(), set(), ())


@FORMATS
def test_copies_of_a_file_in_all_places_are_found(
    spark: SparkSession, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _place(spark, tmp_path, format, monkeypatch)
    place.insert(KEY, OTHER)
    file = next(path for path in place.lake.rglob("*.parquet") if "_delta_log" not in str(path))
    copies = plant(place.lake, file)
    place.insert(f"x{KEY}")

    hits, truth, gaps = place.hits_and_truth(1, f"'{KEY}'")

    assert copies | {str(file)} <= hits
    assert {path for path in hits if path.endswith(".parquet")} <= truth | copies
    assert gaps == ()


def test_rows_that_deletion_vectors_of_delta_hide_are_found_until_they_are_purged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _place(spark, tmp_path, "delta", monkeypatch, **{"delta.dataSkippingStatsColumns": "id"})
    place.insert(KEY, OTHER)
    (file,) = place.lake.rglob("part-*.parquet")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW erased AS SELECT '{KEY}' AS email")
    place.sql("MERGE INTO {} AS t USING erased AS e ON t.email = e.email WHEN MATCHED THEN DELETE")
    assert list(place.lake.rglob("deletion_vector_*.bin"))
    assert place.hits_and_truth(1) == ({str(file)}, {str(file)}, ())

    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    # REORG of Delta 4.0.0 calls a method that Spark 4.0.2 does not have.
    place.sql("INSERT OVERWRITE {} SELECT * FROM {}")
    assert place.hits_and_truth(2) == ({str(file)}, {str(file)}, ())
    place.sql("VACUUM {} RETAIN 0 HOURS")

    assert place.hits_and_truth(3) == (set(), set(), ())


def test_a_key_in_the_condition_of_a_deletion_stays_in_the_log_of_delta(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _place(spark, tmp_path, "delta", monkeypatch, **{"delta.dataSkippingStatsColumns": "id"})
    place.insert(OTHER)
    place.sql(f"DELETE FROM {{}} WHERE email = '{KEY}' OR id = 1")  # noqa: S608

    hits, truth, gaps = place.hits_and_truth(1)

    assert hits == truth == {str(place.lake / "_delta_log/00000000000000000002.json")}
    assert gaps == ()


def test_rows_that_deletion_vectors_of_iceberg_hide_are_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lakehouse.SPARK < "4":
        pytest.skip("Iceberg writes tables of version 3 on Spark 4.0")
    place = _place(spark, tmp_path, "iceberg", monkeypatch, **{"format-version": "3"})
    place.insert(KEY, OTHER)
    (file,) = place.lake.rglob("*.parquet")
    place.sql(f"DELETE FROM {{}} WHERE email = '{KEY}'")  # noqa: S608
    (vector,) = place.lake.rglob("*.puffin")

    hits, truth, gaps = place.hits_and_truth(1)

    assert (hits, gaps) == (truth, ())
    assert str(file) in hits
    content = vector.read_bytes()
    for number, broken in enumerate(
        (content[:-1], content.replace(b"deletion-vector-v1", b"deletion-vector-v9")), 2
    ):
        vector.write_bytes(broken)
        assert [gap.what for gap in place.hits_and_truth(number)[2]] == [str(vector)]


@pytest.mark.parametrize("kind", ["PARQUET", "AVRO"])
def test_keys_in_equality_deletes_and_the_rows_that_they_hide_are_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    place = _place(spark, tmp_path, "iceberg", monkeypatch)
    place.insert(KEY, OTHER)
    (file,) = place.lake.rglob("*.parquet")
    deletes = _delete_equal(spark, place, kind)
    assert [row.email for row in spark.table(place.name).collect()] == [OTHER]

    hits, truth, gaps = place.hits_and_truth(1)

    assert {str(file), deletes} <= hits
    assert (hits, gaps) == (truth, ())


def _delete_equal(spark: SparkSession, place: Lakehouse, kind: str) -> str:
    """Delete the rows of the key by an equality delete, which Spark does not write; return its file."""
    table, jvm = lakehouse.loaded(spark, place.name), spark._jvm
    iceberg, schema = jvm.org.apache.iceberg, table.schema()
    number = schema.findField("email").fieldId()
    ids = spark.sparkContext._gateway.new_array(jvm.int, 1)
    ids[0] = number
    columns = iceberg.types.TypeUtil.select(schema, jvm.java.util.Collections.singleton(number))
    row = iceberg.data.GenericRecord.create(schema)
    row.setField("day", jvm.java.time.LocalDate.parse("2026-05-01"))
    partition = iceberg.PartitionKey(table.spec(), schema)
    partition.partition(iceberg.data.InternalRecordWrapper(schema.asStruct()).wrap(row))
    path = str(place.lake / f"data/deletes.{kind.lower()}")
    factory = iceberg.data.GenericAppenderFactory(schema, table.spec(), ids, columns, None)
    output = table.encryption().encrypt(table.io().newOutputFile(path))
    writer = factory.newEqDeleteWriter(output, iceberg.FileFormat.fromString(kind), partition)
    deleted = iceberg.data.GenericRecord.create(columns)
    deleted.setField("email", KEY)
    writer.write(deleted)
    writer.close()
    table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
    spark.sql(f"REFRESH TABLE {place.name}")
    return path


def test_branches_of_iceberg_are_searched(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _place(spark, tmp_path, "iceberg", monkeypatch)
    place.insert(OTHER)
    lakehouse.loaded(spark, place.name).manageSnapshots().createBranch("audit").commit()
    place.sql(f"INSERT INTO {{}}.branch_audit VALUES (1L, '{KEY}', 'x', array('y'), DATE'2026-05-02')")  # noqa: S608

    hits, truth, gaps = place.hits_and_truth(1)

    assert hits == truth
    assert any(path.endswith(".parquet") for path in hits)
    assert gaps == ()


def test_change_data_and_checkpoints_of_delta_are_searched(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _place(spark, tmp_path, "delta", monkeypatch)
    terms = "'delta.enableChangeDataFeed'='true', 'delta.checkpointInterval'='2'"
    place.sql(f"ALTER TABLE {{}} SET TBLPROPERTIES ({terms})")
    place.insert(KEY, OTHER)
    place.sql(f"UPDATE {{}} SET note = 'y' WHERE email = '{KEY}'")  # noqa: S608
    place.insert(OTHER)
    place.insert(OTHER)

    hits, truth, gaps = place.hits_and_truth(1)

    assert hits == truth
    assert any("_change_data" in path for path in hits)
    assert any(path.endswith(".checkpoint.parquet") for path in hits)
    assert gaps == ()


def _place(
    spark: SparkSession, folder: Path, format: str, monkeypatch: pytest.MonkeyPatch, **properties: str
) -> Lakehouse:
    place = Lakehouse(spark, folder, format, **properties)
    monkeypatch.setenv("DQ_LAKE_ROOTS", str(place.lake))
    return place
