"""Which objects and columns of a contract a subscription is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.shared.spelling import nearest
from dq.contracts.subscriptions.subscription import Subscription


@dataclass(frozen=True, slots=True)
class CoveredObject:
    """An object that a subscription is about: all of it, or these properties, each once, in their order.

    `paths` are those properties as a diff names them, such as `orders.customer.street`, and `fields` those
    of them that stand inside of a column that is not named itself.
    """

    object: SchemaObject
    whole: bool
    properties: tuple[Property, ...] = ()
    paths: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in the data, in the object's order, without those of which only `fields` are named."""
        if self.whole:
            return tuple(prop.column for prop in self.object.properties)
        return tuple(
            prop.column for prop in self.object.properties if any(prop is one for one in self.properties)
        )

    def every(self) -> Iterator[Property]:
        """Every property that it is about, with what is nested inside."""
        if self.whole:
            yield from self.object.walk()
            return
        stack = list(self.properties)
        while stack:
            one = stack.pop()
            yield one
            stack += one.children()


def covered(subscription: Subscription, contract: Contract) -> list[CoveredObject]:
    """What the subscription is about, in the contract's order, without what the contract does not have."""
    if not subscription.columns and not subscription.tags:
        return [CoveredObject(one, whole=True) for one in contract.objects]
    found = []
    for one in contract.objects:
        named = [name for name in subscription.columns if _object_of(name, contract) is one]
        if any(name in (one.name, one.physical_name) for name in named) or _tagged(one.tags, subscription):
            found.append(CoveredObject(one, whole=True))
            continue
        wanted = {_rest(name, one) for name in named}
        ways = [way for way in _ways(one) if wanted & way.written or _tagged(way.property.tags, subscription)]
        if ways:
            properties, paths = tuple(way.property for way in ways), tuple(way.path for way in ways)
            tops = {way.top for way in ways if way.is_column}
            fields = tuple(way.path for way in ways if way.top not in tops)
            found.append(CoveredObject(one, False, properties, paths, fields))
    return found


def unknown_columns(subscription: Subscription, contract: Contract) -> Iterator[tuple[int, str, str | None]]:
    """The entries of `columns` that the contract does not have: index, text, and the nearest that it has."""
    for index, name in enumerate(subscription.columns):
        one = _object_of(name, contract)
        if one is None:
            yield index, name, nearest(name, _names(contract))
            continue
        rest = _rest(name, one)
        if rest and not any(rest in way.written for way in _ways(one)):
            yield index, name, nearest(name, _names(contract))


def unknown_tags(subscription: Subscription, contract: Contract) -> Iterator[tuple[int, str, str | None]]:
    """The entries of `tags` that no column and no object has: index, text, and the nearest that is there."""
    known = {
        tag
        for one in contract.objects
        for tags in (one.tags, *(prop.tags for prop in one.properties))
        for tag in tags
    }
    for index, tag in enumerate(subscription.tags):
        if tag not in known:
            yield index, tag, nearest(tag, sorted(known))


def reaches(subscription: Subscription, contract: Contract, path: str) -> bool:
    """Whether a change at this path, as a diff names it, reaches what the subscription is about.

    A change of the whole contract or object does; so does one above or below a column.
    """
    if not path:
        return True
    heads = {one.column: one for one in contract.objects if _overlap(one.column, path)}
    if not heads:
        # Servers, service levels and the like are everybody's.
        return True
    for one in covered(subscription, contract):
        if one.object.column in heads and (one.whole or any(_overlap(own, path) for own in one.paths)):
            return True
    return False


def _overlap(first: str, second: str) -> bool:
    """Whether one path is at, above or below the other: `orders` and `orders.id` are."""
    short, long = sorted((first, second), key=len)
    return long == short or long.startswith((f"{short}.", f"{short}[", f"{short}{{"))


def _object_of(name: str, contract: Contract) -> SchemaObject | None:
    """The object that an entry begins with; the longest name, where several fit."""
    fitting = [
        (len(own), one)
        for one in contract.objects
        for own in (one.name, one.physical_name)
        if own and (name == own or name.startswith(f"{own}."))
    ]
    return max(fitting, key=lambda each: each[0])[1] if fitting else None


def _rest(name: str, one: SchemaObject) -> str:
    """The way to the property inside of an entry that begins with this object's name."""
    own = max((each for each in (one.name, one.physical_name) if each and _overlap(each, name)), key=len)
    return name[len(own) + 1 :]


@dataclass(frozen=True, slots=True)
class _Way:
    """A named property that stands once in a row: its path in a diff, its column, how it may be written."""

    property: Property
    path: str
    top: str
    written: frozenset[str]
    is_column: bool


def _ways(one: SchemaObject) -> Iterator[_Way]:
    for way in one.single():
        path = ".".join((one.column, *(prop.column for prop in way)))
        names = [[each for each in (prop.name, prop.physical_name) if each] for prop in way]
        written = frozenset(map(".".join, product(*names)))
        yield _Way(way[-1], path, way[0].column, written, len(way) == 1)


def _names(contract: Contract) -> list[str]:
    return [
        name
        for one in contract.objects
        for name in (one.name, *(f"{one.name}.{prop.name or prop.column}" for prop in one.properties))
    ]


def _tagged(tags: list[str], subscription: Subscription) -> bool:
    return not set(subscription.tags).isdisjoint(tags)
