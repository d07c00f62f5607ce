"""Who consumes what: the subscription files of a registry, their columns, and who may approve them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from itertools import product
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from dq.contracts.extension import Date, Filled
from dq.contracts.model import Contract, Identity, Node, Property, SchemaObject, Team, no_items, typed
from dq.contracts.outcome import Finding, nearest
from dq.contracts.yaml import source

# A subscription: one consumer's agreed use of a contract, from a file to a typed value.


def _positive(number: int) -> int:
    if number < 0:
        raise ValueError("it must not be negative")
    return number


def _named(entries: list[str]) -> list[str]:
    # Without the key it is about everything: whoever removes the last entry means the opposite.
    if not entries:
        raise ValueError("it must not be an empty list; without it, everything is meant")
    return entries


def _not_null(value: object) -> object:
    # A key whose value was forgotten would mean no filter, or no end.
    if value is None:
        raise ValueError("it has no value")
    return value


T = TypeVar("T")
Named = Annotated[list[Filled], AfterValidator(_named)]
# None stands for a key that is not there; one that is there has a value.
Given = Annotated[T | None, BeforeValidator(_not_null)]
Major = Annotated[int, AfterValidator(_positive)]


class Consumer(Node):
    """Who consumes: a team, and in AWS the account and perhaps the one principal that reads."""

    model_config = ConfigDict(title="the consumer")

    team: Filled = Field(description="The team that consumes.")
    account: Given[str] = Field(None, description="Its AWS account, 12 digits in quotes.")
    principal: Given[str] = Field(
        None, description="The ARN of the one role or user of that account that reads; else the account."
    )
    contact: Given[str] = Field(None, description="Where the team is asked, such as a channel or an address.")


class Subscription(Node):
    """One consumer's use of a contract. Without `columns` and `tags` it is about all columns.

    `start_date` and `end_date` are its first and its last day, in UTC; no `end_date` means no end.
    """

    model_config = ConfigDict(title="the subscription")

    contract: Filled = Field(description="The id of the contract.")
    major: Major = Field(description="The major version of the contract.")
    consumer: Consumer = Field(description="Who consumes.")
    purpose: Filled = Field(description="What the data is used for.")
    columns: Named = Field(
        default_factory=no_items,
        description="The columns that are used, as object.column; an object alone means all of its columns.",
    )
    tags: Named = Field(
        default_factory=no_items, description="Columns and objects with one of these tags are used too."
    )
    row_filter: Given[str] = Field(
        None, description="A SQL predicate: only rows for which it is true are used. Needs a single object."
    )
    start_date: Date = Field(description="The first day, in UTC.")
    end_date: Given[Date] = Field(None, description="The last day, in UTC; without it there is no end.")
    approvers: list[Filled] = Field(
        default_factory=no_items,
        description="Who agreed to it for the producer, and is asked before it changes.",
    )

    @property
    def file(self) -> str:
        return self.place.file

    @property
    def identity(self) -> Identity:
        """The id and the major version of the contract that it names."""
        return self.contract, str(self.major)

    @property
    def reader(self) -> str:
        """Whom AWS lets read: the principal, else the account; empty where it names neither."""
        return self.consumer.principal or self.consumer.account or ""

    def active(self, today: date) -> bool:
        """Whether it holds on this day; both of its ends do."""
        return self.start_date <= today and not self.over(today)

    def over(self, today: date) -> bool:
        """Whether its last day is past."""
        return self.end_date is not None and self.end_date < today


def read(data: bytes, file: str) -> tuple[Subscription | None, list[Finding]]:
    """The subscription in a file, and what is wrong with its form, by place. None where its core is.

    Never raises for what the file says. One with any finding should be taken for nothing but its names.
    """
    top, findings = source.read(data, file)
    if top is None:
        return None, [_of_subscription(one) for one in findings]
    made, form, _ = typed(Subscription, top)
    return made, sorted([*findings, *form], key=lambda one: one.at)


def json_schema() -> dict[str, object]:
    """JSON Schema (2020-12) of a subscription file, for editors."""
    schema = Subscription.model_json_schema(ref_template="#/$defs/{model}")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "dq subscription"}


def _of_subscription(finding: Finding) -> Finding:
    """The finding of the reader of YAML in a subscription's words."""
    if finding.rule != "not-a-contract":
        return finding
    mend = "Write a mapping that begins with 'contract: …' and 'major: …'."
    return replace(finding, rule="wrong-type", mend=mend)


# Which objects and columns of a contract a subscription is about.


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
        rest = _rest(name, one) if one else ""
        if one is None or (rest and not any(rest in way.written for way in _ways(one))):
            yield index, name, nearest(name, _element_names(contract))


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


def _element_names(contract: Contract) -> list[str]:
    return [
        name
        for one in contract.objects
        for name in (one.name, *(f"{one.name}.{prop.name or prop.column}" for prop in one.properties))
    ]


def _tagged(tags: list[str], subscription: Subscription) -> bool:
    return not set(subscription.tags).isdisjoint(tags)


# The people and teams that may approve the use of a contract.

APPROVING_ROLES = ("owner", "steward", "approver")
_SEPARATOR = re.compile(r"[,;\n]")


def approvers(contract: Contract, start_date: date) -> list[str]:
    """Return the names that may approve a subscription that begins on `start_date`, each once, in order.

    These are the team's name, its members whose role is one of `APPROVING_ROLES`, by username and name, and
    the approvers of the contract's and its servers' roles. A member who left before `start_date` is none.
    """
    return list(dict.fromkeys(name for text in _names(contract, start_date) if (name := text.strip())))


def is_approver(name: str, contract: Contract, start_date: date) -> bool:
    """Return whether the name, in any case, may approve a subscription that begins on `start_date`."""
    return name.strip().casefold() in {known.casefold() for known in approvers(contract, start_date)}


def _names(contract: Contract, start_date: date) -> Iterator[str]:
    if isinstance(contract.team, Team):
        yield contract.team.name or ""
    for member in contract.members():
        title = (member.role or "").lower()
        has_left = bool(member.date_out) and str(member.date_out)[:10] < start_date.isoformat()
        if not has_left and any(word in title for word in APPROVING_ROLES):
            yield from (member.username, member.name or "")
    for role in (*contract.roles, *(role for server in contract.servers for role in server.roles)):
        for text in (role.first_level_approvers, role.second_level_approvers):
            yield from _SEPARATOR.split(text or "")
