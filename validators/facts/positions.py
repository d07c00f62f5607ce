"""Positions of key columns: what is wrong with the order that an object gives to them."""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

from dq.contracts.model import Contract, SchemaObject
from dq.validators.context import Context
from dq.validators.rule import Check, Faults, fault


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
