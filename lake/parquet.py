"""Columns of a Parquet file as Spark reads them, for every reader of footers.

The physical and the logical type of each leaf decide, not the Arrow schema that some writers put into the
footer: Spark does not look at it. Source: ParquetToSparkSchemaConverter of Spark 3.5 and 4.0.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dq.contracts.outcome import ReadError, join_limited
from dq.contracts.types import DataType
from dq.lake.types import Format, contract_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ColumnChunkMetaData, ColumnSchema, FileMetaData, ParquetSchema


# Codecs and encodings that Spark supports without further jars; not BYTE_STREAM_SPLIT and BROTLI.
READABLE_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4", "LZ4_RAW"})
READABLE_ENCODINGS = frozenset({
    "PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY",
    "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
})  # fmt: skip
_NARROWING = ("bitWidth", "isSigned", "isAdjustedToUTC", "timeUnit")
# Writers shorten longer values.
_MAX_BOUND = 32
# Converted types that imply UTC.
_UTC_BY_CONVERTED_TYPE = ("TIMESTAMP_MILLIS", "TIMESTAMP_MICROS")


@dataclass(frozen=True, slots=True)
class ParquetColumn:
    """A top-level column of a file: Spark's type of it, or None and the reason why Spark does not read it.

    `stored` names the physical types below it that Spark reads as another type, e.g. unsigned integers.
    """

    name: str
    type: DataType | None
    nullable: bool = True
    problem: str = ""
    stored: str = ""


def columns(schema: ParquetSchema) -> tuple[ParquetColumn, ...]:
    """Return the columns of a file by its footer."""
    leaves = iter([schema.column(position) for position in range(len(schema))])
    return tuple(_column(field, leaves) for field in schema.to_arrow_schema())


def require_distinct(file_columns: Sequence[ParquetColumn], path: str) -> None:
    """Raise ReadError for a file with two columns whose names are equal ignoring case, which Spark
    rejects.
    """
    names = Counter(column.name.lower() for column in file_columns)
    duplicates = [column.name for column in file_columns if names[column.name.lower()] > 1]
    if duplicates:
        raise ReadError(
            f"{path} has duplicate columns named {join_limited([*dict.fromkeys(duplicates)], 5)}, "
            "which Spark rejects.",
            "Give each column a unique name; case is ignored.",
        )


def chunks_of(meta: FileMetaData) -> Iterator[ColumnChunkMetaData]:
    """Yield the column chunks of all row groups."""
    for group in map(meta.row_group, range(meta.num_row_groups)):
        yield from map(group.column, range(group.num_columns))


def bounds_of_footers(footers: Iterable[FileMetaData]) -> dict[str, tuple[object, object]]:
    """Return the minimum and the maximum of each column that is not nested, over all files.

    A column without statistics in a row group that has values of it is left out, as are long texts, which
    writers shorten.
    """
    bounds: dict[str, tuple[object, object]] = {}
    unknown: set[str] = set()
    for chunk in (chunk for footer in footers for chunk in chunks_of(footer)):
        name, statistics = chunk.path_in_schema, chunk.statistics
        if "." in name or name in unknown or not chunk.num_values:
            continue
        if statistics is None or not statistics.has_min_max:
            if statistics is None or statistics.null_count != chunk.num_values:
                unknown.add(name)
            continue
        pair = statistics.min, statistics.max
        if any(isinstance(value, str | bytes) and len(value) > _MAX_BOUND for value in pair):
            unknown.add(name)
            continue
        try:
            low, high = bounds.get(name, pair)
            bounds[name] = min(low, pair[0]), max(high, pair[1])
        except TypeError:  # files differ in the type of the column
            unknown.add(name)
    return {name: pair for name, pair in bounds.items() if name not in unknown}


def unreadable_column(meta: FileMetaData, column: str) -> str:
    """Return why Spark cannot read a column or one of its fields, or an empty text."""
    named = (chunk for chunk in chunks_of(meta) if f"{chunk.path_in_schema}.".startswith(f"{column}."))
    return next((reason for chunk in named if (reason := unreadable_chunk(chunk))), "")


def unreadable_chunk(chunk: ColumnChunkMetaData) -> str:
    """Return why Spark cannot read a column chunk, or an empty text."""
    if chunk.compression not in READABLE_CODECS:
        return f"Spark cannot read the codec {chunk.compression}"
    encodings = sorted({*chunk.encodings} - READABLE_ENCODINGS)
    return f"Spark cannot read the encoding {encodings[0]}" if encodings else ""


def leaf_type(leaf: ColumnSchema) -> DataType | None:
    """Return Spark's type of a leaf, or None if Spark does not read it."""
    logical = json.loads(leaf.logical_type.to_json())
    if logical["Type"] == "Decimal":
        return contract_type(Format.PARQUET, f"decimal({logical['precision']}, {logical['scale']})")
    if leaf.converted_type == "INTERVAL":
        return None
    narrowing = {name: logical[name] for name in _NARROWING if name in logical}
    if leaf.converted_type in _UTC_BY_CONVERTED_TYPE:
        narrowing["isAdjustedToUTC"] = True
    terms = f"({', '.join(map(str, narrowing.values()))})" if narrowing else ""
    name = "" if logical["Type"] == "None" else f" {logical['Type']}{terms}"
    return contract_type(Format.PARQUET, f"{leaf.physical_type}{name}")


