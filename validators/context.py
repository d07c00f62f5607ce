"""What a rule may look at besides the contract: handed in, never read from the world."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Generic, NamedTuple, TypeVar

from dq.contracts import slo
from dq.contracts.model import Contract, Property, Quality, Relationship, SchemaObject
from dq.contracts.shared.outcome import Finding
from dq.validators.elements import Reference, dotted, references_of

T = TypeVar("T")

Unenforced = Callable[[Contract], Iterable[Finding]]


def nothing(_contract: Contract) -> Iterable[Finding]:
    """What is said of what the checker will not do where nobody can tell."""
    return ()


@dataclass(frozen=True, slots=True)
class Argument(Generic[T]):
    """A value of a rule that the policy may set; the type of the default is the type of the value."""

    name: str
    default: T
    description: str


@dataclass(frozen=True, slots=True)
class Promises:
    """The delivery promises that can be understood, and what is wrong with the others."""

    slos: tuple[slo.Slo, ...] = ()
    wrong: tuple[Finding, ...] = ()

    @staticmethod
    def of(contract: Contract) -> Promises:
        """The promises of a contract, through the same door as the watcher reads them."""
        slos, wrong = slo.read(contract)
        return Promises(tuple(slos), tuple(wrong))


class PropertyPlace(NamedTuple):
    """A property at any depth, with the object that it lies in."""

    object: SchemaObject
    property: Property
    top: bool


class QualityPlace(NamedTuple):
    """A quality rule with what it speaks about; `property` is None on the level of the object."""

    object: SchemaObject
    property: Property | None
    quality: Quality


@dataclass(frozen=True, slots=True)
class Walk:
    """The parts of one contract as flat lists: made once, so that fifty rules need not walk the tree.

    `properties` and `qualities` are `columns` and `clauses` without their places. `names` are the elements
    that can be referred to, as `object` and `object.property`; `references` are what refers to them, or to
    other contracts.
    """

    columns: tuple[PropertyPlace, ...]
    clauses: tuple[QualityPlace, ...]
    properties: tuple[Property, ...]
    qualities: tuple[Quality, ...]
    names: frozenset[str]
    references: tuple[Reference, ...]

    @staticmethod
    def of(contract: Contract) -> Walk:
        """Every property, nested ones after the one that holds them, and every quality rule."""
        columns: list[PropertyPlace] = []
        clauses: list[QualityPlace] = []
        related: list[Relationship] = []
        for one in contract.objects:
            top = {id(prop) for prop in one.properties}
            clauses += [QualityPlace(one, None, quality) for quality in one.quality]
            related += one.relationships
            for prop in one.walk():
                related += prop.relationships
                columns.append(PropertyPlace(one, prop, id(prop) in top))
                if prop.quality:
                    clauses += [QualityPlace(one, prop, quality) for quality in prop.quality]
        return Walk(
            tuple(columns),
            tuple(clauses),
            tuple(one.property for one in columns),
            tuple(one.quality for one in clauses),
            dotted(contract),
            tuple(references_of(related)),
        )


@dataclass(frozen=True, slots=True)
class Context:
    """What surrounds the contract that is judged.

    `file` is its path relative to the registry's root, with forward slashes. `today` is the date of the
    run in UTC. `arguments` are the policy's for the rule that is asked, `schemas` its JSON Schemas for
    custom properties, by level. `unenforced` gives what the checker will not do of a contract, and stands
    on another floor than the gate.
    """

    file: str
    today: date
    walk: Walk
    promises: Promises
    arguments: Mapping[str, object] = field(default_factory=dict)
    schemas: Mapping[str, object] = field(default_factory=dict)
    unenforced: Unenforced = nothing

    def value(self, argument: Argument[T]) -> T:
        """The policy's value of one of the rule's arguments, or its default."""
        # The policy has been checked against the type of the default before it came here.
        return self.arguments.get(argument.name, argument.default)  # type: ignore[return-value]
