"""The outbox: what is still to be said, and claimed by one sender at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from json import dumps
from typing import Any
from uuid import uuid5

from sqlalchemy import ColumnElement, Connection, Row, case, func, insert, select, update

from dq.alerts import ledger
from dq.alerts.channel import Capabilities, MessagePlace
from dq.alerts.hush import heard
from dq.alerts.incident import CREATE, NAMESPACE, Incident
from dq.alerts.lane import Held, Lane, LaneEntry, next_up
from dq.alerts.message import Message, render
from dq.alerts.noise.timing import LaterWord
from dq.alerts.tables import channel_pause, message, outbox
from dq.alerts.wanted import wanted
from dq.store.schema import UtcDateTime

LEASE = timedelta(seconds=60)
"""How long a sender may take; after that nobody knows whether it has sent."""


class OutboxStatus(StrEnum):
    """Where an outbox row stands; the last three are final."""

    READY = "ready"
    SENDING = "sending"
    AMBIGUOUS = "ambiguous"
    SENT = "sent"
    DROPPED = "dropped"  # not needed any more
    DEAD = "dead"  # refused, or tried for too long


WAITING = (OutboxStatus.READY, OutboxStatus.SENDING, OutboxStatus.AMBIGUOUS)
IN_FLIGHT = (OutboxStatus.SENDING, OutboxStatus.AMBIGUOUS)


@dataclass(frozen=True, slots=True)
class ClaimedRow:
    """A row that this sender holds. `attempt` is its fence: a later claim has a higher one."""

    id: int
    lane: Lane
    operation: str
    attempt: int
    key: str
    message: Message
    receipt: MessagePlace | None
    tried_at: datetime
    lease_until: datetime
    looks: int = 0


def enqueue(
    tx: Connection,
    lane: Lane,
    operation: str,
    revision: int,
    now: datetime,
    *,
    not_before: datetime | None = None,
    again: bool = False,
    plan: LaterWord | None = None,
) -> None:
    """Put an operation into the outbox, to be sent from `not_before` on, or as planned, or at once.

    `again`: it takes the place of a message that somebody took away.
    """
    row: dict[str, object] = {
        "incident_id": lane.incident,
        "channel": lane.channel,
        "target": lane.target,
        "operation": operation,
        "state": OutboxStatus.READY,
        "reason": "",
    }
    fresh = {"revision": revision, "attempt": 0, "not_before": not_before or now, "looks": 0}
    row |= {"repeat": False, "again": again, "wait": "", "quiet": ""}
    if plan is not None:
        fresh["not_before"] = plan.not_before
        row |= {"wait": plan.wait, "quiet": str(plan.quiet or "")}
    tx.execute(insert(outbox), {**row, **fresh})


def told(tx: Connection, incident_id: str) -> set[Lane]:
    """The places that hold a message of the incident, or will."""
    rows = tx.execute(
        select(outbox.c.channel, outbox.c.target).where(
            outbox.c.incident_id == incident_id,
            outbox.c.operation == CREATE,
            outbox.c.state.not_in((OutboxStatus.DROPPED, OutboxStatus.DEAD)),
        )
    )
    return {Lane(incident_id, row.channel, row.target) for row in rows}


def due(tx: Connection, now: datetime) -> list[Lane]:
    """The lanes in which something can be sent now, the one that waited longest first."""
    other = outbox.alias()
    busy = select(other.c.id).where(
        other.c.incident_id == outbox.c.incident_id,
        other.c.channel == outbox.c.channel,
        other.c.target == outbox.c.target,
        other.c.state.in_(IN_FLIGHT),
    )
    rows = tx.execute(
        select(outbox.c.incident_id, outbox.c.channel, outbox.c.target)
        .where(
            outbox.c.state == OutboxStatus.READY,
            outbox.c.not_before <= now,
            ~busy.exists(),
            _unpaused(now),
            heard(now),
        )
        .group_by(outbox.c.incident_id, outbox.c.channel, outbox.c.target)
        .order_by(func.min(outbox.c.id))
    )
    return [Lane(row.incident_id, row.channel, row.target) for row in rows]


def claim(tx: Connection, lane: Lane, can: Capabilities, now: datetime) -> ClaimedRow | None:
    """Take the lane's next row, rendered as the incident is now; None when nothing is to be sent now.

    Rows that are not needed any more are dropped on the way. Commit before sending.
    """
    rows = tx.execute(
        select(outbox)
        .where(_in(lane), outbox.c.state.in_(WAITING), _unpaused(now))
        .where(outbox.c.state.in_(IN_FLIGHT) | heard(now))
        .order_by(outbox.c.id)
    ).all()
    incident = ledger.get(tx, lane.incident)
    if incident is None or any(row.state in IN_FLIGHT for row in rows):
        return None
    held = _held(tx, lane)
    entries = [
        LaneEntry(row.id, row.operation, row.revision, row.not_before, row.repeat, row.wait) for row in rows
    ]
    still = wanted(entries, incident, held, now)
    plan = next_up(still.rows, incident, held, can)
    for entry, why in (*still.drop, *plan.drop):
        tx.execute(
            update(outbox).where(outbox.c.id == entry.id).values(state=OutboxStatus.DROPPED, reason=why)
        )
    if plan.suppressed:
        ledger.log(tx, incident.id, "suppressed", incident.revision, now, detail=str(lane))
    if plan.head is None or plan.head.not_before > now:
        return None
    row = next(row for row in rows if row.id == plan.head.id)
    return _take(tx, row, lane, incident, held, now)


def ambiguous(tx: Connection, now: datetime) -> list[ClaimedRow]:
    """The rows to look for now."""
    rows = tx.execute(
        select(outbox)
        .where(outbox.c.state == OutboxStatus.AMBIGUOUS, outbox.c.not_before <= now, _unpaused(now))
        .order_by(outbox.c.id)
    ).all()
    return [_lost(tx, row) for row in rows]


def waiting(tx: Connection) -> tuple[int, datetime | None]:
    """How many rows are not settled, and when the first of them can go on."""
    # A claimed row goes on when its lease ends, a ready one not before its place's pause does.
    whole, place = channel_pause.alias(), channel_pause.alias()
    at = case((outbox.c.state == OutboxStatus.SENDING, outbox.c.lease_until), else_=outbox.c.not_before)
    rows = tx.execute(
        select(func.count(), func.min(at, type_=UtcDateTime), whole.c.until, place.c.until)
        .select_from(
            outbox.outerjoin(whole, (whole.c.channel == outbox.c.channel) & (whole.c.target == "")).outerjoin(
                place, (place.c.channel == outbox.c.channel) & (place.c.target == outbox.c.target)
            )
        )
        # What is planned for later is not stuck.
        .where(outbox.c.state.in_(WAITING), (outbox.c.wait == "") | (outbox.c.attempt > 0))
        .group_by(outbox.c.channel, outbox.c.target, whole.c.until, place.c.until)
    ).all()
    starts = [max(one for one in starts if one) for _, *starts in rows]
    return sum(row[0] for row in rows), min(starts, default=None)


def waiting_lanes(tx: Connection, channel: str) -> list[Lane]:
    """The lanes of a channel in which something is not settled."""
    rows = tx.execute(
        select(outbox.c.incident_id, outbox.c.target)
        .where(outbox.c.channel == channel, outbox.c.state.in_(WAITING))
        .distinct()
    )
    return [Lane(row.incident_id, channel, row.target) for row in rows]


def _lost(tx: Connection, row: Row[Any]) -> ClaimedRow:
    lane = Lane(row.incident_id, row.channel, row.target)
    incident = ledger.get(tx, row.incident_id)
    if incident is None:
        raise LookupError(f"outbox row {row.id} has no incident")
    # What is out there, if it is, shows the incident as it was then.
    said = replace(render(incident, row.operation), revision=row.rendered)
    held = _held(tx, lane)
    return ClaimedRow(
        row.id,
        lane,
        row.operation,
        row.attempt,
        key(lane, row),
        said,
        _receipt(held),
        row.tried_at,
        row.tried_at,
        row.looks,
    )


def _take(
    tx: Connection, row: Row[Any], lane: Lane, incident: Incident, held: Held | None, now: datetime
) -> ClaimedRow | None:
    tried_at = row.tried_at or now
    taken = tx.execute(
        update(outbox)
        .where(outbox.c.id == row.id, outbox.c.state == OutboxStatus.READY, outbox.c.attempt == row.attempt)
        .values(
            state=OutboxStatus.SENDING,
            attempt=row.attempt + 1,
            lease_until=now + LEASE,
            tried_at=tried_at,
            rendered=incident.revision,
        )
    )
    if not taken.rowcount:
        return None
    said = render(incident, row.operation, row.repeat)
    return ClaimedRow(
        row.id,
        lane,
        row.operation,
        row.attempt + 1,
        key(lane, row),
        said,
        _receipt(held),
        tried_at,
        now + LEASE,
    )


def key(lane: Lane, row: Row[Any]) -> str:
    """A UUID that names this message of this step for ever, on every machine."""
    return str(
        uuid5(NAMESPACE, dumps([lane.incident, lane.channel, lane.target, row.operation, row.revision]))
    )


def _held(tx: Connection, lane: Lane) -> Held | None:
    row = tx.execute(select(message).where(at(lane))).one_or_none()
    if row is None:
        return None
    return Held(MessagePlace(row.place, row.reference, row.thread), row.created_revision, row.revision)


def _receipt(held: Held | None) -> MessagePlace | None:
    return held.receipt if held else None


def at(lane: Lane) -> ColumnElement[bool]:
    table = message.c
    return (
        (table.incident_id == lane.incident) & (table.channel == lane.channel) & (table.target == lane.target)
    )


def _in(lane: Lane) -> ColumnElement[bool]:
    table = outbox.c
    return (
        (table.incident_id == lane.incident) & (table.channel == lane.channel) & (table.target == lane.target)
    )


def _unpaused(now: datetime) -> ColumnElement[bool]:
    mine = (channel_pause.c.channel == outbox.c.channel) & channel_pause.c.target.in_(("", outbox.c.target))
    return ~select(channel_pause.c.until).where(mine, channel_pause.c.until > now).exists()
