"""Elements of a contract in normal form: their values, changes, and one form for what means the same."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

from dq.contracts import types
from dq.contracts.model import PLACE, CustomProperty, Extensible, Node, plain
from dq.contracts.shared.outcome import Location
from dq.contracts.types import DataType, NotAType

# One form for values that mean the same: no key order, no spelling, no explicit defaults.

# (model, key) -> the value that ODCS means when the key is absent. Source: the JSON Schema of ODCS 3.2.0.
DEFAULTS: Mapping[tuple[str, str], object] = {
    ("Property", "required"): False,
    ("Property", "unique"): False,
    ("Property", "deprecated"): False,
    ("Property", "criticalDataElement"): False,
    ("Property", "semanticType"): "column",
    ("SchemaObject", "deprecated"): False,
    ("SchemaObject", "logicalType"): "object",
    ("SchemaObject", "physicalType"): "table",
    ("TypeOptions", "defaultTimezone"): "Etc/UTC",
    ("TypeOptions", "minProperties"): 0,
    ("TypeOptions", "minItems"): 0,
    ("TypeOptions", "uniqueItems"): False,
    ("TypeOptions", "elementType"): "float32",
    ("TypeOptions", "normalized"): False,
    ("Quality", "type"): "library",
    ("Relationship", "type"): "foreignKey",
}

# (server type, key) -> its default, from the same schema.
SERVER_DEFAULTS: Mapping[tuple[str, str], str] = {
    ("athena", "catalog"): "awsdatacatalog",
    ("exasol", "port"): "8563",
    ("ingres", "port"): "21064",
    ("kafka", "format"): "json",
    ("poet", "host"): "LOCAL",
    ("poet", "port"): "6001",
    ("sqlserver", "port"): "1433",
    ("teradata", "port"): "1025",
    ("vectorwise", "port"): "21064",
    ("versant", "host"): "localhost",
    ("versant", "port"): "5019",
}

# Spellings of zones that are one zone.
_UTC = frozenset({"utc", "etc/utc", "z", "gmt", "etc/gmt", "etc/zulu", "zulu", "universal", "+00:00"})

# Words for types in engines beside Spark and Hive -> ours. `timestamptz` is a type of its own here, because
# Iceberg, Trino and PostgreSQL tell it from `timestamp`.
_FOREIGN = {
    "nvarchar": "varchar",
    "varchar2": "varchar",
    "nvarchar2": "varchar",
    "charactervarying": "varchar",
    "character": "char",
    "nchar": "char",
    "number": "decimal",
    "int2": "smallint",
    "int4": "int",
    "int8": "bigint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float4": "float",
    "float8": "double",
    "float32": "float",
    "float64": "double",
    "bytea": "binary",
    "varbinary": "binary",
    "bytes": "binary",
}
_WITH_ZONE = frozenset({"timestamptz", "timestampwithtimezone", "timestamp_tz"})
_WORD = re.compile(r"[a-z_][a-z_0-9]*")


@dataclass(frozen=True, slots=True)
class Physical:
    """A physical type: what it is, where we know it, and how it is spelt (case and blanks aside)."""

    type: DataType | None
    spelling: str


def physical(text: str) -> Physical:
    """The normal form of a physicalType; a type that we do not know is compared by its spelling."""
    spelling = re.sub(r"\s+", "", text.lower())
    if spelling in _WITH_ZONE:
        return Physical(DataType("timestamptz"), spelling)
    for attempt in (text, _WORD.sub(lambda found: _FOREIGN.get(found[0], found[0]), spelling)):
        try:
            return Physical(types.parse(attempt), spelling)
        except NotAType:
            continue
    return Physical(None, spelling)


def zone(name: str) -> str:
    """A zone's name; the many names of UTC are one."""
    return "UTC" if name.lower() in _UTC else name


def canonical(value: Any) -> object:
    """The value with keys sorted, lists as tuples, dates as text, and nodes without what is absent."""
    if isinstance(value, Node):
        return tuple((key, canonical(inner)) for key, inner in written(value).items())
    if isinstance(value, Mapping):
        pairs = ((str(key), canonical(inner)) for key, inner in value.items() if key != PLACE)
        return tuple(sorted(pairs, key=lambda pair: pair[0]))
    if isinstance(value, (list, tuple)):
        return tuple(canonical(inner) for inner in value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dt.date, dt.datetime)):
        return value.isoformat()
    return value


