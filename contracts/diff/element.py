"""The words of a diff: an element of a contract in normal form, its values, and a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dq.contracts.shared.outcome import Location


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
