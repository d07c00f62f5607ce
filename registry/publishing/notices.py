"""What consumers are still to be told: rows that commit with the receipt, and stay until a place took them.

Who sends a notice takes it for a while first, so that of many processes one does. Its time is the store's
user's own clock: a process that was killed while it sent is followed by the next one when the while is over.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, and_, func, insert, or_, select, update

from dq.registry.publishing.cloud_event import cloud_event, filter_texts
from dq.registry.publishing.publication import DeliveryEvent
from dq.registry.tables import consumer_notice
from dq.store.engine import Store

_columns = consumer_notice.c


@dataclass(frozen=True, slots=True)
class ConsumerNotice:
    """One event for one place: its CloudEvent as a text, and what subscriptions filter by."""

    event_id: str
    target: str
    body: str
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class WaitingNotices:
    """What waits for one place: how many events, since when, and what came of the last attempt, if any."""

    target: str
    number: int
    since: datetime
    problem: str


def write(tx: Connection, event: DeliveryEvent, targets: Collection[str], now: datetime) -> None:
    """Notes that these places are to be told of the event."""
    body = json.dumps(cloud_event(event), ensure_ascii=False, separators=(",", ":"))
    attributes = [list(pair) for pair in filter_texts(event).items()]
    for target in dict.fromkeys(targets):
        tx.execute(
            insert(consumer_notice).values(
                event_id=event.id,
                target=target,
                body=body,
                attributes=attributes,
                written_at=now,
                attempts=0,
                problem="",
            )
        )


def numbers(store: Store, target: str, most: int, event_id: str = "") -> list[int]:
    """What waits for a place: those tried least first, then the oldest; with an event, its own."""
    asked = select(_columns.number).where(_waits(target, event_id))
    with store.read() as tx:
        ordered = asked.order_by(_columns.attempts, _columns.number).limit(most)
        return list(tx.execute(ordered).scalars())


def take(store: Store, number: int, now: datetime, lease: timedelta) -> ConsumerNotice | None:
    """Takes a notice, so that nobody else does until the lease is over; None where another has done so.

    All take it for as long. An end that is later than two leases is of a clock that is wrong, and holds
    nobody up: who was killed then would keep it for as long as the clock was ahead.
    """
    here = (_columns.number == number) & _columns.sent_at.is_(None)
    until = _columns.taken_until
    free = here & or_(until.is_(None), until <= now, until > now + 2 * lease)
    values = {"taken_until": now + lease, "attempts": _columns.attempts + 1}
    names = (_columns.event_id, _columns.target, _columns.body, _columns.attributes)
    with store.write() as tx:
        if tx.execute(update(consumer_notice).where(free).values(values)).rowcount == 0:
            return None
        row = tx.execute(select(*names).where(here)).one()
    return ConsumerNotice(*row[:3], tuple((name, text) for name, text in row.attributes))


def sent(store: Store, number: int, now: datetime) -> None:
    """Notes that the place has taken it."""
    with store.write() as tx:
        here = (_columns.number == number) & _columns.sent_at.is_(None)
        tx.execute(update(consumer_notice).where(here).values(sent_at=now, taken_until=None, problem=""))


def failed(store: Store, number: int, problem: str) -> None:
    """Notes why the place has not taken it, and lets others try."""
    with store.write() as tx:
        here = (_columns.number == number) & _columns.sent_at.is_(None)
        tx.execute(update(consumer_notice).where(here).values(taken_until=None, problem=problem))


def unsent(tx: Connection, event_id: str) -> list[tuple[str, str]]:
    """The places that have not taken the event, and what came of the last attempt at each."""
    here = (_columns.event_id == event_id) & _columns.sent_at.is_(None)
    return [(row.target, row.problem) for row in tx.execute(select(consumer_notice).where(here))]


def waiting(tx: Connection) -> list[WaitingNotices]:
    """What waits, by place."""
    counted = select(
        _columns.target,
        func.count().label("number"),
        func.min(_columns.written_at).label("since"),
        func.max(_columns.problem).label("problem"),
    )
    asked = counted.where(_columns.sent_at.is_(None)).group_by(_columns.target).order_by(_columns.target)
    return [WaitingNotices(*row) for row in tx.execute(asked)]


def _waits(target: str, event_id: str) -> ColumnElement[bool]:
    here = and_(_columns.target == target, _columns.sent_at.is_(None))
    return and_(here, _columns.event_id == event_id) if event_id else here
