"""The names by which a contract's objects and properties can be referred to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dq.contracts.model import Contract, Property, Relationship, SchemaObject
from dq.contracts.node import Node

if TYPE_CHECKING:
    from dq.validators.context import Walk


def dotted(contract: Contract) -> frozenset[str]:
    """Every `object` and `object.property`, at any depth; the object by its name or its id."""
    found: set[str] = set()
    for one in contract.objects:
        inside = _inside(one.properties)
        for name in {one.name, one.id or one.name}:
            found.add(name)
            found.update([f"{name}.{below}" for below in inside])
    return frozenset(found)


def by_id(contract: Contract) -> frozenset[str]:
    """Every `schema/<id>` and `schema/<id>/properties/<id>`, at any depth."""
    found: set[str] = set()
    stack: list[tuple[str, SchemaObject | Property]] = [
        (f"schema/{one.id}", one) for one in contract.objects if one.id is not None
    ]
    while stack:
        path, node = stack.pop()
        found.add(path)
        stack += [(f"{path}/properties/{one.id}", one) for one in node.properties if one.id is not None]
    return frozenset(found)


def repeated_names(contract: Contract, walk: Walk) -> frozenset[str]:
    """Every `object.property` inside of an array or map, with which no key can be compared."""
    if not any(prop.items or prop.map for prop in walk.properties):
        return frozenset()
    single: set[str] = set()
    for one in contract.objects:
        paths = [".".join(str(prop.name) for prop in way) for way in one.single()]
        single.update(f"{name}.{path}" for name in {one.name, one.id or one.name} for path in paths)
    return walk.names - single


def _inside(properties: list[Property]) -> set[str]:
    found: set[str] = set()
    stack = [("", prop) for prop in properties]
    while stack:
        above, prop = stack.pop()
        # Items of an array and values of a map have no name of their own: `orders.lines.price`.
        path = f"{above}.{prop.name}" if above and prop.name else prop.name or above
        if path:
            found.add(path)
        stack += [(path, inner) for inner in prop.children()]
    return found


def name_paths(contract: Contract) -> tuple[str, ...]:
    """The paths of the names of all objects and columns, of those too that could not be read."""
    listed = max(len(contract.objects), len(contract.place.items.get("schema", ())))
    objects = [f"schema[{index}].name" for index in range(listed)]
    return (*objects, *(prop.path("name") for one in contract.objects for prop in one.properties))


def sibling_nodes(contract: Contract, walk: Walk) -> Iterator[Sequence[Node]]:
    """Every list of elements that have ids; an id is one of a list, and not of the contract."""
    yield contract.servers
    yield contract.objects
    yield contract.support
    yield contract.roles
    yield contract.sla_properties
    yield contract.custom_properties
    yield contract.members()
    for one in contract.objects:
        yield from (one.properties, one.quality, one.relationships, one.synonyms)
    for prop in walk.properties:
        if prop.properties or prop.quality or prop.enum or prop.synonyms:
            yield from (prop.properties, prop.quality, prop.enum or (), prop.synonyms)


class Reference(NamedTuple):
    """One end of a relationship as written."""

    relationship: Relationship
    key: str
    text: str


def references_of(relationships: Iterable[Relationship]) -> Iterator[Reference]:
    """Every end of every relationship."""
    for relationship in relationships:
        for key, names in (("from", relationship.from_), ("to", relationship.to)):
            for text in names if isinstance(names, list) else [names] if names else []:
                yield Reference(relationship, key, text.strip())


def leaves(text: str, objects: set[str]) -> bool:
    """Whether a reference leaves a contract with these objects.

    `file.yaml#/schema/…` does, and so does `object.property` of an object that the contract does not have.
    """
    if "/" in text:
        return not text.lstrip("#/").startswith("schema/")
    return "." in text and text.split(".")[0] not in objects
