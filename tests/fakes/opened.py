"""Data as a frame, with the rows of some partitions alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from dq.dataquality.spark.columnar_files import only_partitions
from dq.dataquality.spark.dataset import Dataset, open_table


def open_frame(
    spark: SparkSession, dataset: Dataset, partitions: Sequence[Mapping[str, str]] | None = None
) -> DataFrame:
    """The data as a DataFrame; with `partitions`, only the rows of these."""
    frame = open_table(spark, dataset, partitions)
    return only_partitions(frame, partitions) if partitions else frame
