"""TABLE: the formats that data can lie in, by the word of a contract."""

from __future__ import annotations

from typing import Literal, get_args

DataFormat = Literal["parquet", "orc", "avro", "json", "csv", "iceberg", "delta", "hudi"]

FORMATS: tuple[str, ...] = get_args(DataFormat)

LAKEHOUSE = frozenset({"iceberg", "delta", "hudi"})
"""Tables with a log of commits, which say themselves what their columns and partitions are."""
