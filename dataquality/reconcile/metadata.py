"""Differences of partitions that follow from files and statistics, without reading a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dq.dataquality.answers.sources import source_of
from dq.dataquality.answers.statistics import ColumnStatistics, FileStatistics, StatisticsRequest, is_cached
from dq.dataquality.model.column import Column
from dq.dataquality.reconcile.columns import ComparedColumn
from dq.dataquality.reconcile.outcome import Partition
from dq.dataquality.spark.columnar_files import NULL_PARTITION
from dq.dataquality.spark.dataset import FILE_FORMATS, Dataset, files_of
from dq.dataquality.spark.session import attempt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Sizes = tuple[int | None, int | None]


def same_files(spark: SparkSession, left: Dataset, right: Dataset, keys: Sequence[str]) -> list[Partition]:
    """Return the partitions that are the same files on both sides, read in the same way."""
    if (left.format, left.text) != (right.format, right.text):
        return []
    if left.path is None or left.format not in FILE_FORMATS:
        is_same = (left.path, left.table) == (right.path, right.table)
        return [()] if is_same else []
    files = [_files(spark, side, keys) for side in (left, right)]
    if files[0] is None or files[1] is None:
        return []
    if files[0] == files[1]:
        return [()]
    return [partition for partition, names in files[0].items() if files[1].get(partition) == names]


def one_sided(
    spark: SparkSession, left: Dataset, right: Dataset, keys: Sequence[str]
) -> Iterator[tuple[Partition, bool]]:
    """Yield the partitions that have files on one side only, and whether it is the left one."""
    files = [_files(spark, side, keys) for side in (left, right)]
    if files[0] is None or files[1] is None:
        return
    for partition in files[0].keys() ^ files[1].keys():
        yield partition, partition in files[0]


def partition_count(spark: SparkSession, side: Dataset, keys: Sequence[str]) -> int | None:
    """Return the number of partitions that have files, or None if unknown."""
    files = _files(spark, side, keys)
    return None if files is None else len(files)


def _files(spark: SparkSession, side: Dataset, keys: Sequence[str]) -> dict[Partition, frozenset[str]] | None:
    """Return the files of each partition, or None if unknown: of a catalog, a table with a log, or with
    partitions elsewhere.
    """
    if side.path is None or side.format not in FILE_FORMATS or side.external_partitions:
        return None
    if {key.lower() for key in keys} != {name.lower() for name in side.partitions}:
        return None
    partitions: dict[Partition, set[str]] = {}
    for file in files_of(spark, side)[0]:
        values = side.values_of(file) if keys else {}
        if values is None or any(key.lower() not in values for key in keys):
            return None
        partition = tuple((key, _value(values[key.lower()])) for key in keys)
        partitions.setdefault(partition, set()).add(file)
    return {partition: frozenset(names) for partition, names in partitions.items()}


def _value(text: str) -> str | None:
    return None if text == NULL_PARTITION else text


def statistics_differences(
    left: tuple[DataFrame, Dataset],
    right: tuple[DataFrame, Dataset],
    columns: Sequence[ComparedColumn],
    keys: Sequence[str],
) -> Iterator[tuple[Partition, str, Sizes]]:
    """Yield the partitions whose row counts, NULLs or bounds differ, with the first difference and the row
    counts.

    Only statistics of writers that are not known to write them wrongly are compared, and only columns of the
    same type.
    """
    sides = [
        _totals(*side, [column.name if is_left else column.right_name for column in columns], keys)
        for side, is_left in ((left, True), (right, False))
    ]
    if sides[0] is None or sides[1] is None:
        return
    for partition in sides[0].keys() & sides[1].keys():
        left_files, right_files = sides[0][partition], sides[1][partition]
        sizes = _rows(left_files), _rows(right_files)
        reason = _difference(left_files, right_files, sizes, columns)
        if reason:
            yield partition, reason, sizes


def _totals(
    frame: DataFrame, side: Dataset, names: Sequence[str], keys: Sequence[str]
) -> Mapping[Partition, Sequence[FileStatistics]] | None:
    """Return the statistics of the files of each partition, or None if unknown."""
    if not hasattr(frame, "_jdf") or is_cached(frame):
        return None
    source = source_of(frame, side)
    if source is None:
        return None
    request = StatisticsRequest(bounds=frozenset(Column((name,)) for name in {*names, *keys}))
    files = attempt(lambda: source(frame, side, (), request))
    if not isinstance(files, Sequence):
        return None
    partitions: dict[Partition, list[FileStatistics]] = {}
    for file in files:
        partition = partition_of_file(file, side, keys)
        if partition is None:
            return None
        partitions.setdefault(partition, []).append(file)
    return partitions


def partition_of_file(file: FileStatistics, side: Dataset, keys: Sequence[str]) -> Partition | None:
    """Return the partition of a file, by the names `keys`, or None if unknown."""
    if not keys:
        return ()
    if side.format in FILE_FORMATS:
        values = side.values_of(file.path)
        if values is not None and all(key.lower() in values for key in keys):
            return tuple((key, _value(values[key.lower()])) for key in keys)
        return None
    partition: list[tuple[str, str | None]] = []
    for key in keys:
        facts = file.statistics_of(Column((key,)))
        if facts.nulls == file.rows:
            partition.append((key, None))
        elif facts.nulls == 0 and facts.least is not None and facts.least == facts.greatest:
            partition.append((key, str(facts.least)))
        else:
            return None
    return tuple(partition)


def _rows(files: Sequence[FileStatistics]) -> int | None:
    return sum(file.rows for file in files) if all(file.is_complete for file in files) else None


def _difference(
    left: Sequence[FileStatistics],
    right: Sequence[FileStatistics],
    sizes: Sizes,
    columns: Sequence[ComparedColumn],
) -> str:
    """Return the first difference of the statistics, or ""."""
    if None in sizes:
        return ""
    if sizes[0] != sizes[1]:
        return f"{sizes[0]:,} and {sizes[1]:,} rows"
    for column in columns:
        if column.left_type != column.right_type or column.tolerance is not None:
            continue
        facts = _column(left, column.name), _column(right, column.right_name)
        nulls, bounds = [side[0] for side in facts], [side[1] for side in facts]
        if None not in nulls and nulls[0] != nulls[1]:
            return f"{nulls[0]:,} and {nulls[1]:,} NULLs in {column.name}"
        if None not in bounds and bounds[0] != bounds[1]:
            return f"other bounds of {column.name}"
    return ""


def _column(files: Sequence[FileStatistics], name: str) -> tuple[int | None, tuple[Any, Any] | None]:
    """Return the NULLs and the least and greatest value of a column, None where unknown."""
    facts: list[tuple[FileStatistics, ColumnStatistics]] = [
        (file, file.statistics_of(Column((name,)))) for file in files if file.rows
    ]
    nulls = [column.nulls for _, column in facts]
    total = None if None in nulls else sum(number for number in nulls if number is not None)
    with_values = [column for file, column in facts if column.nulls != file.rows]
    if not with_values or any(
        not column.attained or column.least is None or column.greatest is None for column in with_values
    ):
        return total, None
    lows: list[Any] = [column.least for column in with_values]
    highs: list[Any] = [column.greatest for column in with_values]
    return total, (min(lows), max(highs))
