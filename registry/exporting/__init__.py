"""Export formats of a contract's schema: one plug-in file each, and their common parts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dq.contracts import install
from dq.contracts.model import Contract, Node, Property, SchemaObject
from dq.contracts.outcome import UsageError, join_limited
from dq.contracts.types import DataType, catalog_type, logical_type, physical_type

# Reports the keys of a contract that an export format does not support.

COLUMNS, FIELDS, PARTS, KEYS = "columns", "fields", "parts", "keys"
"""Kind of a property: column, field of a struct, item of an array or value of a map, or key of a map."""

# Keys that every format supports: names, types and structure; positions belong to their keys.
_STRUCTURE = frozenset({
    "name", "physicalName", "logicalType", "physicalType", "properties", "items", "map",
    "primaryKeyPosition", "partitionKeyPosition",
})  # fmt: skip
# Keys of a contract that do not describe its tables.
_HEAD = frozenset({
    "apiVersion", "kind", "id", "version", "status", "name", "domain", "tenant", "schema",
    "contractCreatedTs",
})  # fmt: skip
# Maximum of listed paths for a key.
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class SupportedKeys:
    """TABLE: the ODCS keys that a format supports, in addition to names, types and structure.

    `properties` are by kind of property; `objects` and `contract` are those of tables and of the contract.
    """

    properties: Mapping[str, frozenset[str]]
    objects: frozenset[str] = frozenset()
    contract: frozenset[str] = frozenset()


def supported_keys(
    columns: str = "", fields: str = "", parts: str = "", objects: str = "", contract: str = ""
) -> SupportedKeys:
    """Return the table; each argument has keys separated by spaces."""
    by_place = {COLUMNS: columns, FIELDS: fields, PARTS: parts, KEYS: ""}
    return SupportedKeys(
        {place: frozenset(keys.split()) for place, keys in by_place.items()},
        frozenset(objects.split()),
        frozenset(contract.split()),
    )


def unsupported_keys(
    contract: Contract, objects: Iterable[SchemaObject], supported: SupportedKeys
) -> Iterator[str]:
    """Return a sentence, without full stop, for each key of the contract that is not supported."""
    contract_keys = [key for key in _written_keys(contract) if key not in _HEAD | supported.contract]
    if contract_keys:
        yield f"{contract.id}: {', '.join(contract_keys)} {_are(contract_keys)} left out"
    for schema_object in objects:
        keys = [key for key in _written_keys(schema_object) if key not in _STRUCTURE | supported.objects]
        keys = ["name", *keys] if schema_object.column != schema_object.name else keys
        if keys:
            yield f"{schema_object.name}: {', '.join(keys)} {_are(keys)} left out"
        unsupported: dict[str, list[str]] = {}
        for path, place, prop in walk(schema_object):
            for key in _unsupported(prop, supported.properties[place]):
                unsupported.setdefault(key, []).append(path)
        for key, paths in unsupported.items():
            yield f"{schema_object.name}: {key} of {join_limited(paths, _MOST_NAMED)} is left out"


def walk(schema_object: SchemaObject) -> Iterator[tuple[str, str, Property]]:
    """Yield every property with its path, e.g. `lines[].sku` or `rates.*`, and its kind."""
    for prop in schema_object.properties:
        yield from _inside(prop.column, COLUMNS, prop)


def _inside(path: str, place: str, prop: Property) -> Iterator[tuple[str, str, Property]]:
    yield path, place, prop
    for inner in prop.properties:
        yield from _inside(f"{path}.{inner.column}", FIELDS, inner)
    if prop.items is not None:
        yield from _inside(f"{path}[]", PARTS, prop.items)
    if prop.map is not None:
        yield from _inside(f"{path}.^", KEYS, prop.map.key)
        yield from _inside(f"{path}.*", PARTS, prop.map.value)


def _unsupported(prop: Property, supported: frozenset[str]) -> Iterator[str]:
    """Yield the keys of a column that are lost because the target does not support them or their value."""
    if prop.name is not None and prop.column != prop.name:
        yield "name"
    if prop.logical_type is not None and prop.logical_type != logical_type(catalog_type(prop)):
        yield "logicalType"
    if prop.physical_type is not None and physical_type(prop) is None:
        # A type of another engine, replaced by the default of the logical type.
        yield "physicalType"
    yield from (key for key in _written_keys(prop) if key not in _STRUCTURE | supported)


def _written_keys(node: Node) -> list[str]:
    """Return the keys in the file that have a meaning, unlike `required: false`."""
    fields = type(node).model_fields
    names = (name for name in node.model_fields_set if name in fields and name != "place")
    meaningful = {
        fields[name].alias or name for name in names if getattr(node, name) not in (None, False, "", [])
    }
    return [key for key in node.place.keys if key in meaningful]


def _are(keys: list[str]) -> str:
    return "are" if len(keys) > 1 else "is"


# The result of an export: a text, and the parts of the contract that it lacks.


@dataclass(frozen=True, slots=True)
class Exported:
    """The text of a file, and a sentence for each part of the schema that its format does not support."""

    text: str
    unsupported: tuple[str, ...] = ()


Write = Callable[[Contract, list[SchemaObject]], Exported]


@dataclass(frozen=True, slots=True)
class ExportKind:
    """A plug-in: an export format, and the function that writes objects of a contract in it.

    `write` gets the contract and at least one object and writes the default variant; `variants` are all
    variants by name, e.g. versions. `supported` are the supported keys, or None if `write` reports
    unsupported ones itself. `comment` is the prefix of a comment line, or "".
    """

    id: str
    summary: str
    write: Write
    supported: SupportedKeys | None = None
    variants: Mapping[str, Write] = field(default_factory=dict)
    comment: str = ""


@dataclass(slots=True)
class LossReport:
    """Unsupported parts of a contract, without duplicates, with their paths and replacements."""

    sentences: dict[str, None] = field(default_factory=dict)

    def note(self, path: str, subject: object, replacement: str, *, several: bool = False) -> None:
        """Report that `subject`, singular or `several`, is written as `replacement`."""
        self.sentences[f"{path}: {subject} {'are' if several else 'is'} written as {replacement}"] = None

    def leave(self, path: str, subject: object) -> None:
        """Report that `subject` is left out."""
        self.add(f"{path}: {subject} is left out")

    def add(self, sentence: str) -> None:
        """Add another sentence, without full stop."""
        self.sentences[sentence] = None

    def all(self) -> tuple[str, ...]:
        return tuple(self.sentences)


def columns(schema_object: SchemaObject) -> Iterator[tuple[Property, DataType]]:
    """Yield the columns of an object in table order: those of the files, then its partition keys."""
    keys = schema_object.partition_keys()
    for prop in [*(prop for prop in schema_object.properties if not prop.partitioned), *keys]:
        yield prop, catalog_type(prop)


def parts(prop: Property | None, kind: DataType) -> list[tuple[Property | None, DataType]]:
    """Return the parts of a nested type, each with its property in the contract, or None."""
    properties: list[Property | None] = [None] * len(kind.parts)
    if prop is not None and kind.name == "struct":
        by_name = {inner.column.lower(): inner for inner in prop.properties}
        properties = [by_name.get(name.lower()) for name in kind.names]
    elif prop is not None and kind.name == "map" and prop.map is not None:
        properties = [prop.map.key, prop.map.value]
    elif prop is not None and kind.name == "array":
        properties = [prop.items]
    return list(zip(properties, kind.parts, strict=True))


def single(form: str, objects: list[SchemaObject]) -> SchemaObject:
    """Return the only object. Raises UsageError if there are several, for formats of one object."""
    if len(objects) > 1:
        names = ", ".join(schema_object.name for schema_object in objects)
        raise UsageError(f"{form} describes one object, but there are {names}.", "Select one with --object.")
    return objects[0]


def load() -> dict[str, ExportKind]:
    """Return all export formats by id."""
    return install.load_plugins(sys.modules[__name__], "KIND", ExportKind)
