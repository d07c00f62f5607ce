"""Partitions beside their table: of those that nobody asks for, nothing is opened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.reach import anywhere

from dq.contracts.layout import Layout, PlacedPartition, parse_layout
from dq.contracts.outcome import ReadError
from dq.contracts.yaml.parse import parse
from dq.dataquality.spark.columnar_files import MOST_FOLDERS
from dq.dataquality.spark.dataset import Dataset, locate, open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers: [{{server: lake, type: local, path: '{lake}', format: parquet}}]
schema:
  - name: orders
    properties:
      - name: run
        logicalType: {logical}
        physicalType: {physical}
        partitioned: true
        partitionKeyPosition: 1
      - {{name: id, logicalType: integer, physicalType: bigint}}
"""


def dataset(folder: Path, logical: str, physical: str) -> Dataset:
    """A table, one partition per staging root, of which the last alone was kept on disk."""
    (folder / "lake").mkdir()
    text = CONTRACT.format(lake=folder / "lake", logical=logical, physical=physical)
    contract = parse(text.encode(), "orders.odcs.yaml").contract
    assert contract is not None
    last = folder / f"staged-{MOST_FOLDERS}" / f"run={MOST_FOLDERS}"
    last.mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), last / "part-0.parquet")
    placed = tuple(
        PlacedPartition((("run", str(number)),), str(folder / f"staged-{number}" / f"run={number}"))
        for number in range(MOST_FOLDERS + 1)
    )
    return replace(locate(contract, contract.objects[0], None, anywhere()), external_partitions=placed)


@pytest.mark.spark
@pytest.mark.parametrize(("logical", "physical"), [("integer", "int"), ("string", "string")])
def test_one_of_hundreds_of_staging_folders_is_read_alone(
    spark: SparkSession, tmp_path: Path, logical: str, physical: str
) -> None:
    data = dataset(tmp_path, logical, physical)

    frame = open_table(spark, data, [{"run": str(MOST_FOLDERS)}])

    assert frame.count() == 2
    with pytest.raises(ReadError, match=f"from {MOST_FOLDERS + 1} folders, more than {MOST_FOLDERS}"):
        open_table(spark, data)


@pytest.mark.spark
def test_the_table_is_not_opened_for_a_partition_beside_it(spark: SparkSession, tmp_path: Path) -> None:
    data = dataset(tmp_path, "string", "string")
    (tmp_path / "lake" / "run=a").mkdir()
    (tmp_path / "lake" / "run=a" / "part-0.parquet").write_bytes(b"PAR1, and no footer")
    data = replace(data, external_partitions=data.external_partitions[-1:])

    frame = open_table(spark, data, [{"run": str(MOST_FOLDERS)}])

    assert frame.count() == 2


@pytest.mark.spark
def test_of_a_staging_folder_with_other_partitions_only_the_requested_are_opened(
    spark: SparkSession, tmp_path: Path
) -> None:
    data = dataset(tmp_path, "string", "string")
    layout = parse_layout("{run}")
    assert isinstance(layout, Layout)
    staged = tmp_path / "staged"
    for run in ("good", "bad"):
        (staged / run).mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int64())}), staged / "good" / "part-0.parquet")
    (staged / "bad" / "part-0.parquet").write_bytes(b"PAR1, and no footer")
    placed = tuple(PlacedPartition((("run", run),), str(staged / run)) for run in ("good", "bad"))
    data = replace(data, layout=layout, external_partitions=placed)

    frame = open_table(spark, data, [{"run": "good"}])

    assert frame.count() == 3
