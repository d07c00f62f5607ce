"""Which columns of the data may not be shown: those that are classified, or that nobody has described."""

from __future__ import annotations

from dq.contracts.model import Property, SchemaObject
from dq.contracts.types import DataType
from dq.dataquality.model.column import columns

MASK = "***"


def classified(one: SchemaObject) -> frozenset[str]:
    """Top-level columns that are classified, or hold something that is, in lower case as Spark compares."""
    return frozenset(
        str(column.steps[0]).lower() for prop, column in columns(one) if prop.classification is not None
    )


def untold(one: SchemaObject, shown: frozenset[str]) -> str:
    """Why a number that is made of these columns is not shown, or nothing.

    Beside a classified column, one that the contract leaves out may be a copy of it: nobody has said that it
    is harmless. `*` are all columns.
    """
    secret = classified(one)
    if (found := sorted(shown & secret)) or ("*" in shown and secret):
        return f"{(found or sorted(secret))[0]!r} is classified"
    strange = sorted(shown - _named(one.properties).keys()) if secret else []
    if strange == ["*"]:
        return "it looks at all columns, and not all need be described"
    return f"the contract does not describe {strange[0]!r}" if strange else ""


def hidden(one: SchemaObject, schema: DataType) -> frozenset[str]:
    """Top-level columns of data of this schema that a copy may not show, in lower case.

    They are classified, or hold something that is, or something that the contract does not describe: that
    it is harmless, nobody has said.
    """
    known = _named(one.properties)
    strange = {
        name.lower()
        for name, part in zip(schema.names, schema.parts, strict=True)
        if name.lower() not in known or not _described(known[name.lower()], part)
    }
    return classified(one) | strange


def _described(prop: Property, found: DataType) -> bool:
    """Whether all that is in a column is described; a property without parts speaks for all of them."""
    if found.name == "struct" and prop.properties:
        known = _named(prop.properties)
        return all(
            name.lower() in known and _described(known[name.lower()], part)
            for name, part in zip(found.names, found.parts, strict=True)
        )
    if found.name == "array" and prop.items is not None:
        return _described(prop.items, found.parts[0])
    if found.name == "map" and prop.map is not None:
        return _described(prop.map.key, found.parts[0]) and _described(prop.map.value, found.parts[1])
    return True


def _named(properties: list[Property]) -> dict[str, Property]:
    return {prop.column.lower(): prop for prop in properties}
