"""Schemas between Spark and the types that contracts speak of: from Spark's JSON, to Spark's DDL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dq.contracts.sql import text as sql
from dq.contracts.types import DataType, NotAType, parse

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def data_type(json: object) -> DataType:
    """The type that `StructType.jsonValue()` (or a part of it) describes.

    A type that contracts have no word for keeps Spark's name, so that it can be shown.
    """
    if isinstance(json, Mapping):
        kind = json["type"]
        if kind == "struct":
            fields = json["fields"]
            parts = tuple(data_type(field["type"]) for field in fields)
            return DataType("struct", (), parts, tuple(str(field["name"]) for field in fields))
        if kind == "array":
            return DataType("array", (), (data_type(json["elementType"]),))
        if kind == "map":
            return DataType("map", (), (data_type(json["keyType"]), data_type(json["valueType"])))
        return DataType(str(kind))
    text = str(json)
    try:
        return parse(text)
    except NotAType:
        return DataType(text)


def struct_type(struct: DataType) -> StructType:
    """The columns of a struct type as Spark's own, for a reader."""
    from pyspark.sql.types import StructType, _parse_datatype_string

    made = _parse_datatype_string(f"struct<{', '.join(_fields(struct))}>")
    assert isinstance(made, StructType)
    return made


def ddl(struct: DataType) -> str:
    """The columns of a struct type as a schema for Spark, every name quoted."""
    pairs = zip(struct.names, struct.parts, strict=True)
    return ", ".join(f"{sql.name(name)} {type_ddl(part)}" for name, part in pairs)


def type_ddl(kind: DataType) -> str:
    """A type as Spark reads it, every name of a field quoted."""
    if kind.name == "struct":
        return f"struct<{', '.join(_fields(kind))}>"
    if kind.parts:
        return f"{kind.name}<{', '.join(type_ddl(part) for part in kind.parts)}>"
    return str(kind)


def _fields(struct: DataType) -> list[str]:
    pairs = zip(struct.names, struct.parts, strict=True)
    return [f"{sql.name(name)}: {type_ddl(part)}" for name, part in pairs]
