"""What a contract says of its schema and a form has no words for, so that nothing is lost in silence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dq.contracts.columns import catalog_type, logical_type, physical_type
from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.node import Node
from dq.contracts.shared.counts import first_of

COLUMNS, FIELDS, PARTS, KEYS = "columns", "fields", "parts", "keys"
"""Where a property stands: in the table or a struct, as item of an array or value of a map, or as a key."""

# What every form says, each in its own way: names, types, what is inside what; positions go with their keys.
_STRUCTURE = frozenset({
    "name", "physicalName", "logicalType", "physicalType", "properties", "items", "map",
    "primaryKeyPosition", "partitionKeyPosition",
})  # fmt: skip
# What of a contract is no part of what it promises of its tables.
_HEAD = frozenset({
    "apiVersion", "kind", "id", "version", "status", "name", "domain", "tenant", "schema",
    "contractCreatedTs",
})  # fmt: skip
# So many places of a key are named.
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Words:
    """TABLE: the keys of ODCS that a form has words for, beside names, types and structure.

    Those of properties by where they stand; `objects` and `contract` are those of tables and of the whole.
    """

    properties: Mapping[str, frozenset[str]]
    objects: frozenset[str] = frozenset()
    contract: frozenset[str] = frozenset()


def words(
    columns: str = "", fields: str = "", parts: str = "", objects: str = "", contract: str = ""
) -> Words:
    """The table, each cell written as keys with spaces between."""
    said = {COLUMNS: columns, FIELDS: fields, PARTS: parts, KEYS: ""}
    return Words(
        {where: frozenset(keys.split()) for where, keys in said.items()},
        frozenset(objects.split()),
        frozenset(contract.split()),
    )


def unsaid(contract: Contract, objects: Iterable[SchemaObject], said: Words) -> Iterator[str]:
    """A sentence, without its point, for each key that is written and for which there are no words."""
    whole = [key for key in _written(contract) if key not in _HEAD | said.contract]
    if whole:
        yield f"{contract.id}: {', '.join(whole)} {_are(whole)} left out"
    for one in objects:
        keys = [key for key in _written(one) if key not in _STRUCTURE | said.objects]
        keys = ["name", *keys] if one.column != one.name else keys
        if keys:
            yield f"{one.name}: {', '.join(keys)} {_are(keys)} left out"
        gone: dict[str, list[str]] = {}
        for path, where, prop in walk(one):
            for key in _lost(prop, said.properties[where]):
                gone.setdefault(key, []).append(path)
        for key, paths in gone.items():
            yield f"{one.name}: {key} of {first_of(paths, _MOST_NAMED)} is left out"


def walk(one: SchemaObject) -> Iterator[tuple[str, str, Property]]:
    """Every property with its path, such as `lines[].sku` or `rates.*`, and where it stands."""
    for prop in one.properties:
        yield from _inside(prop.column, COLUMNS, prop)


def _inside(path: str, where: str, prop: Property) -> Iterator[tuple[str, str, Property]]:
    yield path, where, prop
    for inner in prop.properties:
        yield from _inside(f"{path}.{inner.column}", FIELDS, inner)
    if prop.items is not None:
        yield from _inside(f"{path}[]", PARTS, prop.items)
    if prop.map is not None:
        yield from _inside(f"{path}.^", KEYS, prop.map.key)
        yield from _inside(f"{path}.*", PARTS, prop.map.value)


def _lost(prop: Property, said: frozenset[str]) -> Iterator[str]:
    if prop.name is not None and prop.column != prop.name:
        yield "name"
    if prop.logical_type is not None and prop.logical_type != logical_type(catalog_type(prop)):
        yield "logicalType"
    if prop.physical_type is not None and physical_type(prop) is None:
        # A type of another engine; the usual one of the logical type stands for it.
        yield "physicalType"
    yield from (key for key in _written(prop) if key not in _STRUCTURE | said)


def _written(node: Node) -> list[str]:
    """The keys that the file writes and that say something: `required: false` does not."""
    fields = type(node).model_fields
    names = (name for name in node.model_fields_set if name in fields and name != "place")
    said = {fields[name].alias or name for name in names if getattr(node, name) not in (None, False, "", [])}
    return [key for key in node.place.keys if key in said]


def _are(keys: list[str]) -> str:
    return "are" if len(keys) > 1 else "is"
