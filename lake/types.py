"""TABLE: the contract type as which Spark reads each physical type, for all formats.

Used by all commands, so that check, sample, tables, import and propose agree on a column's type. Each format
has a small parser for its spelling and nesting; `contract_type` does the mapping.

Sources: ParquetToSparkSchemaConverter and SchemaConverters (Avro) of Spark 3.5 and 4.0; Iceberg's table
specification, "Schemas and Data Types", and TypeToSparkType of Iceberg 1.10 for Spark.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING

from dq.contracts.types import MAX_PRECISION, DataType, NotAType, parse

if TYPE_CHECKING:
    import pyarrow as pa


class Format(StrEnum):
    """A format with its own spelling of physical types; `SPARK` is also used by Delta, Hive and Glue."""

    ARROW = "arrow"
    PARQUET = "parquet"
    ICEBERG = "iceberg"
    AVRO = "avro"
    SPARK = "spark"


# Contract type -> the physical types that Spark reads as it. Parquet: the physical and the logical type as
# pyarrow spells them; Avro: the type and the logical type. The first Arrow type is used for writing. Unsigned
# integers are read as the next larger signed ones; INT96 is only used for timestamps of Spark, Hive and
# Impala; an all-NULL Parquet column is `INT32 Null`. Spark does not read types that are missing here: times
# of day, UUIDs and nanoseconds of Parquet.
_PHYSICAL_TYPES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "boolean": {"arrow": ("bool",), "parquet": ("BOOLEAN",), "iceberg": ("boolean",), "avro": ("boolean",)},
    "tinyint": {"arrow": ("int8",), "parquet": ("INT32 Int(8, True)",)},
    "smallint": {"arrow": ("int16", "uint8"), "parquet": ("INT32 Int(16, True)", "INT32 Int(8, False)")},
    "int": {
        "arrow": ("int32", "uint16"),
        "parquet": ("INT32", "INT32 Int(32, True)", "INT32 Int(16, False)", "INT32 Null"),
        "iceberg": ("int",),
        "avro": ("int",),
    },
    "bigint": {
        "arrow": ("int64", "uint32"),
        "parquet": ("INT64", "INT64 Int(64, True)", "INT32 Int(32, False)"),
        "iceberg": ("long",),
        "avro": ("long",),
    },
    "decimal(20,0)": {"arrow": ("uint64",), "parquet": ("INT64 Int(64, False)",)},
    "float": {
        "arrow": ("float", "halffloat"),
        "parquet": ("FLOAT",),
        "iceberg": ("float",),
        "avro": ("float",),
    },
    "double": {"arrow": ("double",), "parquet": ("DOUBLE",), "iceberg": ("double",), "avro": ("double",)},
    "string": {
        "arrow": ("string", "large_string", "string_view"),
        "parquet": ("BYTE_ARRAY String", "BYTE_ARRAY Enum", "BYTE_ARRAY JSON"),
        "iceberg": ("string", "uuid"),
        "avro": ("string", "enum"),
    },
    "binary": {
        "arrow": ("binary", "large_binary", "binary_view", "fixed_size_binary"),
        "parquet": ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY BSON"),
        "iceberg": ("binary", "fixed"),
        "avro": ("bytes", "fixed"),
    },
    "date": {
        "arrow": ("date32", "date64"),
        "parquet": ("INT32 Date",),
        "iceberg": ("date",),
        "avro": ("int date",),
    },
    "timestamp": {
        "arrow": ("timestamp with zone",),
        "parquet": ("INT96", "INT64 Timestamp(True, milliseconds)", "INT64 Timestamp(True, microseconds)"),
        "iceberg": ("timestamptz", "timestamptz_ns"),
        "avro": ("long timestamp-millis", "long timestamp-micros"),
    },
    "timestamp_ntz": {
        "arrow": ("timestamp",),
        "parquet": ("INT64 Timestamp(False, milliseconds)", "INT64 Timestamp(False, microseconds)"),
        "iceberg": ("timestamp", "timestamp_ns"),
        "avro": ("long local-timestamp-millis", "long local-timestamp-micros"),
    },
    "variant": {"iceberg": ("variant",)},
    "void": {"arrow": ("null",)},
}
_VOID = DataType("void")
_BY_SPELLING = {
    (form, spelling): _VOID if name == "void" else parse(name)
    for name, spellings in _PHYSICAL_TYPES.items()
    for form, names in spellings.items()
    for spelling in names
}
_DECIMAL = re.compile(r"decimal(?:32|64|128|256)?\(\s*(\d{1,9})\s*,\s*(-?\d{1,9})\s*\)", re.ASCII)
# Names of non-nested types that Spark accepts from Arrow.
KNOWN_TYPES = frozenset(kind.name for (form, _), kind in _BY_SPELLING.items() if form == Format.ARROW)


def contract_type(form: Format, physical: str) -> DataType | None:
    """Contract type of a non-nested physical type, or None if Spark does not read it.

    Args:
        physical: The type as spelled by its format; a decimal of any format as `decimal(9, 2)`.
    """
    if form is Format.SPARK:
        try:
            return parse(physical)
        except NotAType:
            return None
    if decimal := _DECIMAL.fullmatch(physical):
        precision, scale = int(decimal[1]), int(decimal[2])
        is_readable = 1 <= precision <= MAX_PRECISION and 0 <= scale <= precision
        return DataType("decimal", (precision, scale)) if is_readable else None
    # The length of `fixed[16]`, the unit of `timestamp[us]`.
    return _BY_SPELLING.get((form, physical.partition("[")[0]))


def from_arrow(arrow: pa.DataType) -> DataType:
    """Contract type of an Arrow type; a type that Spark does not read keeps Arrow's name."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(arrow):
        return from_arrow(arrow.value_type)
    if types.is_struct(arrow):
        fields = [arrow.field(position) for position in range(arrow.num_fields)]
        parts = tuple(from_arrow(field.type) for field in fields)
        return DataType("struct", (), parts, tuple(field.name for field in fields))
    if types.is_map(arrow):
        return DataType("map", (), (from_arrow(arrow.key_type), from_arrow(arrow.item_type)))
    if types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow):
        return DataType("array", (), (from_arrow(arrow.value_type),))
    name = "timestamp with zone" if types.is_timestamp(arrow) and arrow.tz else str(arrow)
    return contract_type(Format.ARROW, name) or DataType(str(arrow))


