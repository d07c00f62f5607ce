"""Types of contracts, of Spark and of Arrow in terms of each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dq.contracts.types import DataType, NotAType, parse

if TYPE_CHECKING:
    import pyarrow as pa


# Arrow's name of a type -> ours. Spark reads unsigned integers as the next larger signed ones.
_NAMES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "halffloat": "float",
    "float": "float",
    "double": "double",
    "bool": "boolean",
    "string": "string",
    "large_string": "string",
    "string_view": "string",
    "binary": "binary",
    "large_binary": "binary",
    "binary_view": "binary",
    "date32[day]": "date",
    "date64[ms]": "date",
    "null": "void",
}
# Names of types without parts whose values Spark has.
KNOWN = frozenset(_NAMES.values())
# The other way; what is not here has a rule of its own below, or is a text.
_ARROW = {
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float32",
    "double": "float64",
    "boolean": "bool",
    "string": "string",
    "binary": "binary",
    "date": "date32",
}


def from_arrow(arrow: pa.DataType) -> DataType:
    """The type of Spark that holds values of this type of Arrow; one that has none keeps Arrow's name."""
    import pyarrow as pa

    known = pa.types
    if known.is_dictionary(arrow):
        return from_arrow(arrow.value_type)
    if known.is_timestamp(arrow):
        return DataType("timestamp" if arrow.tz else "timestamp_ntz")
    if known.is_decimal(arrow):
        return DataType("decimal", (arrow.precision, arrow.scale))
    if known.is_uint64(arrow):
        return DataType("decimal", (20, 0))
    if known.is_struct(arrow):
        fields = [arrow.field(at) for at in range(arrow.num_fields)]
        parts = tuple(from_arrow(one.type) for one in fields)
        return DataType("struct", (), parts, tuple(one.name for one in fields))
    if known.is_map(arrow):
        return DataType("map", (), (from_arrow(arrow.key_type), from_arrow(arrow.item_type)))
    if known.is_list(arrow) or known.is_large_list(arrow) or known.is_fixed_size_list(arrow):
        return DataType("array", (), (from_arrow(arrow.value_type),))
    return DataType(_NAMES.get(str(arrow), str(arrow)))


def arrow_type(kind: DataType) -> pa.DataType:
    """The type of Arrow that holds values of a type of a contract; of one unknown here, text."""
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
    return pa.type_for_alias(_ARROW.get(kind.name, "string"))


# Source: Iceberg's table specification, "Schemas and Data Types"; TypeToSparkType of Iceberg 1.10 for Spark.

# Iceberg's name of a type -> what Spark reads, and what has to be said of it.
ICEBERG_TYPES: dict[str, tuple[DataType, str]] = {
    "boolean": (DataType("boolean"), ""),
    "int": (DataType("int"), ""),
    "long": (DataType("bigint"), ""),
    "float": (DataType("float"), ""),
    "double": (DataType("double"), ""),
    "date": (DataType("date"), ""),
    "timestamp": (DataType("timestamp_ntz"), ""),
    "timestamptz": (DataType("timestamp"), ""),
    "timestamp_ns": (DataType("timestamp_ntz"), "stored in nanoseconds, which Spark does not read"),
    "timestamptz_ns": (DataType("timestamp"), "stored in nanoseconds, which Spark does not read"),
    "string": (DataType("string"), ""),
    "uuid": (DataType("string"), "stored as uuid"),
    "binary": (DataType("binary"), ""),
    "variant": (DataType("variant"), ""),
}
ICEBERG_NANOSECONDS = ("timestamp_ns", "timestamptz_ns")
ICEBERG_REFUSED = frozenset({"time", *ICEBERG_NANOSECONDS})
"""With a column of one of these, Spark reads none of the others either."""
_FIXED = re.compile(r"fixed\[\d+\]", re.ASCII)


def from_iceberg(written: str) -> tuple[DataType, str] | None:
    """Spark's type of a primitive one, and what has to be said of it; None where Spark has none."""
    if written in ICEBERG_TYPES:
        return ICEBERG_TYPES[written]
    if _FIXED.fullmatch(written):
        return DataType("binary"), f"stored as {written}"
    if written.startswith("decimal"):
        try:
            return parse(written), ""
        except NotAType:
            pass
    return None


def from_spark_json(json: object) -> DataType:
    """The type that `StructType.jsonValue()` (or a part of it) describes.

    A type that contracts have no word for keeps Spark's name, so that it can be shown.
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
    text = str(json)
    try:
        return parse(text)
    except NotAType:
        return DataType(text)
