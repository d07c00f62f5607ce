"""Rows of the outbox, claimed by one sender at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from json import dumps
from typing import Any
from uuid import uuid5

from sqlalchemy import Connection, Row, bindparam, select, update

from dq.alerts import ledger
from dq.alerts.channel import Capabilities, MessagePlace
from dq.alerts.hush import HEARD, NOW
from dq.alerts.incident import CREATE, NAMESPACE, Incident
from dq.alerts.lane import Held, Lane, LaneEntry, next_up
from dq.alerts.message import Message, render
from dq.alerts.outbox import IN_FLIGHT, UNSENT, WAITING, OutboxStatus, of_lane
from dq.alerts.sending.due import DIGEST_IS_THERE, LOST, UNPAUSED
from dq.alerts.tables import message, outbox
from dq.alerts.wanted import wanted

LEASE = timedelta(seconds=60)
"""How long a sender may take; after that nobody knows whether it has sent."""

# Made once, as those of due.py. What was refused stands aside until it is tried again.
_revived = (outbox.c.state == OutboxStatus.DEAD) & (outbox.c.not_before <= NOW)
_IN_LANE = (
    select(outbox)
    .where(
        outbox.c.incident_id == bindparam("incident"),
        outbox.c.channel == bindparam("of"),
        outbox.c.target == bindparam("to"),
    )
    .where(outbox.c.state.in_(WAITING) | _revived, UNPAUSED, outbox.c.state.in_(IN_FLIGHT) | HEARD)
    .order_by(outbox.c.id)
)
_MAY_BE_SAID = select(outbox.c.id).where(outbox.c.id == bindparam("row"), DIGEST_IS_THERE)
_LOST = select(outbox).where(outbox.c.channel == bindparam("of"), LOST).order_by(outbox.c.id)


@dataclass(frozen=True, slots=True)
class ClaimedRow:
    """A row that this sender holds. `attempt` is its fence: a later claim has a higher one.

    `below` is the message of the `digest` in whose thread it is said, if any.
    `revived`: it had been refused before.
    """

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
    below: MessagePlace | None = None
    digest: Lane | None = None
    revived: bool = False


def claim(tx: Connection, lane: Lane, can: Capabilities, now: datetime) -> ClaimedRow | None:
    """Take the lane's next row, rendered as the incident is now; None when nothing is to be sent now.

    Rows that are not needed any more are dropped on the way. Commit before sending.
    """
    mine = {"incident": lane.incident, "of": lane.channel, "to": lane.target}
    rows = tx.execute(_IN_LANE, {"now": now, **mine}).all()
    found = ledger.get(tx, lane.incident)
    if found is None or any(row.state in IN_FLIGHT for row in rows):
        return None
    held = _held(tx, lane)
    entries = [
        LaneEntry(row.id, row.operation, row.revision, row.not_before, row.repeat or row.again, row.wait)
        for row in rows
    ]
    still = wanted(entries, found, held, now)
    plan = next_up(still.rows, found, held, can)
    for entry, why in (*still.drop, *plan.drop):
        tx.execute(
            update(outbox).where(outbox.c.id == entry.id).values(state=OutboxStatus.DROPPED, reason=why)
        )
    if plan.suppressed:
        ledger.log(tx, found.id, "suppressed", found.revision, now, detail=str(lane))
    if plan.head is None or plan.head.not_before > now:
        return None
    if not tx.execute(_MAY_BE_SAID, {"row": plan.head.id}).first():
        return None
    row = next(row for row in rows if row.id == plan.head.id)
    return _take(tx, row, lane, found, held, now)


def ambiguous(tx: Connection, now: datetime, channel: str) -> list[ClaimedRow]:
    """The rows of a channel to look for now."""
    return [_lost(tx, row) for row in tx.execute(_LOST, {"now": now, "of": channel}).all()]


def said_elsewhere(tx: Connection, claimed: ClaimedRow, receipt: MessagePlace) -> bool:
    """Whether another sender has said it too, in a message that is not this one."""
    row = tx.execute(select(outbox.c.state, outbox.c.reference).where(outbox.c.id == claimed.id)).one()
    return row.state == OutboxStatus.SENT and bool(row.reference) and row.reference != receipt.reference


def _lost(tx: Connection, row: Row[Any]) -> ClaimedRow:
    lane = Lane(row.incident_id, row.channel, row.target)
    found = ledger.get(tx, row.incident_id)
    if found is None:
        raise LookupError(f"outbox row {row.id} has no incident")
    # What is out there, if it is, shows the incident as it was then.
    said = replace(render(found, row.operation), revision=row.rendered)
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
        _below(tx, row, lane),
    )


def _take(
    tx: Connection, row: Row[Any], lane: Lane, found: Incident, held: Held | None, now: datetime
) -> ClaimedRow | None:
    tried_at = row.tried_at or now
    taken = tx.execute(
        update(outbox)
        .where(outbox.c.id == row.id, outbox.c.state.in_(UNSENT), outbox.c.attempt == row.attempt)
        .values(
            state=OutboxStatus.SENDING,
            attempt=row.attempt + 1,
            lease_until=now + LEASE,
            tried_at=tried_at,
            rendered=found.revision,
        )
    )
    if not taken.rowcount:
        return None
    said = render(found, row.operation, row.repeat)
    if held and held.receipt.thread and said.note:
        # Others speak in the same thread.
        said = replace(said, note=f"{said.title}: {said.note}")
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
        below=_below(tx, row, lane),
        digest=replace(lane, incident=row.digest) if row.digest else None,
        revived=row.state == OutboxStatus.DEAD,
    )


def _below(tx: Connection, row: Row[Any], lane: Lane) -> MessagePlace | None:
    if row.digest is None or row.operation != CREATE:
        return None
    return _receipt(_held(tx, replace(lane, incident=row.digest)))


def key(lane: Lane, row: Row[Any]) -> str:
    """A UUID that names this message of this step for ever, on every machine."""
    return str(
        uuid5(NAMESPACE, dumps([lane.incident, lane.channel, lane.target, row.operation, row.revision]))
    )


def _held(tx: Connection, lane: Lane) -> Held | None:
    row = tx.execute(select(message).where(of_lane(message, lane))).one_or_none()
    if row is None:
        return None
    return Held(MessagePlace(row.place, row.reference, row.thread), row.created_revision, row.revision)


def _receipt(held: Held | None) -> MessagePlace | None:
    return held.receipt if held else None
