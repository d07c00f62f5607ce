"""One Parquet file's footer to facts; runs on the driver or in a task, without Spark."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dq.contracts.types import DataType
from dq.dataquality.model.column import Column
from dq.dataquality.shortcuts.statistics.dictionary import CERTAIN_FROM, chunks_of, values_of
from dq.dataquality.shortcuts.statistics.facts import Facts, File
from dq.dataquality.shortcuts.statistics.writers import believed, counts_rows
from dq.lake import parquet

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.parquet import ColumnChunkMetaData, ColumnSchema, ParquetSchema


@dataclass(frozen=True, slots=True)
class Asked:
    """A column as the frame has it, exactly so written, and whether its values are wanted."""

    column: Column
    type: DataType
    values: bool


def read(source: NativeFile, path: str, asked: tuple[Asked, ...]) -> File:
    """The file's rows, and what its footer and its dictionaries say about these columns.

    Raises OSError and pyarrow's errors, which are ValueErrors or OSErrors, for what is no Parquet file, and
    ValueError for one that says two numbers of rows.
    """
    import pyarrow.parquet as pq

    meta = pq.read_metadata(source)
    leaves = _leaves(meta.schema)
    groups = [meta.row_group(index) for index in range(meta.num_row_groups)]
    if sum(group.num_rows for group in groups) != meta.num_rows:
        raise ValueError(f"{path}: the footer and its row groups have different numbers of rows")
    writers = (meta.created_by or "",)
    wanted = {
        one: leaf
        for one in asked
        if (leaf := leaves.get(one.column)) is not None
        and _fits(meta.schema, leaf, one.type)
        # Spark fails where it cannot read the values, and so does whoever asks for them.
        and not any(parquet.unreadable_chunk(group.column(leaf)) for group in groups)
    }
    chunks = chunks_of(source, meta) if any(one.values for one in wanted) else []
    facts = {}
    for one, leaf in wanted.items():
        found = _bounds([group.column(leaf) for group in groups if group.num_rows], one.type)
        if one.values:
            values = values_of(source, [group[leaf] for group in chunks], one.type)
            found = Facts(found.nulls, found.least, found.greatest, found.attained, values)
        facts[one.column] = believed(found, writers, one.type.name, nested=len(one.column.steps) > 1)
    return File(path, meta.num_rows, counts_rows(writers), facts, writers)


def _leaves(schema: ParquetSchema) -> dict[Column, int]:
    """Columns without anything repeated on the way; names that differ only by case stand for nothing."""
    # A dot in a name cannot be told from a struct's field; such a path resolves to no column.
    ways = [tuple(schema.column(index).path.split(".")) for index in range(len(schema))]
    spelled: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for way in ways:
        for depth in range(1, len(way) + 1):
            spelled.setdefault(tuple(map(str.lower, way[:depth])), set()).add(way[:depth])
    seen = Counter(ways)
    twice = {spelling for same in spelled.values() if len(same) > 1 for spelling in same}
    return {
        Column(way): index
        for index, way in enumerate(ways)
        if schema.column(index).max_repetition_level == 0
        and seen[way] == 1
        and not any(way[:depth] in twice for depth in range(1, len(way) + 1))
    }


def _fits(schema: ParquetSchema, leaf: int | None, kind: DataType) -> bool:
    """Whether Spark reads this leaf as the type, with the same values, and its statistics are read here."""
    if leaf is None or kind.name == "binary" or leaf_type(schema.column(leaf)) != kind:
        return False
    return kind.name != "decimal" or schema.column(leaf).physical_type in ("INT32", "INT64")


def leaf_type(column: ColumnSchema) -> DataType | None:
    """Return the type as which Spark reads a leaf without changing a value; None where that is uncertain."""
    logical = json.loads(column.logical_type.to_json())
    if logical["Type"] == "Decimal":
        return parquet.leaf_type(column)
    if (
        logical["Type"] not in _UNCHANGED
        or logical.get("isSigned") is False
        or column.physical_type in ("INT96", "FIXED_LEN_BYTE_ARRAY")
    ):
        return None
    kind = parquet.leaf_type(column)
    # The zone of an older writer's instant is known to the converted type alone, and not to pyarrow.
    instant = kind is not None and kind.name == "timestamp"
    return None if instant and not logical["isAdjustedToUTC"] else kind


_UNCHANGED = frozenset({"None", "String", "Date", "Int", "Timestamp"})
_PYTHON: dict[str, type] = {
    "boolean": bool,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int),
    "date": dt.date,
    "timestamp": dt.datetime,
    "timestamp_ntz": dt.datetime,
}
# Of floats, only the number of NULLs is used.
_BOUNDED = frozenset({*_PYTHON, "decimal"})


def _bounds(chunks: list[ColumnChunkMetaData], kind: DataType) -> Facts:
    nulls: int | None = 0
    lows: list[Any] = []
    highs: list[Any] = []
    bounded = kind.name in _BOUNDED
    for chunk in chunks:
        found = chunk.statistics if chunk.is_stats_set else None
        absent = found.null_count if found is not None and found.has_null_count else None
        if absent is not None and not 0 <= absent <= chunk.num_values:
            absent = None
        nulls = None if nulls is None or absent is None else nulls + absent
        # A chunk of NULLs only has no bounds, and needs none.
        if absent == chunk.num_values or not bounded:
            continue
        low, high = _pair(found, kind) if found is not None else (None, None)
        if low is None or high is None:
            bounded = False
        else:
            lows.append(low)
            highs.append(high)
    if not bounded or not lows:
        return Facts(nulls)
    return Facts(nulls, min(lows), max(highs), True)


def _pair(found: Any, kind: DataType) -> tuple[Any, Any]:
    if not found.has_min_max:
        return None, None
    if kind.name == "decimal":
        # pyarrow makes decimals of integers only since release 22.
        low, high = (Decimal(one).scaleb(-kind.numbers[1]) for one in (found.min_raw, found.max_raw))
        return (low, high) if low <= high else (None, None)
    try:
        low, high = found.min, found.max
    except (ValueError, OverflowError, ArithmeticError):
        # A date after the year 9999, which Python cannot hold.
        return None, None
    if type(low) is not type(high) or not isinstance(low, _PYTHON[kind.name]) or low > high:
        return None, None
    if isinstance(low, dt.date):
        day = low.date() if isinstance(low, dt.datetime) else low
        if day < CERTAIN_FROM:
            return None, None
    if isinstance(low, dt.datetime) and (low.tzinfo is None) is (kind.name == "timestamp"):
        return None, None
    return low, high
