"""What several rules ask of one contract."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, time
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from dq.contracts import extension
from dq.contracts.extension import Scope
from dq.contracts.model import Contract, CustomProperty, Node, Quality, SchemaObject
from dq.contracts.shared.outcome import nearest
from dq.contracts.slo import Slo
from dq.validators.context import Context, QualityPlace
from dq.validators.rule import Check, Fault, Faults, fault

if TYPE_CHECKING:
    from dq.contracts.sql.guard import Guarded, Refused


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
