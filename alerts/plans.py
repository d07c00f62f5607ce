"""Plans in the outbox: what is to be said later, and sooner than it was planned."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, select, update

from dq.alerts.incident import CREATE, REMINDER, UPDATE, Incident, IncidentState
from dq.alerts.lane import Lane
from dq.alerts.noise.flapping import edit, reply
from dq.alerts.noise.timing import LaterWord, Wait, reminder
from dq.alerts.outbox import WAITING, OutboxStatus, enqueue, of_lane
from dq.alerts.tables import incident as incidents
from dq.alerts.tables import message, outbox
from dq.contracts.schedule.quiet_hours import written

_AT_ONCE = ("reply:acked", "reply:worse")


def bring_forward(tx: Connection, lane: Lane, plan: LaterWord) -> None:
    """Let what waits to be said for the first time be said as planned now, if that is sooner."""
    tx.execute(
        update(outbox)
        .where(
            of_lane(outbox, lane),
            outbox.c.operation == CREATE,
            outbox.c.state == OutboxStatus.READY,
            outbox.c.attempt == 0,
            outbox.c.wait != "",
            outbox.c.not_before > plan.not_before,
        )
        .values(not_before=plan.not_before, wait=plan.wait, quiet=str(plan.quiet or ""))
    )


def remind(tx: Connection, lane: Lane, incident: Incident, now: datetime, *, anew: bool = False) -> None:
    """Plan the next reminder for a place that holds a message of an open incident, if none is planned.

    `anew`: it broke again, so that what was planned is too early.
    """
    # What stands in the thread of a digest is reminded of by the digest.
    alone = select(message).where(of_lane(message, lane), message.c.thread == "")
    if incident.state is not IncidentState.OPEN or not tx.execute(alone).first():
        return
    mine = of_lane(outbox, lane)
    if anew:
        planned = (outbox.c.wait == Wait.REMINDER) & (outbox.c.state == OutboxStatus.READY)
        again = {"state": OutboxStatus.DROPPED, "reason": "it broke again"}
        tx.execute(update(outbox).where(mine, planned, outbox.c.attempt == 0).values(again))
    rows = tx.execute(
        select(outbox.c.wait, outbox.c.state, outbox.c.quiet, outbox.c.operation)
        .where(mine)
        .order_by(outbox.c.id.desc())
    ).all()
    if any(row.wait == Wait.REMINDER and row.state in WAITING for row in rows):
        return
    quiet = next((row.quiet for row in rows if row.quiet), "")
    plan = reminder(incident.open_since or incident.opened_at, written(quiet), now)
    # The name tells it from the others for ever, so that it is said once.
    operation = f"{REMINDER}:{plan.not_before:%Y%m%dT%H%M}"
    if not any(row.operation == operation for row in rows):
        enqueue(tx, lane, operation, incident.revision, now, plan=plan)


def later(incident: Incident, operation: str, now: datetime) -> LaterWord | None:
    """When an operation is for, where it comes and goes too often for each change to be told."""
    since = incident.flapping_since
    if since is None or since == now or operation in _AT_ONCE:
        return None
    return edit(since, now) if operation == UPDATE else reply(incident.period, now)


def release(tx: Connection, cause: Incident, now: datetime) -> None:
    """Let what waited for a cause that has ended be told, if it is still broken when its own time is over."""
    waiting = select(incidents.c.id, incidents.c.grace_seconds).where(
        incidents.c.root_id == cause.id, incidents.c.resolved_at.is_(None)
    )
    for row in tx.execute(waiting).all():
        at = now + timedelta(seconds=row.grace_seconds or 0)
        creates = (outbox.c.incident_id == row.id) & (outbox.c.operation == CREATE)
        untold = (outbox.c.state == OutboxStatus.READY) & (outbox.c.attempt == 0)
        tx.execute(update(outbox).where(creates, untold, outbox.c.not_before < at).values(not_before=at))
