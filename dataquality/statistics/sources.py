"""TABLE: which source of statistics a table has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dq.dataquality.dataset import Dataset
from dq.dataquality.statistics import delta, iceberg, parquet
from dq.dataquality.statistics.facts import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOURCES: dict[str, Source] = {
    "parquet": parquet.SOURCE,
    "iceberg": iceberg.SOURCE,
    "delta": delta.SOURCE,
}


def source_of(frame: DataFrame, dataset: Dataset | None) -> Source | None:
    """The source for a frame, by the format of its dataset.

    A frame that was handed in, and a table of Spark's catalog whose contract says no format, are tried as
    Parquet, which looks at the plan. Through Spark Connect nothing can be seen of a plan.
    """
    if not hasattr(frame, "_jdf"):
        return None
    return SOURCES.get((dataset.format if dataset else None) or "parquet")
