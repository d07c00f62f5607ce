"""Schemas between Spark and the types that contracts speak of: from Spark's JSON, to Spark's DDL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from dq.contracts.sql import text as sql
from dq.contracts.types import DataType, NotAType, parse
from dq.dataquality.model.column import field

if TYPE_CHECKING:
    from pyspark.sql.types import DataType as SparkType
    from pyspark.sql.types import StructType

# The later one holds every value of the earlier one, and Spark reads the one as the other since 4.0.
_WIDER = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))

Leaf = Callable[[DataType, DataType], DataType]
"""Which of two types a column is to have."""


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


def spark_type(kind: DataType) -> SparkType:
    """A type as Spark's own."""
    return struct_type(DataType("struct", (), (kind,), ("value",))).fields[0].dataType


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


def own(first: DataType, _second: DataType) -> DataType:
    """Of two types that differ, the first."""
    return first


def widening(spark: str) -> Leaf:
    """Of two numbers the one that both fit into, if this version of Spark reads both so; else the first."""
    orders = _WIDER if int(spark.split(".")[0]) >= 4 else ()

    def wider(first: DataType, second: DataType) -> DataType:
        if first.name == second.name == "decimal" and first.numbers[1:] == second.numbers[1:]:
            return max(first, second, key=lambda kind: kind.numbers)
        order = next((each for each in orders if first.name in each and second.name in each), None)
        return first if order is None else max(first, second, key=lambda kind: order.index(kind.name))

    return wider


def joined(first: DataType, second: DataType, leaf: Leaf) -> DataType:
    """The first type with the fields that only the second has; `leaf` chooses where both have another type.

    Names of fields are compared without case.
    """
    if first.name == second.name == "struct":
        kept = [
            joined(part, field(second, name) or part, leaf)
            for name, part in zip(first.names, first.parts, strict=True)
        ]
        others = zip(second.names, second.parts, strict=True)
        more = {name: part for name, part in others if field(first, name) is None}
        return DataType("struct", (), (*kept, *more.values()), (*first.names, *more))
    if first.parts and first.name == second.name:
        parts = (joined(*pair, leaf) for pair in zip(first.parts, second.parts, strict=True))
        return DataType(first.name, (), tuple(parts))
    return first if first == second else leaf(first, second)


def holds(whole: DataType, part: DataType) -> bool:
    """Whether a type has every field of another one, each of the same type."""
    if whole.name != part.name or whole.numbers != part.numbers:
        return False
    if part.name == "struct":
        pairs = ((field(whole, name), kind) for name, kind in zip(part.names, part.parts, strict=True))
        return all(held is not None and holds(held, kind) for held, kind in pairs)
    return all(holds(*pair) for pair in zip(whole.parts, part.parts, strict=True))