def _column(field: pa.Field, leaves: Iterator[ColumnSchema]) -> ParquetColumn:
    problems: list[str] = []
    stored: list[str] = []
    kind = _type(field.type, leaves, problems, stored)
    if problems:
        return ParquetColumn(field.name, None, field.nullable, "; ".join(dict.fromkeys(problems)))
    return ParquetColumn(field.name, kind, field.nullable, stored="; ".join(dict.fromkeys(stored)))


def _type(
    kind: pa.DataType, leaves: Iterator[ColumnSchema], problems: list[str], stored: list[str]
) -> DataType:
    """Return Spark's type of a node. Arrow's type gives the nesting; `leaves` are consumed in order.

    Types that Spark cannot read are added to `problems`, and those that it reads as another to `stored`.
    """
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return _type(kind.storage_type, leaves, problems, stored)
    if pa.types.is_struct(kind):
        fields = [kind.field(position) for position in range(kind.num_fields)]
        parts = tuple(_type(field.type, leaves, problems, stored) for field in fields)
        return DataType("struct", (), parts, tuple(field.name for field in fields))
    if pa.types.is_map(kind):
        key = _type(kind.key_type, leaves, problems, stored)
        return DataType("map", (), (key, _type(kind.item_type, leaves, problems, stored)))
    if _is_list(kind):
        return DataType("array", (), (_type(kind.value_type, leaves, problems, stored),))
    leaf = next(leaves)
    spark_type = leaf_type(leaf)
    if spark_type is None:
        problems.append(f"Spark cannot read {described(leaf)}")
        return DataType("binary")
    logical = json.loads(leaf.logical_type.to_json())
    if logical.get("isSigned") is False:
        stored.append(f"uint{logical['bitWidth']}")
    elif leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" and spark_type.name == "binary":
        stored.append(f"fixed_size_binary[{leaf.length}]")
    return spark_type


def _is_list(kind: pa.DataType) -> bool:
    # Older Arrow releases lack predicates for some of list, large_list, fixed_size_list and list_view.
    return str(kind).partition("<")[0].endswith(("list", "list_view"))


def described(leaf: ColumnSchema) -> str:
    """Return the physical and the logical type of a leaf as Parquet's specification writes them."""
    logical = json.loads(leaf.logical_type.to_json())
    name = "INTERVAL" if leaf.converted_type == "INTERVAL" else logical["Type"].upper()
    unit = {"milliseconds": "MILLIS", "microseconds": "MICROS", "nanoseconds": "NANOS"}.get(
        logical.get("timeUnit", "")
    )
    return f"{leaf.physical_type} as {name}({unit})" if unit else f"{leaf.physical_type} as {name}"
