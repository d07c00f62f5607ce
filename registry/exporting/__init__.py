"""Forms that the schema of a contract can be written in: one file each, and what all of them share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dq.contracts import install
from dq.contracts.model import Contract, Node, Property, SchemaObject
from dq.contracts.outcome import UsageError, first_of
from dq.contracts.types import DataType, catalog_type, logical_type, physical_type

# What a contract says of its schema and a form has no words for, so that nothing is lost in silence.

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


# What an export is: a text, and what it could not say.


@dataclass(frozen=True, slots=True)
class Exported:
    """The text of a file, and a sentence for each thing of the schema that its form cannot say."""

    text: str
    lost: tuple[str, ...] = ()


Write = Callable[[Contract, list[SchemaObject]], Exported]


@dataclass(frozen=True, slots=True)
class ExportKind:
    """One file on the shelf `kinds/`: a form, and how objects of a contract are written in it.

    `write` gets the contract and the objects that are wanted, at least one; it writes the usual variant, and
    `others` are all by name, such as versions. `says` are the keys that it has words for; None where it tells
    by itself what it lacks. `comment` begins a line that its readers pass over; "" without.
    """

    id: str
    summary: str
    write: Write
    says: Words | None = None
    others: Mapping[str, Write] = field(default_factory=dict)
    comment: str = ""


@dataclass(slots=True)
class Losses:
    """What is lost on the way, each once, with where and as what it is written instead."""

    said: dict[str, None] = field(default_factory=dict)

    def note(self, where: str, what: object, instead: str, *, several: bool = False) -> None:
        """`what` of the contract, one thing or `several`, becomes `instead`."""
        self.said[f"{where}: {what} {'are' if several else 'is'} written as {instead}"] = None

    def leave(self, where: str, what: object) -> None:
        """`what` of the contract has no place in the form, and is left out."""
        self.tell(f"{where}: {what} is left out")

    def tell(self, sentence: str) -> None:
        """A sentence of another kind, without its point."""
        self.said[sentence] = None

    def all(self) -> tuple[str, ...]:
        return tuple(self.said)


def columns(one: SchemaObject) -> Iterator[tuple[Property, DataType]]:
    """The columns of an object in the order of a table: those of the files, then its partition keys."""
    keys = one.partition_keys()
    for prop in [*(prop for prop in one.properties if not prop.partitioned), *keys]:
        yield prop, catalog_type(prop)


def parts(prop: Property | None, kind: DataType) -> list[tuple[Property | None, DataType]]:
    """The parts of a nested type, each with what the contract says of it, where it says anything."""
    said: list[Property | None] = [None] * len(kind.parts)
    if prop is not None and kind.name == "struct":
        by_name = {inner.column.lower(): inner for inner in prop.properties}
        said = [by_name.get(name.lower()) for name in kind.names]
    elif prop is not None and kind.name == "map" and prop.map is not None:
        said = [prop.map.key, prop.map.value]
    elif prop is not None and kind.name == "array":
        said = [prop.items]
    return list(zip(said, kind.parts, strict=True))


def single(form: str, objects: list[SchemaObject]) -> SchemaObject:
    """The only object. Raises UsageError where there are several, and the form is of one row."""
    if len(objects) > 1:
        names = ", ".join(one.name for one in objects)
        raise UsageError(f"{form} is of one object, and there are {names}.", "Name it with --object.")
    return objects[0]


def load() -> dict[str, ExportKind]:
    """Every kind on the shelf by its id."""
    return install.load(sys.modules[__name__], "KIND", ExportKind)
