"""What an export is: a text, and what it could not say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from dq.contracts.columns import catalog_type
from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.types import DataType
from dq.registry.exporting.unsaid import Words


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


def inner(prop: Property | None, kind: DataType) -> list[Property | None]:
    """What the contract says of each part of a nested type, where it says anything."""
    if prop is None or not kind.parts:
        return [None] * len(kind.parts)
    if kind.name == "struct":
        known = {one.column.lower(): one for one in prop.properties}
        return [known.get(name.lower()) for name in kind.names]
    if kind.name == "map":
        return [prop.map.key, prop.map.value] if prop.map is not None else [None, None]
    return [prop.items]
