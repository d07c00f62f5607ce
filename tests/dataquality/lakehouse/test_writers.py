"""Whose word the manifests of Iceberg are, and what is believed of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import lakehouse
from fakes.reach import anywhere

from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.sources import NONE, Optimization
from dq.dataquality.check import check
from dq.dataquality.report import Report
from dq.dataquality.request import Request
from dq.dataquality.spark.dataset import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = lakehouse.MARKS
STATISTICS = frozenset({Optimization.STATISTICS})
HEAD = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: '${PLACE}', format: iceberg}]
schema:
  - name: orders
    properties:
      - {name: v, logicalType: integer, required: true, logicalTypeOptions: {maximum: 9}}
      - {name: k, logicalType: integer, required: true, partitioned: true, partitionKeyPosition: 1,
         logicalTypeOptions: {minimum: 50}}
"""


def both(spark: SparkSession, path: str, rules: tuple[str, ...] = ()) -> Report:
    """The report with statistics, after it was compared with the report of a scan."""
    parsed = parse(HEAD.encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    data = locate(parsed.contract, parsed.contract.objects[0], None, anywhere(PLACE=path))
    asked = Request(parsed.contract, data, spark=spark, optimizations=STATISTICS, rules=rules)
    scanned = Request(parsed.contract, data, spark=spark, optimizations=NONE, rules=rules)
    report = check(asked)
    assert report.results == check(scanned).results
    return report


def proofs(spark: SparkSession, path: str) -> dict[str, int]:
    """How many clauses of each of these checks are proven."""
    return {name: both(spark, path, (name,)).from_statistics for name in ("required", "bounds")}


ADDED = {"elsewhere": "hive", "among the table's own files": "{home}/data/more"}


@pytest.mark.parametrize("place", ADDED.values(), ids=ADDED)
def test_an_added_file_with_other_values_in_its_partition_column_proves_nothing_of_it(
    spark: SparkSession, tmp_path: Path, place: str
) -> None:
    name = f"{lakehouse.CATALOG}.shop.added{tmp_path.name.replace('-', '_')}"
    spark.sql(f"CREATE TABLE {name} (v INT, k INT) USING iceberg PARTITIONED BY (k)")
    home = str(lakehouse.loaded(spark, name).location())
    source = tmp_path / place.format(home=home)
    (source / "k=1").mkdir(parents=True)
    columns = {"v": pa.array([1], pa.int32()), "k": pa.array([77], pa.int32())}
    pq.write_table(pa.table(columns), source / "k=1" / "part.parquet")
    lakehouse.add_file(spark, name, source / "k=1" / "part.parquet", "k=1")

    report = both(spark, home, ("bounds",))

    assert {result.property: result.status for result in report.results} == {"v": "pass", "k": "fail"}
    assert report.from_statistics == (0 if place == "hive" else 1)


def test_what_iceberg_wrote_proves_and_names_its_writers(spark: SparkSession, tmp_path: Path) -> None:
    name = f"{lakehouse.CATALOG}.shop.own{tmp_path.name.replace('-', '_')}"
    spark.sql(f"CREATE TABLE {name} (v INT, k INT) USING iceberg PARTITIONED BY (k)")
    spark.sql("SELECT 1 AS v, 60 AS k UNION ALL SELECT 2, 70").writeTo(name).append()
    home = str(lakehouse.loaded(spark, name).location())

    assert proofs(spark, home) == {"required": 2, "bounds": 2}