def unordered(value: Any) -> object:
    """The same for a list whose order says nothing."""
    items = canonical(value)
    return tuple(sorted(set(items), key=repr)) if isinstance(items, tuple) else items


def written(node: Node) -> dict[str, Any]:
    """The keys of a node that say something: not absent, not empty, not a default; sorted by key."""
    held = node.__dict__
    return {
        key: value
        for key, name, default in fields(type(node))
        if (value := held[name]) is not None and value != default and value not in ([], {})
    }


@cache
def fields(model: type[Node]) -> tuple[tuple[str, str, object], ...]:
    """The keys of a model as contracts write them, sorted: (key, attribute, what absence means)."""
    listed = ((info.alias or name, name) for name, info in model.model_fields.items())
    kind = model.__name__
    return tuple(
        (key, name, DEFAULTS.get((kind, key), _NEVER)) for key, name in sorted(listed) if key != PLACE
    )


_NEVER = object()


# The words of a diff: an element of a contract in normal form, its values, and a change.


class ElementKind(StrEnum):
    """What an element of a contract is."""

    CONTRACT = "contract"
    OBJECT = "object"
    PROPERTY = "property"
    QUALITY = "quality"
    SLA = "sla"
    SERVER = "server"
    ROLE = "role"
    SUPPORT = "support"
    PRICE = "price"
    RELATIONSHIP = "relationship"


class Motion(StrEnum):
    """What happened to an element or to one of its attributes."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class Value:
    """One attribute: `normal` is compared, `shown` is what a reader recognises."""

    normal: object
    shown: object
    at: Location
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class FlatElement:
    """One part of a contract whose values are normalised; attributes at their default are absent.

    `keys` identify it among its siblings, surest first; `column` is its name in the data. `path` is the
    way a reader names it (`orders.customer.street`, `orders.tags[]`), `pointer` its place in the document.
    A `quiet` element's coming and going is told by an attribute of its holder.
    """

    kind: ElementKind
    keys: tuple[tuple[str, str], ...]
    column: str
    path: str
    pointer: str
    at: Location
    values: Mapping[str, Value]
    parts: tuple[FlatElement, ...] = ()
    object_name: str = ""
    nested: bool = False
    quiet: bool = False

    def of(self, kind: ElementKind) -> tuple[FlatElement, ...]:
        """The parts of one kind, in the order of the file."""
        return tuple(part for part in self.parts if part.kind is kind)

    def normal(self, attribute: str) -> object:
        """The normal form of an attribute, or None."""
        value = self.values.get(attribute)
        return None if value is None else value.normal

    def shown(self, attribute: str) -> object:
        """An attribute as the file has it, or None."""
        value = self.values.get(attribute)
        return None if value is None else value.shown

    def walk(self) -> Iterator[FlatElement]:
        """This element and all properties below it."""
        yield self
        for part in self.of(ElementKind.PROPERTY):
            yield from part.walk()


@dataclass(frozen=True, slots=True)
class Change:
    """One fact that differs. `attribute` is empty when the element itself came, went or moved.

    `before` and `after` are normal forms (None: absent). `old` and `new` are the element on either side.
    What has no place on one side stands at its nearest surviving parent there. `facts` are what the
    siblings add: where among them it came or went, and who was renamed.
    """

    kind: ElementKind
    attribute: str
    action: Motion
    path: str
    before: object
    after: object
    at_before: Location
    at_after: Location
    pointer: str
    old: FlatElement | None
    new: FlatElement | None
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def object_name(self) -> str:
        """The name in the data of the object that it lies in, or nothing."""
        element = self.new or self.old
        return element.object_name if element else ""

    def shown(self) -> tuple[object, object]:
        """Before and after as the files have them."""
        if not self.attribute:
            return (self.old.path if self.old else None, self.new.path if self.new else None)
        return (
            self.facts.get("shown_before", self.old.shown(self.attribute) if self.old else None),
            self.facts.get("shown_after", self.new.shown(self.attribute) if self.new else None),
        )


# From the keys of one node to normalised values, for every kind of element alike.

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
