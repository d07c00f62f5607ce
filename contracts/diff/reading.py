"""From the keys of one node to normalised values, for every kind of element alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from dq.contracts.diff.canonical import canonical, fields, unordered, written
from dq.contracts.diff.element import ElementKind, FlatElement, Value
from dq.contracts.model import CustomProperty, Extensible
from dq.contracts.node import Node
from dq.contracts.shared.source_map import PLACE, plain

# TABLE: keys that are not compared as they stand, and the attribute, part or key that they become.
FOLDED: Mapping[ElementKind, Mapping[str, str]] = {
    ElementKind.CONTRACT: {
        "servers": "server",
        "schema": "object",
        "support": "support",
        "price": "price",
        "roles": "role",
        "slaProperties": "sla",
        "slaDefaultElement": "sla.element",
        "customProperties": "customProperties.*",
        "kind": "the same for every contract",
    },
    ElementKind.OBJECT: {
        "id": "key",
        "physicalName": "column",
        "properties": "property",
        "quality": "quality",
        "relationships": "relationship",
        "customProperties": "customProperties.*",
    },
    ElementKind.PROPERTY: {
        "id": "key",
        "physicalName": "column",
        "properties": "property",
        "items": "property",
        "map": "property",
        "quality": "quality",
        "relationships": "relationship",
        "logicalTypeOptions": "logicalTypeOptions.*",
        "primaryKey": "object.primaryKey",
        "primaryKeyPosition": "object.primaryKey",
        "partitioned": "object.partition",
        "partitionKeyPosition": "object.partition",
        "enum": "allowedValues",
        "customProperties": "customProperties.*",
    },
    ElementKind.QUALITY: {
        "id": "key",
        "metric": "metric",
        "rule": "metric",
        "arguments": "arguments",
        "validValues": "validValues",
        "mustBe": "threshold",
        "mustNotBe": "threshold",
        "mustBeGreaterThan": "threshold",
        "mustBeGreaterOrEqualTo": "threshold",
        "mustBeLessThan": "threshold",
        "mustBeLessOrEqualTo": "threshold",
        "mustBeBetween": "threshold",
        "mustNotBeBetween": "threshold",
        "unit": "threshold",
        "customProperties": "customProperties.*",
    },
    ElementKind.SLA: {
        "id": "key",
        "property": "key",
        "value": "level",
        "unit": "level",
        "schedule": "schedule",
        "element": "element",
        "customProperties": "customProperties.*",
    },
    ElementKind.SERVER: {"id": "key", "roles": "role", "customProperties": "customProperties.*"},
    ElementKind.ROLE: {"id": "key", "role": "key", "customProperties": "customProperties.*"},
    ElementKind.SUPPORT: {"id": "key", "channel": "key", "customProperties": "customProperties.*"},
    ElementKind.PRICE: {"id": "key"},
    ElementKind.RELATIONSHIP: {
        "id": "key",
        "from": "key",
        "to": "key",
        "customProperties": "customProperties.*",
    },
}

# Custom properties with a meaning of their own, read elsewhere.
_READ_ELSEWHERE = frozenset({"delivery", "dataset", "scope", "route", "renamedFrom", "partitionTransform"})
_UNORDERED = frozenset({"tags", "authoritativeDefinitions", "synonyms", "transformSourceObjects", "examples"})


def values(node: Node, kind: ElementKind) -> dict[str, Value]:
    """The attributes that stand in a node as they are compared, without the folded ones.

    Keys that the standard does not have are among them, so that no change is silent.
    """
    found = {
        key: value(node, key, unordered(raw) if key in _UNORDERED else canonical(raw), show(raw))
        for key, raw in written(node).items()
        if key not in FOLDED[kind]
    }
    found.update(_unknown(node))
    if isinstance(node, Extensible):
        found.update(custom_values(node))
    return found


def value(node: Node, key: str, normal: object, shown: object = None) -> Value:
    """An attribute that stands under a key of a node."""
    return Value(normal, normal if shown is None else shown, node.at(key), node.path(key))


def element(
    node: Node,
    kind: ElementKind,
    keys: tuple[tuple[str, str], ...],
    column: str,
    path: str,
    found: Mapping[str, Value],
    parts: tuple[FlatElement, ...] = (),
    **more: Any,
) -> FlatElement:
    """The element that a node is; `more` are further fields of it."""
    return FlatElement(kind, keys, column, path, node.path(), node.at(), found, parts, **more)


def _unknown(node: Node) -> Iterator[tuple[str, Value]]:
    unknown = node.place.keys.keys() - _known(type(node)) - (node.model_extra or {}).keys()
    for key in sorted(unknown):
        yield key, value(node, key, canonical((node.place.cut or {}).get(key, "written")))


@cache
def _known(model: type[Node]) -> frozenset[str]:
    return frozenset(key for key, _, _ in fields(model)) | {PLACE}


def custom_values(node: Extensible) -> Iterator[tuple[str, Value]]:
    """The custom properties that dq does not read itself, one attribute each."""
    for custom in node.custom_properties:
        if custom.vendor in (None, "dq") and read_elsewhere(custom.property):
            continue
        owner = f"{custom.vendor}:" if custom.vendor else ""
        yield f"customProperties.{owner}{custom.property}", _custom(custom)


def read_elsewhere(name: str) -> bool:
    """Whether a custom property of this name is one of ours."""
    return name in _READ_ELSEWHERE or name.startswith("delivery:")


def _custom(custom: CustomProperty) -> Value:
    normal = (canonical(custom.value), custom.description)
    return Value(normal, show(custom.value), custom.at("value"), custom.path("value"))


def show(raw: Any) -> object:
    """A value for a reader: plain, as another YAML reader would give it."""
    if isinstance(raw, Node):
        return {key: show(inner) for key, inner in written(raw).items()}
    if isinstance(raw, list):
        return [show(inner) for inner in raw]
    return plain(raw)
