"""`dq import delta` says what Spark's own reader of the table says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes import lakehouse
from fakes.command import Place

from dq.contracts.types import catalog_type
from dq.contracts.yaml.parse import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = lakehouse.MARKS
COLUMNS = """
  id BIGINT NOT NULL COMMENT 'It is "the" id', price DECIMAL(9,2), at TIMESTAMP, seen TIMESTAMP_NTZ,
  ok BOOLEAN,
  who STRUCT<name: STRING, tags: ARRAY<STRING>>, counts MAP<STRING, INT>, small SMALLINT, tiny TINYINT,
  half FLOAT, whole DOUBLE, raw BINARY, day DATE, area STRING
"""


def said(place: Place) -> dict[str, tuple[str, bool, str | None]]:
    [one] = read(place.folder / "t.odcs.yaml").objects
    assert [prop.column for prop in one.partition_keys()] == ["day", "area"]
    return {
        prop.column: (str(catalog_type(prop)), bool(prop.required), prop.description)
        for prop in one.properties
    }


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_delta_table_is_what_spark_says_of_it(
    spark: SparkSession, tmp_path: Path, checkpoint: bool
) -> None:
    name = f"delta.`{tmp_path}/lake/t`"
    spark.sql(f"CREATE TABLE {name} ({COLUMNS}) USING delta PARTITIONED BY (day, area)")
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (late STRING COMMENT 'Came later')")
    if checkpoint:
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.checkpointInterval' = '2')")
        for _ in range(4):
            rows = spark.sql("SELECT 1L AS id, DATE'2026-05-01' AS day, 'a' AS area")
            rows.write.format("delta").mode("append").save(f"{tmp_path}/lake/t")
        commits = sorted((tmp_path / "lake/t/_delta_log").glob("*.json"))
        for old in commits[:-1]:
            old.unlink()
    place = Place(tmp_path)

    ran = place.dq("import", "delta", "lake/t", "--output", "t.odcs.yaml")

    assert ran.code == 0, ran.err
    wanted = {
        field.name: (field.dataType.simpleString(), not field.nullable, field.metadata.get("comment"))
        for field in spark.table(name).schema
    }
    assert said(place) == wanted
    refused = place.dq("import", "parquet", "lake/t")
    assert (refused.code, "is a Delta table" in refused.err) == (2, True)
