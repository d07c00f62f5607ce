"""Tables of Iceberg and Delta that have a past: rows that were deleted, and rows that were updated."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fakes import lakehouse
from oracle.tables import Layout, Table
from oracle.writers import frame_of

from dq.contracts.types import DataType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A column of its own tells the rows apart that are to go.
NUMBER = ("number", DataType("bigint"))
_OPTIONS = {
    "iceberg": {
        "format-version": "2",
        "write.delete.mode": "{mode}",
        "write.update.mode": "{mode}",
        "write.parquet.row-group-size-bytes": "1024",
    },
    "delta": {
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": "{vectors}",
        "delta.dataSkippingNumIndexedCols": "{indexed}",
    },
}


def numbered(table: Table) -> Table:
    """The table with a number in every row."""
    rows = tuple({**row, NUMBER[0]: at} for at, row in enumerate(table.rows))
    return replace(table, columns=(*table.columns, NUMBER), rows=rows)


class Lakehouse:
    """Rows of a numbered table, written with as many others that are deleted again, and updated in place.

    The layout's dictionary says whether deletions are kept beside the files or rewrite them.
    """

    def __init__(self, format: str) -> None:
        self.format = format
        self.database = f"d{uuid.uuid4().hex[:12]}"

    def root(self, spark: SparkSession, folder: Path) -> Path:
        if self.format == "delta":
            return folder
        self.database = f"d{uuid.uuid4().hex[:12]}"
        return Path(str(spark.conf.get(f"spark.sql.catalog.{lakehouse.CATALOG}.warehouse"))) / self.database

    def __call__(self, spark: SparkSession, table: Table, layout: Layout, folder: Path) -> None:
        name = f"{lakehouse.CATALOG}.{self.database}.{folder.name}"
        if self.format == "delta":
            name = f"delta.`{folder}`"
        kept = [row for row in table.rows if row[NUMBER[0]] >= 0]
        gone = [{**row, NUMBER[0]: -1 - at} for at, row in enumerate(reversed(kept))]
        held = frame_of(spark, table, [*kept, *gone])
        columns = ", ".join(f"`{one}` {kind}" for one, kind in _ddl(spark, table))
        parts = f"PARTITIONED BY ({table.part})" if table.part else ""
        mode = "merge-on-read" if layout.dictionary else "copy-on-write"
        vectors = str(layout.dictionary).lower()
        indexed = "32" if layout.statistics[0] else "0"
        options = ", ".join(
            f"'{key}'='{value.format(mode=mode, vectors=vectors, indexed=indexed)}'"
            for key, value in _OPTIONS[self.format].items()
        )
        spark.sql(f"CREATE TABLE {name} ({columns}) USING {self.format} {parts} TBLPROPERTIES ({options})")
        held.repartition(layout.files).createOrReplaceTempView("oracle_rows")
        spark.sql(f"INSERT INTO {name} SELECT * FROM oracle_rows")  # noqa: S608
        spark.sql(f"DELETE FROM {name} WHERE number < 0")  # noqa: S608
        spark.sql(f"UPDATE {name} SET number = number WHERE number % 2 = 1")  # noqa: S608


def _ddl(spark: SparkSession, table: Table) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in frame_of(spark, table, []).schema.fields]
