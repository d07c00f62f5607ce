"""What a rule may look at besides the contract or subscription: handed in, never read from the world."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Generic, NamedTuple, TypeVar

from dq.contracts import slo
from dq.contracts.model import Contract, Identity, Node, Property, Quality, Relationship, SchemaObject
from dq.contracts.shared.outcome import Finding
from dq.contracts.subscriptions import Subscription

# The names by which a contract's objects and properties can be referred to.


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


# What a rule may look at besides the contract: handed in, never read from the world.

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


# What a rule may ask about a subscription: the contract that it names, the other subscriptions, the day.


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The surroundings of one subscription. `today` is the date in UTC; `arguments` are the policy's.

    `contracts` has those of the registry that subscriptions name. `unclear` are ids that a contract seems to
    have which cannot be read: nobody can say what is in it. `ids` are further ids of the registry, as far as
    they were read. `every` has all subscriptions whose form is right, in the order of their files, and `told`
    the files whose findings are wanted. `base_contracts` are the named contracts at the base of a branch.
    """

    today: date
    contracts: Mapping[Identity, Contract] = field(default_factory=dict)
    unclear: Collection[str] = ()
    ids: Collection[str] = ()
    every: tuple[Subscription, ...] = ()
    told: frozenset[str] = frozenset()
    arguments: Mapping[str, object] = field(default_factory=dict)
    base_contracts: Mapping[Identity, Contract] = field(default_factory=dict)

    def value(self, argument: Argument[T]) -> T:
        """The policy's value of one of the rule's arguments, or its default."""
        return self.arguments.get(argument.name, argument.default)  # type: ignore[return-value]

    def contract(self, subscription: Subscription) -> Contract | None:
        """The contract of the id and major that the subscription names."""
        return self.contracts.get(subscription.identity)

    def approving_contract(self, subscription: Subscription) -> Contract | None:
        """Return the contract whose owners approve: that of the base, in its newest major for a new one.

        A contract that the base does not have speaks for itself.
        """
        base = self.base_contracts
        majors = [identity for identity in base if identity[0] == subscription.contract]
        newest = max(majors, key=lambda identity: (len(identity[1]), identity[1]), default=None)
        own = base.get(subscription.identity)
        return own or (base[newest] if newest else self.contract(subscription))

    def majors(self, id_: str) -> list[str]:
        """The majors of a contract that there are, in order."""
        majors = (major for each, major in self.contracts if each == id_)
        return sorted(majors, key=lambda one: (len(one), one))
