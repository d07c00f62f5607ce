"""The types that a contract promises, as texts of a file can carry them."""

from __future__ import annotations

from dq.contracts.columns import catalog_type, physical_type
from dq.contracts.model import Property, SchemaObject
from dq.contracts.types import DataType

STRING = DataType("string")
# What may be anything that JSON knows, and is carried as its text.
ANYTHING = DataType("variant")
_TEXTS = frozenset({"varchar", "char", "variant", "interval"})


def text_row_type(one: SchemaObject) -> DataType:
    """The object's columns as one struct type; an object without fields is ANYTHING, a text is unbounded.

    Texts of bounded length are texts whose length a check counts, whether the contract gives one or not.
    """
    types = tuple(_type(prop) for prop in one.properties)
    return DataType("struct", (), types, tuple(prop.column for prop in one.properties))


def _type(prop: Property) -> DataType:
    promised = physical_type(prop)
    if promised is not None:
        free = promised == STRING and prop.logical_type in ("object", "map")
        return ANYTHING if free else carried(promised, ANYTHING)
    if prop.logical_type == "object":
        if not prop.properties:
            return ANYTHING
        parts = tuple(_type(inner) for inner in prop.properties)
        return DataType("struct", (), parts, tuple(inner.column for inner in prop.properties))
    if prop.logical_type == "array":
        return DataType("array", (), (_type(prop.items) if prop.items is not None else ANYTHING,))
    if prop.logical_type == "vector":
        return DataType("array", (), (_type(prop.items) if prop.items is not None else DataType("double"),))
    if prop.logical_type == "map":
        if prop.map is None:
            return ANYTHING
        return DataType("map", (), (_type(prop.map.key), _type(prop.map.value)))
    return carried(catalog_type(prop), ANYTHING)


def carried(kind: DataType, anything: DataType = STRING) -> DataType:
    """The type of the column that holds it; what may be `anything` is a text unless it is asked for."""
    if kind.parts:
        return DataType(
            kind.name, kind.numbers, tuple(carried(part, anything) for part in kind.parts), kind.names
        )
    if kind == ANYTHING:
        return anything
    return STRING if kind.name in _TEXTS else kind
