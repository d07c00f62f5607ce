"""Which partitions a check of one opens with the same columns: those that may be asked together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dq.contracts.shared.errors import Unreadable
from dq.dataquality.backtest.partitions import FoundPartition
from dq.dataquality.spark.readers.columnar import MOST_FILES as MOST_FILES
from dq.dataquality.spark.readers.columnar import columns_of
from dq.dataquality.spark.readers.open import FILES, TEXTS, Dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def alike(data: DataFrame | Dataset, found: Sequence[FoundPartition]) -> list[Sequence[FoundPartition]]:
    """The partitions in groups, each of those whose columns are the same.

    A table's columns are those of all of its partitions. Of plain files each tells its own, and a partition
    whose files differ, or cannot be looked at, is in no group. Of CSV only the values tell (see `plain`), and
    of JSON each partition alone.
    """
    if not isinstance(data, Dataset) or data.table is not None or data.format not in FILES:
        return [found]
    if data.format in TEXTS:
        return [found] if data.format == "csv" else []
    groups: dict[object, list[FoundPartition]] = {}
    for one in found:
        told = _columns(one, data.format)
        if told is not None:
            groups.setdefault(told, []).append(one)
    return list(groups.values())


def _columns(one: FoundPartition, form: str) -> object:
    """The columns of a partition's files, None where they differ or are not known."""
    if one.files is None:
        return ()
    try:
        told = {(file.names, file.types) for file in columns_of(one.files, form)}
    except Unreadable:
        return None
    return told.pop() if len(told) == 1 else None


def plain(data: DataFrame | Dataset, table: DataFrame) -> bool:
    """Whether partitions that were opened together have the columns that each has when it is opened alone.

    A reader of CSV notes on a column that a value is none of its type, or that a file lacks it. Without any
    such note, no part of the data has one.
    """
    if not isinstance(data, Dataset) or data.table is not None or data.format not in TEXTS:
        return True
    return not any(each.metadata for each in table.schema.fields)
