"""From a property to the physical type that its column must have."""

from __future__ import annotations

import re

from dq.contracts.model import Property, SchemaObject
from dq.contracts.types import CARRIERS, DataType, NotAType, parse

# Oracle's and Snowflake's decimal.
_FOREIGN_DECIMAL = re.compile(r"number\s*(\(\s*[0-9]+\s*(?:,\s*[0-9]+\s*)?\))", re.ASCII | re.IGNORECASE)


def physical_type(prop: Property) -> DataType | None:
    """The exact type that the contract promises, or None when it leaves the choice open.

    That is `physicalType` where it is a type of Spark, else a struct, array or map put together from
    the parts that have one. A physicalType of another engine promises nothing here.
    """
    if prop.physical_type is not None:
        try:
            return parse(prop.physical_type)
        except NotAType:
            return None
    if prop.logical_type == "object" and prop.properties:
        return _struct(prop)
    if prop.logical_type == "array" and prop.items is not None:
        item = physical_type(prop.items)
        return None if item is None else DataType("array", (), (item,))
    if prop.map is not None:
        key, value = physical_type(prop.map.key), physical_type(prop.map.value)
        return None if key is None or value is None else DataType("map", (), (key, value))
    return None


def _struct(prop: Property) -> DataType | None:
    parts = [physical_type(inner) for inner in prop.properties]
    if any(part is None for part in parts):
        return None
    names = tuple(inner.column for inner in prop.properties)
    return DataType("struct", (), tuple(part for part in parts if part is not None), names)


def catalog_type(prop: Property) -> DataType:
    """The type that a table is created with: what is promised, else the usual carrier of the logical type."""
    promised = physical_type(prop)
    if promised is not None:
        return promised
    if prop.logical_type == "object" and prop.properties:
        parts = tuple(catalog_type(inner) for inner in prop.properties)
        return DataType("struct", (), parts, tuple(inner.column for inner in prop.properties))
    declared = _FOREIGN_DECIMAL.fullmatch(prop.physical_type or "")
    if declared is not None and prop.logical_type in (None, "number", "integer"):
        try:
            return parse(f"decimal{declared[1]}")
        except NotAType:
            return DataType(CARRIERS[prop.logical_type or "string"][0])
    if prop.logical_type in ("array", "vector"):
        # The items of a vector are numbers, of embeddings 32 bits each.
        usual = DataType("float" if prop.logical_type == "vector" else "string")
        item = catalog_type(prop.items) if prop.items is not None else usual
        return DataType("array", (), (item,))
    if prop.logical_type == "map" and prop.map is not None:
        return DataType("map", (), (catalog_type(prop.map.key), catalog_type(prop.map.value)))
    if prop.logical_type in ("object", "map"):
        # Without its fields nothing can be said of its structure; text holds it as JSON.
        return DataType("string")
    return DataType(CARRIERS[prop.logical_type or "string"][0])


# A physical type -> the logical one that its values usually have.
_LOGICAL = {
    **dict.fromkeys(("string", "char", "varchar", "binary", "interval"), "string"),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "integer"),
    **dict.fromkeys(("float", "double"), "number"),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), "timestamp"),
    **dict.fromkeys(("struct", "variant"), "object"),
    "boolean": "boolean",
    "date": "date",
    "array": "array",
    "map": "map",
}


def logical_type(kind: DataType) -> str:
    """The logical type that is written beside a physical one where nothing else is known."""
    if kind.name == "decimal":
        return "number" if kind.numbers[1:] != (0,) else "integer"
    return _LOGICAL[kind.name]


def row_type(one: SchemaObject) -> DataType:
    """The object's columns as one struct type, by their names in the data."""
    types = tuple(catalog_type(prop) for prop in one.properties)
    return DataType("struct", (), types, tuple(prop.column for prop in one.properties))
