"""A rule, its faults and its scope, and what several rules ask of one contract."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from dq.contracts import extension
from dq.contracts.access.files import FileRefused
from dq.contracts.extension import Scope
from dq.contracts.model import Contract, CustomProperty, Node, Quality, SchemaObject
from dq.contracts.odcs import Version
from dq.contracts.outcome import Location, Severity, nearest, one_of, suggestion
from dq.contracts.slo import Slo
from dq.contracts.subscriptions import Subscription
from dq.validators.context import Argument, Context, Entry, QualityPlace, Registry, Subscribed

if TYPE_CHECKING:
    from dq.contracts.sql.guard import Guarded, Refused


# What most rules need besides what stands here.
__all__ = [
    "Argument",
    "Context",
    "Contract",
    "Entry",
    "Registry",
    "Severity",
    "Slo",
    "Subscribed",
    "Subscription",
    "nearest",
    "one_of",
    "suggestion",
]


@dataclass(frozen=True, slots=True)
class Fault:
    """What a rule found: where, what, and how to mend it.

    `path` is the place inside the document. `needs` are further paths that the statement relies on: where
    one of them had to be left out because its form is wrong, the fault is only a consequence of that, and
    nobody is told of it. A `doubt` is about what the standard allows, in the contract's own version: at most
    a warning, whatever the rule's severity, unless the policy names another one. Columns of one object with
    the same fault of one `kind` are one finding.
    """

    at: Location
    message: str
    mend: str
    path: str = ""
    needs: tuple[str, ...] = ()
    doubt: bool = False
    kind: str = ""


Faults = Iterator[Fault]
"""What the check of a rule gives."""


def fault(
    node: Node,
    key: str,
    message: str,
    mend: str,
    *,
    needs: tuple[str, ...] = (),
    doubt: bool = False,
    kind: str = "",
) -> Fault:
    """A fault of the value that a node has under this key."""
    return Fault(node.at(key), message, mend, node.path(key), needs, doubt, kind)


def item_fault(node: Node, key: str, index: int, message: str, mend: str) -> Fault:
    """A fault of one item of a list that a node has under this key."""
    return Fault(node.at(key, index), message, mend, f"{node.path(key)}[{index}]")


def absence(node: Node, message: str, mend: str, *keys: str) -> Fault:
    """A fault of a node that has none of these keys, or nothing under them.

    It stands at the first key, or where the node begins.
    """
    return Fault(node.at(keys[0]), message, mend, node.path(keys[0]), tuple(node.path(key) for key in keys))


class RuleScope(StrEnum):
    """What a rule looks at.

    `form`: the text; such a fault is found by the loader, is always an error and has no check here.
    `contract`: one contract. `registry`: one contract among all that were read. `policy`: the policy
    itself; such a fault is found while it is applied. `change`: what a branch makes of the policy.
    `subscription`: one subscription among all, with the contract that it names.
    """

    FORM = "form"
    CONTRACT = "contract"
    REGISTRY = "registry"
    POLICY = "policy"
    CHANGE = "change"
    SUBSCRIPTION = "subscription"


Check = Callable[[Contract, Context], Faults]
AmongOthers = Callable[[Entry, Registry], Faults]
OfSubscription = Callable[[Subscription, Subscribed], Faults]


def _nothing(*_: object) -> Faults:
    yield from ()


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its id, how much its fault matters by default, its page, and its check.

    `check` judges one contract, `among` one among all that were read, `subscribed` one subscription,
    whichever the scope names.
    Of a rule of `consequences`, a fault is told only where no other rule found anything in the same element.
    A `wish` is one of our own, which the standard does not have: only a policy turns it on.
    `first` and `last` are the versions of ODCS, both included, to whose contracts it applies. `after` names
    rules whose fault at the same place explains this rule's. `bad` is a document that shows the fault and
    cannot be written into a page, or why there is none. `policies`: the fragments of its page are policies,
    and not contracts.
    """

    id: str
    severity: Severity
    page: str | None
    check: Check = _nothing
    scope: RuleScope = RuleScope.CONTRACT
    among: AmongOthers = _nothing
    subscribed: OfSubscription = _nothing
    first: Version = (3, 0, 0)
    last: Version | None = None
    arguments: tuple[Argument[Any], ...] = ()
    after: tuple[str, ...] = ()
    bad: bytes | FileRefused | None = None
    policies: bool = False
    consequences: bool = False
    wish: bool = False

    def applies(self, odcs: Version) -> bool:
        """Whether it speaks about contracts of this version of the standard."""
        return self.first <= odcs and (self.last is None or odcs <= self.last)


