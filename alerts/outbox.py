"""The outbox: what is still to be said, and where."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import ColumnElement, Connection, Table, bindparam, func, insert, select, update

from dq.alerts import ledger
from dq.alerts.incident import CREATE
from dq.alerts.lane import Lane
from dq.alerts.noise.timing import LaterWord
from dq.alerts.tables import outbox


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


UNSENT = (OutboxStatus.READY, OutboxStatus.DEAD)

_ADD = insert(outbox)
_TOLD = select(outbox.c.channel, outbox.c.target).where(
    outbox.c.incident_id == bindparam("incident"),
    outbox.c.operation == CREATE,
    # Where the channel has no threads, the digest itself has told of it.
    (outbox.c.state.not_in((OutboxStatus.DROPPED, OutboxStatus.DEAD)) | outbox.c.digest.is_not(None)),
)


def enqueue(
    tx: Connection,
    lane: Lane,
    operation: str,
    revision: int,
    now: datetime,
    *,
    again: bool = False,
    plan: LaterWord | None = None,
) -> None:
    """Put an operation into the outbox, to be sent as planned, or at once.

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
    fresh = {"revision": revision, "attempt": 0, "not_before": now, "looks": 0}
    row |= {"repeat": False, "again": again, "wait": "", "quiet": ""}
    if plan is not None:
        fresh["not_before"] = plan.not_before
        row |= {"wait": plan.wait, "quiet": str(plan.quiet or "")}
    tx.execute(_ADD, {**row, **fresh})


def say_again(tx: Connection, lane: Lane, now: datetime) -> None:
    """Put the message of a lane into the outbox anew, because somebody took it away."""
    found = ledger.get(tx, lane.incident)
    if found is None:
        return
    creates = of_lane(outbox, lane) & (outbox.c.operation == CREATE)
    same = outbox.c.revision == found.revision
    anew = {"state": OutboxStatus.READY, "not_before": now, "again": True, "reason": ""}
    if not tx.execute(update(outbox).where(creates, same).values(anew)).rowcount:
        digest = tx.execute(select(func.max(outbox.c.digest)).where(creates)).scalar_one()
        enqueue(tx, lane, CREATE, found.revision, now, again=True)
        tx.execute(update(outbox).where(creates, same).values(digest=digest))


def told(tx: Connection, incident_id: str) -> set[Lane]:
    """The places that hold a message of the incident, or will."""
    rows = tx.execute(_TOLD, {"incident": incident_id})
    return {Lane(incident_id, row.channel, row.target) for row in rows}


def of_lane(table: Table, lane: Lane) -> ColumnElement[bool]:
    """Whether a row of the outbox, or a message, is of a lane."""
    here = table.c
    return (here.incident_id == lane.incident) & (here.channel == lane.channel) & (here.target == lane.target)
