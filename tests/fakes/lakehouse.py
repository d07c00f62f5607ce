"""Spark with the jars of the lakehouse formats, and where its tables are.

A test module asks for it with `pytestmark = lakehouse.MARKS`: its `spark` is then a session in a JVM
of its own, which the other tests never see (see the fixture in `tests/conftest.py`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fakes.versions import INTERPRETED

from dq.dataquality.model import run_context
from dq.dataquality.table_metadata import MetadataFacts, TableLocation, list_files, read_facts
from dq.lake.storage import LocalFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

try:
    SPARK = version("pyspark")
except PackageNotFoundError:
    SPARK = ""
# Hudi's bundle for Spark 4.0 cannot be had everywhere; the one for Spark 3.5 runs the tests of Hudi.
FORMATS = ("iceberg", "delta", "avro") if run_context.line(SPARK) == "4.0" else tuple(run_context.JARS["3.5"])

MARKS = [
    pytest.mark.spark,
    pytest.mark.parametrize("spark", ["lakehouse"], indirect=True, scope="session"),
]

# The name of the Iceberg catalog that lies in a folder.
CATALOG = "ice"


def settings(home: Path) -> dict[str, str]:
    """What the session must be started with, its Iceberg catalog below `home` included."""
    return run_context.settings(SPARK, FORMATS) | {
        f"spark.sql.catalog.{CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{CATALOG}.type": "hadoop",
        f"spark.sql.catalog.{CATALOG}.warehouse": str(home / "iceberg"),
        # The plans over logs are large and read once: a quarter of the CPU went into compiling them.
        **INTERPRETED,
        # Delta makes 50 tasks of every look at a log, small as it is.
        "spark.databricks.delta.snapshotPartitions": "2",
        # And 10,000 of a VACUUM, which lists folders with as many tasks as this lets it.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }


def loaded(spark: SparkSession, name: str) -> Any:
    """Iceberg's own table of this name, for what needs no SQL extension this way."""
    jvm: Any = spark._jvm
    spark.sql(f"REFRESH TABLE {name}")
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)


def add_file(spark: SparkSession, name: str, file: Path, partition: str) -> None:
    """Takes a Parquet file of another writer into an Iceberg table, as its procedure `add_files` does.

    Spark 3.5 knows no CALL without Iceberg's extensions.
    """
    table = loaded(spark, name)
    jvm: Any = spark._jvm
    iceberg = jvm.org.apache.iceberg
    names = iceberg.mapping.MappingUtil.create(table.schema())
    written = iceberg.mapping.NameMappingParser.toJson(names)
    table.updateProperties().set("schema.name-mapping.default", written).commit()
    given = table.io().newInputFile(str(file))
    metrics = iceberg.parquet.ParquetUtil.fileMetrics(given, iceberg.MetricsConfig.getDefault(), names)
    builder = iceberg.DataFiles.builder(table.spec()).withInputFile(given).withFormat("parquet")
    table.newAppend().appendFile(builder.withMetrics(metrics).withPartitionPath(partition).build()).commit()
    spark.sql(f"REFRESH TABLE {name}")


def by_log(path: str, form: str) -> MetadataFacts:
    """What `dq tables` says of a table by its log alone; in the place of broken promises its columns."""
    files, place = LocalFiles(), TableLocation(path, form)
    found = list_files(files, place, datetime.now(UTC))
    return read_facts(files, found, place, lambda schema, _: [str(schema)])


def compact(spark: SparkSession, name: str) -> None:
    """Writes all files of an Iceberg table anew, without the rows that were deleted."""
    jvm: Any = spark._jvm
    actions = jvm.org.apache.iceberg.spark.actions.SparkActions.get(spark._jsparkSession)
    actions.rewriteDataFiles(loaded(spark, name)).option("rewrite-all", "true").execute()
    spark.sql(f"REFRESH TABLE {name}")
