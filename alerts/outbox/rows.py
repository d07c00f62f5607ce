"""Rows of the outbox: their order per incident and place, those that wait, and those planned for later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Table, bindparam, func, insert, or_, select, update

from dq.alerts import incident_store
from dq.alerts.channel import Capabilities, MessagePlace
from dq.alerts.incident import CREATE, REMINDER, UPDATE, Incident, IncidentState, edit, reply
from dq.alerts.route import LaterWord, Wait, reminder
from dq.alerts.tables import WAITING, OutboxStatus, incident, message, outbox
from dq.contracts.access.alert_target import written
from dq.store.schema import UtcDateTime

# What is next in a lane, which is one incident in one place: a pure decision that keeps the order.


@dataclass(frozen=True, slots=True)
class Lane:
    """One incident in one place: what is said there stays in order."""

    incident: str
    channel: str
    target: str

    def __str__(self) -> str:
        return f"{self.channel} {self.target}".strip()


# What is said below a digest of one of its members, besides the change of the member's own message.
_OF_A_MEMBER = ("reply:worse", "reply:reopened")


@dataclass(frozen=True, slots=True)
class LaneEntry:
    """A ready outbox row, as far as the order is concerned."""

    id: int
    operation: str
    revision: int
    not_before: datetime
    repeat: bool = False
    wait: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """The message that the place holds: the revisions it was created with and shows now."""

    receipt: MessagePlace
    created_revision: int
    revision: int


@dataclass(frozen=True, slots=True)
class Next:
    """The row to send, if any, and the rows that need not be sent, each with its reason."""

    head: LaneEntry | None
    drop: tuple[tuple[LaneEntry, str], ...] = ()
    suppressed: bool = False


def next_up(ready: Sequence[LaneEntry], incident: Incident, held: Held | None, can: Capabilities) -> Next:
    """First the message, then its newest change, then its newest step.

    Whatever is sent shows the incident as it is now, so all older rows of the same kind are moot. An
    incident that resolved before anyone heard of it stays unheard of.
    """
    creates = [entry for entry in ready if entry.operation == CREATE]
    if held is not None:
        updates = [entry for entry in ready if entry.operation == UPDATE]
        replies = [entry for entry in ready if entry.operation not in (CREATE, UPDATE)]
        return _next_below(creates, updates, replies, incident, held, can)
    if not creates:
        return Next(None, _all(ready, "there is no message to change"))
    # One that may have arrived must not stay there unresolved.
    if incident.state is IncidentState.RESOLVED and not creates[-1].repeat:
        return Next(None, _all(ready, "resolved before it was sent"), suppressed=True)
    return Next(creates[-1], _all(creates[:-1], "superseded"))


def _next_below(
    creates: Sequence[LaneEntry],
    updates: Sequence[LaneEntry],
    replies: Sequence[LaneEntry],
    incident: Incident,
    held: Held,
    can: Capabilities,
) -> Next:
    moot: list[tuple[LaneEntry, str]] = [*_all(creates, "it is there already")]
    if not can.update:
        moot += _all(updates, "the channel cannot change a message")
        updates = ()
    elif held.revision >= incident.revision:
        moot += _all(updates, "the message shows it already")
        updates = ()
    # A reminder says no news, and is wanted all the same.
    told = [
        entry for entry in replies if entry.revision <= held.created_revision and entry.wait != Wait.REMINDER
    ]
    moot += _all(told, "the message said so itself")
    replies = [entry for entry in replies if entry not in told]
    if not can.thread:
        reminders = [entry for entry in replies if entry.wait == Wait.REMINDER]
        moot += _all(reminders, "there is no thread to remind in")
        replies = [entry for entry in replies if entry not in reminders]
    if held.receipt.thread and can.update:
        # Its message is itself in the thread of a digest, and shows most steps there.
        shown = [entry for entry in replies if entry.operation not in _OF_A_MEMBER]
        moot += _all(shown, "the message shows it in the digest's thread")
        replies = [entry for entry in replies if entry not in shown]
    if can.whole_replies:
        shown = [
            entry for entry in replies if entry.revision <= held.revision and entry.wait != Wait.REMINDER
        ]
        moot += _all(shown, "an update showed it already")
        replies = [entry for entry in replies if entry not in shown]
        if replies:
            moot += _all(updates, "the reply shows it")
            updates = ()
    moot += _all([*updates[:-1], *replies[:-1]], "superseded")
    head = next(iter([*updates[-1:], *replies[-1:]]), None)
    return Next(head, tuple(moot))


def _all(entries: Sequence[LaneEntry], why: str) -> tuple[tuple[LaneEntry, str], ...]:
    return tuple((entry, why) for entry in entries)


# What is not said now: the rows of the outbox that wait for a silence or a cause to end, in SQL.

NOW = bindparam("now", type_=UtcDateTime())
"""The instant that conditions are about. Made once they cost a drain, which asks many times, a quarter."""

# Other names: the query around it may have incidents of its own.
_of, _root = incident.alias(), incident.alias()

ALWAYS = (UPDATE, "reply:resolved", "reply:acked")
"""What changes or ends a message that is there is never held back."""


def _heard() -> ColumnElement[bool]:
    # A cause of which nobody hears holds nobody back.
    told = _root.c.silenced_until.is_(None) | (_root.c.silenced_until <= NOW)
    open_ = _root.c.resolved_at.is_(None)
    waits = select(_root.c.id).where(_root.c.id == _of.c.root_id, open_, told).exists()
    hushed = select(_of.c.id).where(_of.c.id == outbox.c.incident_id, (_of.c.silenced_until > NOW) | waits)
    # A copy that may be there, or was there, must not stand there as it was.
    said_before = or_(outbox.c.repeat, outbox.c.again)
    return or_(outbox.c.operation.in_(ALWAYS), said_before, ~hushed.exists())


HEARD = _heard()
"""Of rows of the outbox: whether they may be said at NOW."""


# The outbox: what is still to be said, and where.


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
    found = incident_store.get(tx, lane.incident)
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


# Plans in the outbox: what is to be said later, and sooner than it was planned.

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
    waiting = select(incident.c.id, incident.c.grace_seconds).where(
        incident.c.root_id == cause.id, incident.c.resolved_at.is_(None)
    )
    for row in tx.execute(waiting).all():
        at = now + timedelta(seconds=row.grace_seconds or 0)
        creates = (outbox.c.incident_id == row.id) & (outbox.c.operation == CREATE)
        untold = (outbox.c.state == OutboxStatus.READY) & (outbox.c.attempt == 0)
        tx.execute(update(outbox).where(creates, untold, outbox.c.not_before < at).values(not_before=at))
