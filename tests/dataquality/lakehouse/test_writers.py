"""Whose word the log of Delta and the manifests of Iceberg are, and what is believed of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import lakehouse
from fakes.reach import anywhere

from dq.contracts.yaml.parse import parse
from dq.dataquality import Report, Request, check
from dq.dataquality.answers.levers import NONE, Lever
from dq.dataquality.spark.readers.open import locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = lakehouse.MARKS
STATISTICS = frozenset({Lever.STATISTICS})
HEAD = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: '${PLACE}', format: %s}]
schema:
  - name: orders
    properties:
      - {name: v, logicalType: integer, required: true, logicalTypeOptions: {maximum: 9}}
      - {name: k, logicalType: integer, required: true, partitioned: true, partitionKeyPosition: 1,
         logicalTypeOptions: {minimum: 50}}
"""


def both(spark: SparkSession, form: str, path: str, rules: tuple[str, ...] = ()) -> Report:
    """The report with statistics, after it was compared with the report of a scan."""
    parsed = parse((HEAD % form).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    data = locate(parsed.contract, parsed.contract.objects[0], None, anywhere(PLACE=path))
    asked = Request(parsed.contract, data, spark=spark, levers=STATISTICS, rules=rules)
    scanned = Request(parsed.contract, data, spark=spark, levers=NONE, rules=rules)
    report = check(asked)
    assert report.results == check(scanned).results
    return report


def proofs(spark: SparkSession, form: str, path: str) -> dict[str, int]:
    """How many clauses of each of these checks are proven."""
    return {name: both(spark, form, path, (name,)).proven for name in ("required", "bounds")}


@pytest.fixture
def delta(spark: SparkSession, tmp_path: Path) -> Path:
    spark.sql("SELECT 1 AS v, 60 AS k").write.format("delta").save(str(tmp_path / "orders"))
    spark.sql("SELECT 2 AS v, 70 AS k").write.format("delta").mode("append").save(str(tmp_path / "orders"))
    return tmp_path / "orders"


def signed(log: Path, engine: str | None) -> None:
    """The commit with another engine; None: without any."""
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"].pop("engineInfo")
            line["commitInfo"] |= {"engineInfo": engine} if engine is not None else {}
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    # Hadoop compares it with what it wrote.
    (log.parent / f".{log.name}.crc").unlink(missing_ok=True)


ENGINES = {
    "Spark": ("Apache-Spark/4.0.1 Delta-Lake/4.0.0", {"required": 2, "bounds": 2}),
    "an engine that made 0 a bound": ("Trino 390", {"required": 2, "bounds": 0}),
    "no name": (None, {"required": 2, "bounds": 0}),
}


@pytest.mark.parametrize(("engine", "proven"), ENGINES.values(), ids=ENGINES)
def test_a_file_of_delta_proves_what_its_commits_engine_is_believed(
    spark: SparkSession, delta: Path, engine: str | None, proven: dict[str, int]
) -> None:
    signed(delta / "_delta_log" / f"{1:020}.json", engine)

    assert proofs(spark, "delta", str(delta)) == proven


def test_a_file_of_a_commit_that_the_log_has_no_more_is_nobodys(spark: SparkSession, delta: Path) -> None:
    jvm: Any = spark._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog
    log.forTable(spark._jsparkSession, str(delta)).checkpoint()
    (delta / "_delta_log" / f"{0:020}.json").unlink()
    log.clearCache()

    assert proofs(spark, "delta", str(delta)) == {"required": 2, "bounds": 0}


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

    report = both(spark, "iceberg", home, ("bounds",))

    assert {result.property: result.status for result in report.results} == {"v": "pass", "k": "fail"}
    assert report.proven == (0 if place == "hive" else 1)


def test_what_iceberg_wrote_proves_and_names_its_writers(spark: SparkSession, tmp_path: Path) -> None:
    name = f"{lakehouse.CATALOG}.shop.own{tmp_path.name.replace('-', '_')}"
    spark.sql(f"CREATE TABLE {name} (v INT, k INT) USING iceberg PARTITIONED BY (k)")
    spark.sql("SELECT 1 AS v, 60 AS k UNION ALL SELECT 2, 70").writeTo(name).append()
    home = str(lakehouse.loaded(spark, name).location())

    assert proofs(spark, "iceberg", home) == {"required": 2, "bounds": 2}
