"""TABLE: which source of statistics a table has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dq.dataquality.shortcuts.statistics import delta, iceberg, parquet
from dq.dataquality.shortcuts.statistics.facts import Source
from dq.dataquality.shortcuts.statistics.relation import certain, relation
from dq.dataquality.spark.readers.open import Dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOURCES: dict[str, Source] = {
    "parquet": parquet.files,
    "iceberg": iceberg.files,
    "delta": delta.files,
}


def source_of(frame: DataFrame, dataset: Dataset | None) -> Source | None:
    """The source for a frame: by the format of the path, else, and for a table by its name, by its plan.

    The contract need not say the format of a table that Spark's catalog knows.
    """
    if dataset is not None and dataset.path is not None:
        return SOURCES.get(dataset.format or "")
    return SOURCES[certain(lambda: _format(frame)) or "parquet"]


def _format(frame: DataFrame) -> str:
    """What the frame may be, by the class of its leaf; the source will look closer."""
    if relation(frame, "DataSourceV2Relation") is not None:
        return "iceberg"
    leaf = relation(frame, "LogicalRelation")
    made = leaf.relation().location().getClass().getName() if leaf is not None else ""
    return "delta" if made.startswith("org.apache.spark.sql.delta.") else "parquet"
