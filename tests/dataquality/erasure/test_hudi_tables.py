"""Keys in tables that Hudi wrote: in file slices, log files, change data and the metadata table, and gone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes import lakehouse
from fakes.erasure import KEY, OTHER, PLACES, Place, files_with, hit_files, plant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    *lakehouse.MARKS,
    pytest.mark.skipif("hudi" not in lakehouse.FORMATS, reason="Hudi's jar is for Spark 3.5"),
]
OPTIONS = {
    "hoodie.table.name": "people",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.metadata.enable": "false",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
}
MERGED = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
METADATA = {"hoodie.metadata.enable": "true", "hoodie.datasource.write.recordkey.field": "email,id"}


class HudiTable(Place):
    """A table `people` of Hudi; `options` are those of each write."""

    def __init__(self, spark: SparkSession, folder: Path, **options: str) -> None:
        super().__init__(folder, "hudi")
        self.spark, self.options = spark, OPTIONS | options

    def write(self, operation: str, *people: tuple[int, str]) -> None:
        rows = [(number, email, "x", [email], "2026-05-01") for number, email in people]
        schema = "id long, email string, note string, contacts array<string>, day string"
        frame = self.spark.createDataFrame(rows, schema).coalesce(1)
        writer = frame.write.format("hudi").options(**self.options)
        writer.option("hoodie.datasource.write.operation", operation).mode("append").save(str(self.lake))


def _hits_and_truth(place: Place) -> tuple[set[str], set[str], tuple]:
    outcome = place.find()
    checksums = {path for path in files_with(place.lake, KEY) if path.endswith(".crc")}
    return set(hit_files(outcome)), files_with(place.lake, KEY) - checksums, outcome.search.gaps


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DQ_LAKE_ROOTS", str(tmp_path))


@pytest.mark.parametrize(
    ("options", "logs"),
    [
        (MERGED | METADATA, 2),
        (MERGED | {"hoodie.logfile.data.block.format": "parquet"}, 1),
        ({"hoodie.table.cdc.enabled": "true"}, 2),
        (MERGED | {"hoodie.write.table.version": "6"}, 1),
    ],
    ids=["metadata table", "parquet blocks", "change data", "table version 6"],
)
@pytest.mark.usefixtures("roots")
def test_keys_are_in_the_files_that_the_oracle_names(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], logs: int
) -> None:
    place = HudiTable(spark, tmp_path, **options)
    place.write("insert", (1, KEY), (2, OTHER))
    place.write("upsert", (1, KEY))
    place.write("delete", (1, KEY))

    hits, truth, gaps = _hits_and_truth(place)

    assert gaps == ()
    assert hits == truth
    assert sum("/day=2026-05-01/." in path for path in hits) == logs
    assert any("/.hoodie/metadata/" in path for path in hits) == ("hoodie.metadata.enable" in options)


@pytest.mark.usefixtures("roots")
def test_copies_in_all_places_are_found_and_a_table_without_the_key_has_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = HudiTable(spark, tmp_path / "other")
    source.write("insert", (1, KEY))
    place = HudiTable(spark, tmp_path)
    place.write("insert", (1, OTHER), (2, f"x{KEY}"))
    assert _hits_and_truth(place)[::2] == (set(), ())

    (file,) = source.lake.rglob("*.parquet")
    copies = plant(place.lake, file)
    outcome = place.find("again")

    assert set(hit_files(outcome)) == copies
    assert len(copies) == len(PLACES)
    assert outcome.search.gaps == ()