def arrow_type(kind: DataType) -> pa.DataType:
    """Arrow type for values of a contract type; string for unknown types."""
    import pyarrow as pa

    if kind.name == "decimal":
        return pa.decimal128(*kind.numbers)
    if kind.name == "array":
        return pa.list_(arrow_type(kind.parts[0]))
    if kind.name == "map":
        return pa.map_(arrow_type(kind.parts[0]), arrow_type(kind.parts[1]))
    if kind.name == "struct":
        pairs = zip(kind.names, kind.parts, strict=True)
        return pa.struct([(name, arrow_type(part)) for name, part in pairs])
    if kind.name == "timestamp":
        return pa.timestamp("us", "UTC")
    if kind.name == "timestamp_ntz":
        return pa.timestamp("us")
    spellings = _PHYSICAL_TYPES.get(kind.name, {}).get(Format.ARROW, ())
    # All-NULL columns are written as strings.
    return pa.type_for_alias(spellings[0] if spellings and kind != _VOID else "string")


def arrow_array(values: Iterable[object], kind: pa.DataType) -> pa.Array:
    """Arrow array of booleans, integers, decimals, dates or texts, without NULL.

    Built from text, since pyarrow imports pandas before it converts the first Python value (0.4 s of CPU).

    Raises:
        ValueError: A value is not of the type; pyarrow's errors are ValueErrors too.
    """
    import pyarrow as pa

    texts = [str(value).encode() for value in values]
    ends = array("i", accumulate(map(len, texts), initial=0))
    data = pa.py_buffer(b"".join(texts))
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), data).cast(kind)


ICEBERG_NANOSECONDS = ("timestamp_ns", "timestamptz_ns")
ICEBERG_REFUSED = frozenset({"time", *ICEBERG_NANOSECONDS})
"""Spark cannot open a table that has a column of one of these types."""


def from_iceberg(physical: str) -> tuple[DataType, str] | None:
    """Contract type of a primitive type of Iceberg and a note about it, or None if Spark does not read it."""
    kind = contract_type(Format.ICEBERG, physical)
    if kind is None:
        return None
    if physical in ICEBERG_NANOSECONDS:
        return kind, "stored in nanoseconds, which Spark cannot read"
    is_renamed = physical == "uuid" or physical.startswith("fixed")
    return kind, f"stored as {physical}" if is_renamed else ""


def from_spark_json(json: object) -> DataType:
    """Contract type that `StructType.jsonValue()` (or a part of it) describes.

    A type that contracts cannot express keeps Spark's name, so that it can be shown.
    """
    if isinstance(json, Mapping):
        kind = json["type"]
        if kind == "struct":
            fields = json["fields"]
            parts = tuple(from_spark_json(field["type"]) for field in fields)
            return DataType("struct", (), parts, tuple(str(field["name"]) for field in fields))
        if kind == "array":
            return DataType("array", (), (from_spark_json(json["elementType"]),))
        if kind == "map":
            return DataType("map", (), (from_spark_json(json["keyType"]), from_spark_json(json["valueType"])))
        return DataType(str(kind))
    return contract_type(Format.SPARK, str(json)) or DataType(str(json))