def form(id_: str, page: str | None, bad: bytes | FileRefused | None = None) -> Rule:
    """A rule whose check is the loader."""
    return Rule(id_, Severity.ERROR, page, scope=RuleScope.FORM, bad=bad)


def among_others(id_: str, severity: Severity, page: str | None, among: AmongOthers) -> Rule:
    """A rule that needs the other contracts of the registry."""
    return Rule(id_, severity, page, scope=RuleScope.REGISTRY, among=among)


def of_policy(id_: str, severity: Severity, page: str | None) -> Rule:
    """A rule about the policy itself."""
    return Rule(id_, severity, page, scope=RuleScope.POLICY, policies=True)


def of_change(id_: str, severity: Severity, page: str | None) -> Rule:
    """A rule about what a branch makes of the policy."""
    return Rule(id_, severity, page, scope=RuleScope.CHANGE, policies=True)


def of_subscription(
    id_: str,
    severity: Severity,
    page: str | None,
    subscribed: OfSubscription,
    arguments: tuple[Argument[Any], ...] = (),
) -> Rule:
    """A rule about a subscription."""
    return Rule(id_, severity, page, scope=RuleScope.SUBSCRIPTION, subscribed=subscribed, arguments=arguments)


# Whether a contract's data lies where Spark, Hive, Glue or Athena decide on names and types.

LAKE_SERVERS = frozenset({"athena", "azure", "databricks", "glue", "hive", "iceberg", "local", "s3"})


def on_lake(contract: Contract) -> bool:
    """Whether one of the contract's servers is a lake or its catalog."""
    return any(server.type in LAKE_SERVERS for server in contract.servers)


# Whether a value that a contract writes can be a value of a logical type.


def fits(value: object, logical: str | None) -> bool:
    """Whether a value as YAML read it is one of the logical type; containers and unknown types fit anything.

    Dates, timestamps and times may be written as ISO 8601 text.
    """
    match logical:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            # An integer may be too large to be asked whether it is finite.
            whole = isinstance(value, int) and not isinstance(value, bool)
            return whole or (isinstance(value, float) and math.isfinite(value))
        case "date":
            plain = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
            return plain or _iso(value, dt.date.fromisoformat)
        case "timestamp":
            return isinstance(value, dt.date) or _iso(value, dt.datetime.fromisoformat)
        case "time":
            return _iso(value, dt.time.fromisoformat)
    return True


def shown(value: object) -> str:
    """The value as a message quotes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, str) else "null" if value is None else str(value)


def _iso(value: object, read: Callable[[str], object]) -> bool:
    if not isinstance(value, str):
        return False
    try:
        read(value)
    except ValueError:
        return False
    return True


# Positions of key columns: what is wrong with the order that an object gives to them.


class PositionKey(NamedTuple):
    """A kind of key: what it is called, and where a property holds its flag and its position."""

    noun: str
    flag: str
    position: str
    flag_attribute: str
    position_attribute: str


PARTITION = PositionKey(
    "partition column", "partitioned", "partitionKeyPosition", "partitioned", "partition_key_position"
)
PRIMARY = PositionKey(
    "primary key column", "primaryKey", "primaryKeyPosition", "primary_key", "primary_key_position"
)


def of_key(key: PositionKey) -> Check:
    """The check of a rule about the positions of a kind of key."""

    def check(contract: Contract, _context: Context) -> Faults:
        for one in contract.objects:
            yield from _wrong(one, key)

    return check


def _wrong(one: SchemaObject, key: PositionKey) -> Faults:
    """At most one fault per object, where the positions are not 1 to n or stand on a column that is no key.

    Without any position, the key's columns are taken in the order of the file. ODCS's -1 is no position.
    """
    in_key, position = attrgetter(key.flag_attribute), attrgetter(key.position_attribute)
    columns = [prop for prop in one.properties if in_key(prop)]
    for prop in one.properties:
        if not in_key(prop) and (position(prop) or -1) != -1:
            message = f"{prop.name!r} has {key.position} {position(prop)} and is no {key.noun}."
            mend = f"Add '{key.flag}: true', or remove it."
            yield fault(prop, key.position, message, mend, needs=_relies_on(one, key))
            return
    placed = [prop for prop in columns if position(prop) not in (None, -1)]
    if not placed:
        return
    order = f"Number them 1 to {len(columns)} in their order." if len(columns) > 1 else "Write 1."
    seen: dict[int, str | None] = {}
    for prop in columns:
        here = position(prop)
        if here in (None, -1):
            message = f"{prop.name!r} is one of {len(columns)} {key.noun}s and has no {key.position}."
        elif not 1 <= here <= len(columns):
            message = f"{key.position} {here} of {prop.name!r} is not one of 1 to {len(columns)}."
        elif here in seen:
            message = f"{key.position} {here} of {prop.name!r} is also that of {seen[here]!r}."
        else:
            seen[here] = prop.name
            continue
        yield fault(prop, key.position, message, order, needs=_relies_on(one, key))
        return


def _relies_on(one: SchemaObject, key: PositionKey) -> tuple[str, ...]:
    return tuple(prop.path(name) for prop in one.properties for name in (key.flag, key.position))


# What the rules about deliveries share: the promises of a contract, read through the watcher's own door.


def unmatched_terms(contract: Contract) -> list[tuple[CustomProperty, str, str | None]]:
    """Delivery terms at the top whose id no service level has: (terms, that id, the id that is like it)."""
    ids = [sla.id for sla in contract.sla_properties if sla.id is not None]
    terms = [
        (custom, custom.property.removeprefix("delivery:"))
        for custom in contract.custom_properties
        if custom.property.startswith("delivery:") and custom.vendor in (None, extension.VENDOR)
    ]
    return [(custom, id_, nearest(id_, ids)) for custom, id_ in terms if id_ not in ids]


def of_promise(rule: str) -> Check:
    """The check of a rule whose fault is found while a promise is read: what cannot be watched."""

    def check(_contract: Contract, context: Context) -> Faults:
        for finding in context.promises.wrong:
            if finding.rule == rule:
                yield Fault(finding.at, finding.message, finding.mend, finding.path, (finding.path,))

    return check


def of_each(judge: Callable[[Slo, datetime], Faults]) -> Check:
    """The check of a rule that asks every promise that can be read, as of the beginning of the day."""

    def check(_contract: Contract, context: Context) -> Faults:
        now = datetime.combine(context.today, time(), UTC)
        for slo in context.promises.slos:
            yield from judge(slo, now)

    return check


# The SQL of a contract that the guard refuses, for the rules that say so.
#
# The parser is imported when there is SQL to judge: a contract without starts as fast as before.


def refused(contract: Contract, context: Context) -> Iterator[tuple[Quality, Refused]]:
    """Every rule of the type `sql` whose query may not run, and why."""
    for one, found in _judged(contract, context):
        from dq.contracts.sql.guard import Refused

        if isinstance(found, Refused):
            yield one.quality, found


def read_columns(
    contract: Contract, context: Context
) -> Iterator[tuple[SchemaObject, Node, str, tuple[str, ...]]]:
    """Every query that may run: its object, where it stands, and the columns that it reads."""
    for one, found in _judged(contract, context):
        from dq.contracts.sql.guard import Guarded

        if isinstance(found, Guarded):
            yield one.object, one.quality, "query", (*found.columns, *found.qualified)


def _judged(contract: Contract, context: Context) -> Iterator[tuple[QualityPlace, Guarded | Refused]]:
    asked = [one for one in context.walk.clauses if one.quality.type == "sql" and one.quality.query]
    if not asked:
        return
    from dq.contracts.sql.guard import query

    named = any(one.property is not None for one in asked)
    single = (holders for one in contract.objects for holders in one.single()) if named else ()
    ways = {id(holders[-1]): tuple(prop.column for prop in holders) for holders in single}
    for one in asked:
        way = None if one.property is None else ways.get(id(one.property))
        yield one, query(one.object, one.quality, way)


def refused_scopes(context: Context) -> Iterator[tuple[Scope, Refused]]:
    """Every scope whose predicate may not run, and why."""
    for one in context.walk.clauses:
        if not one.quality.custom_properties:
            continue
        terms, wrong = extension.scope(one.quality)
        if terms.where is None or wrong:
            continue
        from dq.contracts.sql.guard import Refused, guarded_predicate

        found = guarded_predicate(terms.where)
        if isinstance(found, Refused):
            yield terms, found
