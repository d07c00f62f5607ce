"""The outbox: its rows, what of them is next in each place, and who has claimed it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from json import dumps
from typing import Any
from uuid import uuid5

import sqlalchemy as sa

from dq.alerts import incident_store
from dq.alerts.channel import Capabilities, MessagePlace
from dq.alerts.incident import CREATE, NAMESPACE, REMINDER, UPDATE, Incident, IncidentState, calm, edit, reply
from dq.alerts.message import Message, render
from dq.alerts.route import LaterWord, Wait, reminder
from dq.alerts.tables import IN_FLIGHT, WAITING, OutboxStatus, channel_pause, incident, message, outbox
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

NOW = sa.bindparam("now", type_=UtcDateTime())
"""The instant that conditions are about. Made once they cost a drain, which asks many times, a quarter."""

# Other names: the query around it may have incidents of its own.
_of, _root = incident.alias(), incident.alias()

ALWAYS = (UPDATE, "reply:resolved", "reply:acked")
"""What changes or ends a message that is there is never held back."""


def _heard() -> sa.ColumnElement[bool]:
    # A cause of which nobody hears holds nobody back.
    told = _root.c.silenced_until.is_(None) | (_root.c.silenced_until <= NOW)
    open_ = _root.c.resolved_at.is_(None)
    waits = sa.select(_root.c.id).where(_root.c.id == _of.c.root_id, open_, told).exists()
    hushed = sa.select(_of.c.id).where(_of.c.id == outbox.c.incident_id, (_of.c.silenced_until > NOW) | waits)
    # A copy that may be there, or was there, must not stand there as it was.
    said_before = sa.or_(outbox.c.repeat, outbox.c.again)
    return sa.or_(outbox.c.operation.in_(ALWAYS), said_before, ~hushed.exists())


HEARD = _heard()
"""Of rows of the outbox: whether they may be said at NOW."""


# The outbox: what is still to be said, and where.


UNSENT = (OutboxStatus.READY, OutboxStatus.DEAD)

_ADD = sa.insert(outbox)
_TOLD = sa.select(outbox.c.channel, outbox.c.target).where(
    outbox.c.incident_id == sa.bindparam("incident"),
    outbox.c.operation == CREATE,
    # Where the channel has no threads, the digest itself has told of it.
    (outbox.c.state.not_in((OutboxStatus.DROPPED, OutboxStatus.DEAD)) | outbox.c.digest.is_not(None)),
)


def enqueue(
    tx: sa.Connection,
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


def say_again(tx: sa.Connection, lane: Lane, now: datetime) -> None:
    """Put the message of a lane into the outbox anew, because somebody took it away."""
    found = incident_store.get(tx, lane.incident)
    if found is None:
        return
    creates = of_lane(outbox, lane) & (outbox.c.operation == CREATE)
    same = outbox.c.revision == found.revision
    anew = {"state": OutboxStatus.READY, "not_before": now, "again": True, "reason": ""}
    if not tx.execute(sa.update(outbox).where(creates, same).values(anew)).rowcount:
        digest = tx.execute(sa.select(sa.func.max(outbox.c.digest)).where(creates)).scalar_one()
        enqueue(tx, lane, CREATE, found.revision, now, again=True)
        tx.execute(sa.update(outbox).where(creates, same).values(digest=digest))


def told(tx: sa.Connection, incident_id: str) -> set[Lane]:
    """The places that hold a message of the incident, or will."""
    rows = tx.execute(_TOLD, {"incident": incident_id})
    return {Lane(incident_id, row.channel, row.target) for row in rows}


def same_place(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """Whether a row of a table and one of the outbox are of one place."""
    return (table.c.channel == outbox.c.channel) & (table.c.target == outbox.c.target)


def of_lane(table: sa.FromClause, lane: Lane) -> sa.ColumnElement[bool]:
    """Whether a row of the outbox, or a message, is of a lane."""
    here = table.c
    return (here.incident_id == lane.incident) & (here.channel == lane.channel) & (here.target == lane.target)


# Plans in the outbox: what is to be said later, and sooner than it was planned.

_AT_ONCE = ("reply:acked", "reply:worse")


def bring_forward(tx: sa.Connection, lane: Lane, plan: LaterWord) -> None:
    """Let what waits to be said for the first time be said as planned now, if that is sooner."""
    tx.execute(
        sa.update(outbox)
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


def remind(tx: sa.Connection, lane: Lane, incident: Incident, now: datetime, *, anew: bool = False) -> None:
    """Plan the next reminder for a place that holds a message of an open incident, if none is planned.

    `anew`: it broke again, so that what was planned is too early.
    """
    # What stands in the thread of a digest is reminded of by the digest.
    alone = sa.select(message).where(of_lane(message, lane), message.c.thread == "")
    if incident.state is not IncidentState.OPEN or not tx.execute(alone).first():
        return
    mine = of_lane(outbox, lane)
    if anew:
        planned = (outbox.c.wait == Wait.REMINDER) & (outbox.c.state == OutboxStatus.READY)
        again = {"state": OutboxStatus.DROPPED, "reason": "it broke again"}
        tx.execute(sa.update(outbox).where(mine, planned, outbox.c.attempt == 0).values(again))
    rows = tx.execute(
        sa.select(outbox.c.wait, outbox.c.state, outbox.c.quiet, outbox.c.operation)
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


def release(tx: sa.Connection, cause: Incident, now: datetime) -> None:
    """Let what waited for a cause that has ended be told, if it is still broken when its own time is over."""
    waiting = sa.select(incident.c.id, incident.c.grace_seconds).where(
        incident.c.root_id == cause.id, incident.c.resolved_at.is_(None)
    )
    for row in tx.execute(waiting).all():
        at = now + timedelta(seconds=row.grace_seconds or 0)
        creates = (outbox.c.incident_id == row.id) & (outbox.c.operation == CREATE)
        untold = (outbox.c.state == OutboxStatus.READY) & (outbox.c.attempt == 0)
        tx.execute(sa.update(outbox).where(creates, untold, outbox.c.not_before < at).values(not_before=at))


# Which rows of a lane are still wanted, by the incident as it is when they are claimed: a pure decision.
#
# What is said later was planned when nobody could know whether it would still be wanted. So nothing is ever
# taken back when an incident changes: whoever claims looks at the incident as it is then.


@dataclass(frozen=True, slots=True)
class LaneRows:
    """The rows to choose from, and the rows that nobody needs any more, each with its reason."""

    rows: tuple[LaneEntry, ...]
    drop: tuple[tuple[LaneEntry, str], ...] = ()


def wanted(rows: Sequence[LaneEntry], incident: Incident, held: Held | None, now: datetime) -> LaneRows:
    """What may be said now, and what was planned and is not needed any more; the rest goes on waiting."""
    moot = [(row, why) for row in rows if (why := _moot(row, incident, held, now))]
    gone = {row.id for row, _ in moot}
    return LaneRows(
        tuple(row for row in rows if row.id not in gone and not _waits(row, incident, now)), tuple(moot)
    )


def _moot(row: LaneEntry, incident: Incident, held: Held | None, now: datetime) -> str:
    # A copy that may be there must not stay there as it was.
    if row.repeat:
        return ""
    if row.operation == CREATE and over_in_silence(incident):
        return "it was over before its silence was"
    if row.operation == CREATE and incident.root_id is not None and incident.state.closed:
        return "it was over with its cause"
    if row.wait in (Wait.ESCALATION, Wait.REMINDER) and incident.state is not IncidentState.OPEN:
        return "somebody is on it" if incident.state is IncidentState.ACKED else "it is over"
    if row.wait == Wait.CALM and row.not_before <= now and row.operation != UPDATE:
        ends = row.operation == "reply:resolved"
        if ends is not incident.state.closed or now - incident.changes[-1] < calm(incident.period):
            return "it changed again"
    if row.wait == Wait.REMINDER and held is not None and held.receipt.thread:
        return "it stands in a digest"
    return ""


def _waits(row: LaneEntry, incident: Incident, now: datetime) -> bool:
    if row.wait and row.not_before > now:
        return True
    # What came and went in quiet hours is a line of their summary.
    return row.wait == Wait.QUIET and row.operation == CREATE and incident.state.closed and not row.repeat


def over_in_silence(incident: Incident) -> bool:
    """Whether it ended while it was silenced."""
    ended, until = incident.resolved_at, incident.silenced_until
    return ended is not None and until is not None and ended < until


# What of the outbox can be sent now, and what has to wait until when.
#
# Conditions and questions are made once, about the instant NOW: to make them takes longer than to ask them.

_digest, _other = incident.alias(), outbox.alias()
_whole, _place = channel_pause.alias(), channel_pause.alias()


def _unpaused() -> sa.ColumnElement[bool]:
    mine = (channel_pause.c.channel == outbox.c.channel) & channel_pause.c.target.in_(("", outbox.c.target))
    return ~sa.select(channel_pause.c.until).where(mine, channel_pause.c.until > NOW).exists()


def _digest_is_there() -> sa.ColumnElement[bool]:
    # What belongs into the thread of a digest waits for it; none comes that was over before it was said.
    there = sa.select(message.c.revision).where(
        message.c.incident_id == outbox.c.digest,
        same_place(message),
    )
    over = sa.select(_digest.c.id).where(_digest.c.id == outbox.c.digest, _digest.c.resolved_at.is_not(None))
    coming = sa.select(_other.c.id).where(
        _other.c.incident_id == outbox.c.digest,
        same_place(_other),
        _other.c.operation == CREATE,
        _other.c.state.in_(WAITING),
    )
    return outbox.c.digest.is_(None) | there.exists() | (over.exists() & ~coming.exists())


UNPAUSED = _unpaused()
"""Whether nobody has said that a row's place, or its whole channel, must wait."""

DIGEST_IS_THERE = _digest_is_there()
"""Whether a row's digest, if it has one, is where the row belongs: below it."""

SHOULD_BE_THERE = ((outbox.c.not_before <= NOW) & (outbox.c.wait == "") & HEARD) | (outbox.c.attempt > 0)
"""Whether a row ought to be sent by now: nobody wanted it later, or not at all for a while."""

LOST = (outbox.c.state == OutboxStatus.AMBIGUOUS) & (outbox.c.not_before <= NOW) & UNPAUSED
"""Whether nobody knows if a row arrived, and it is time to look for it."""

_busy = sa.select(_other.c.id).where(
    _other.c.incident_id == outbox.c.incident_id,
    same_place(_other),
    _other.c.state.in_(IN_FLIGHT),
)
_SENDABLE = sa.and_(
    outbox.c.state.in_(UNSENT), outbox.c.not_before <= NOW, ~_busy.exists(), UNPAUSED, HEARD, DIGEST_IS_THERE
)
_slept = (outbox.c.state == OutboxStatus.SENDING) & (outbox.c.lease_until <= NOW)
_PLACES = sa.select(outbox.c.channel, outbox.c.target).where(_SENDABLE | LOST | _slept).distinct()

_opens = (outbox.c.operation == CREATE) & outbox.c.digest.is_(None)
_first = sa.case((_opens | incident.c.resolved_at.is_not(None), 0), else_=1)
_LANES = (
    sa.select(outbox.c.incident_id, outbox.c.target, sa.func.min(_first).label("rank"))
    .join(incident, incident.c.id == outbox.c.incident_id)
    .where(outbox.c.channel == sa.bindparam("of"), _SENDABLE)
    .group_by(outbox.c.incident_id, outbox.c.target)
    .order_by(sa.func.min(outbox.c.id))
)


def _starts(which: sa.ColumnElement[bool]) -> sa.Select[int, datetime, datetime, datetime]:
    """How many rows there are of each place, and the instants after which the first of them can go on."""
    # A claimed row goes on when its lease ends, a ready one not before its place's pause does.
    at = sa.case((outbox.c.state == OutboxStatus.SENDING, outbox.c.lease_until), else_=outbox.c.not_before)
    return (
        sa.select(sa.func.count(), sa.func.min(at, type_=UtcDateTime), _whole.c.until, _place.c.until)
        .select_from(
            outbox.outerjoin(
                _whole, (_whole.c.channel == outbox.c.channel) & (_whole.c.target == "")
            ).outerjoin(_place, same_place(_place))
        )
        .where(outbox.c.state.in_(WAITING), which)
        .group_by(outbox.c.channel, outbox.c.target, _whole.c.until, _place.c.until)
    )


_OWED = _starts(SHOULD_BE_THERE)
_LATER = _starts((outbox.c.not_before > NOW) | (outbox.c.lease_until > NOW) | ~UNPAUSED)


@dataclass(frozen=True, slots=True)
class DueLane:
    """A lane in which something can be sent now: rank 0 opens or ends an incident, 1 tells more of it."""

    lane: Lane
    rank: int


def due(tx: sa.Connection, now: datetime, channel: str) -> list[DueLane]:
    """The lanes of a channel in which something can be sent now, the one that waited longest first."""
    rows = tx.execute(_LANES, {"now": now, "of": channel})
    return [DueLane(Lane(row.incident_id, channel, row.target), row.rank) for row in rows]


def due_places(tx: sa.Connection, now: datetime) -> list[tuple[str, str]]:
    """The channels and targets for which there is something to be sent or to be looked for now."""
    return [(row.channel, row.target) for row in tx.execute(_PLACES, {"now": now})]


def waiting(tx: sa.Connection, now: datetime) -> tuple[int, datetime | None]:
    """How many rows should have been sent by now and are not settled, and when the first can go on.

    What is only due later, such as a reminder, does not wait.
    """
    rows = tx.execute(_OWED, {"now": now}).all()
    return sum(count for count, *_ in rows), min((_last(starts) for _, *starts in rows), default=None)


def next_after(tx: sa.Connection, now: datetime) -> datetime | None:
    """The first instant after `now` at which a row can go on that cannot now."""
    found = (_last(starts) for _, *starts in tx.execute(_LATER, {"now": now}))
    return min((start for start in found if start > now), default=None)


def _last(starts: Iterable[datetime | None]) -> datetime:
    return max(one for one in starts if one)


def paused_targets(tx: sa.Connection, channel: str, now: datetime) -> int:
    """How many targets of a channel are paused now."""
    mine = (channel_pause.c.channel == channel) & (channel_pause.c.target != "")
    found = tx.execute(
        sa.select(sa.func.count()).select_from(channel_pause).where(mine, channel_pause.c.until > now)
    )
    return found.scalar_one()


def waiting_lanes(tx: sa.Connection, channel: str) -> list[Lane]:
    """The lanes of a channel in which something is not settled."""
    rows = tx.execute(
        sa.select(outbox.c.incident_id, outbox.c.target)
        .where(outbox.c.channel == channel, outbox.c.state.in_(WAITING))
        .distinct()
    )
    return [Lane(row.incident_id, channel, row.target) for row in rows]


# Rows of the outbox, claimed by one sender at a time.

LEASE = timedelta(seconds=60)
"""How long a sender may take; after that nobody knows whether it has sent."""

# Made once, as those of due.py. What was refused stands aside until it is tried again.
_revived = (outbox.c.state == OutboxStatus.DEAD) & (outbox.c.not_before <= NOW)
_IN_LANE = (
    sa.select(outbox)
    .where(
        outbox.c.incident_id == sa.bindparam("incident"),
        outbox.c.channel == sa.bindparam("of"),
        outbox.c.target == sa.bindparam("to"),
    )
    .where(outbox.c.state.in_(WAITING) | _revived, UNPAUSED, outbox.c.state.in_(IN_FLIGHT) | HEARD)
    .order_by(outbox.c.id)
)
_MAY_BE_SAID = sa.select(outbox.c.id).where(outbox.c.id == sa.bindparam("row"), DIGEST_IS_THERE)
_LOST = sa.select(outbox).where(outbox.c.channel == sa.bindparam("of"), LOST).order_by(outbox.c.id)


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


def claim_next(tx: sa.Connection, lane: Lane, can: Capabilities, now: datetime) -> ClaimedRow | None:
    """Take the lane's next row, rendered as the incident is now; None when nothing is to be sent now.

    Rows that are not needed any more are dropped on the way. Commit before sending.
    """
    mine = {"incident": lane.incident, "of": lane.channel, "to": lane.target}
    rows = tx.execute(_IN_LANE, {"now": now, **mine}).all()
    found = incident_store.get(tx, lane.incident)
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
            sa.update(outbox).where(outbox.c.id == entry.id).values(state=OutboxStatus.DROPPED, reason=why)
        )
    if plan.suppressed:
        incident_store.log(tx, found.id, "suppressed", found.revision, now, detail=str(lane))
    if plan.head is None or plan.head.not_before > now:
        return None
    if not tx.execute(_MAY_BE_SAID, {"row": plan.head.id}).first():
        return None
    row = next(row for row in rows if row.id == plan.head.id)
    return _take(tx, row, lane, found, held, now)


def ambiguous(tx: sa.Connection, now: datetime, channel: str) -> list[ClaimedRow]:
    """The rows of a channel to look for now."""
    return [_lost(tx, row) for row in tx.execute(_LOST, {"now": now, "of": channel}).all()]


def said_elsewhere(tx: sa.Connection, claimed: ClaimedRow, receipt: MessagePlace) -> bool:
    """Whether another sender has said it too, in a message that is not this one."""
    row = tx.execute(sa.select(outbox.c.state, outbox.c.reference).where(outbox.c.id == claimed.id)).one()
    return row.state == OutboxStatus.SENT and bool(row.reference) and row.reference != receipt.reference


def _lost(tx: sa.Connection, row: sa.Row[Any]) -> ClaimedRow:
    lane = Lane(row.incident_id, row.channel, row.target)
    found = incident_store.get(tx, row.incident_id)
    if found is None:
        raise LookupError(f"outbox row {row.id} has no incident")
    # What is out there, if it is, shows the incident as it was then.
    shown = replace(render(found, row.operation), revision=row.rendered)
    return _claimed(tx, row, lane, shown, row.attempt, row.tried_at, row.tried_at)


def _take(
    tx: sa.Connection, row: sa.Row[Any], lane: Lane, found: Incident, held: Held | None, now: datetime
) -> ClaimedRow | None:
    tried_at = row.tried_at or now
    taken = tx.execute(
        sa.update(outbox)
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
    shown = render(found, row.operation, row.repeat)
    if held and held.receipt.thread and shown.note:
        # Others speak in the same thread.
        shown = replace(shown, note=f"{shown.title}: {shown.note}")
    return _claimed(tx, row, lane, shown, row.attempt + 1, tried_at, now + LEASE)


def _claimed(
    tx: sa.Connection,
    row: sa.Row[Any],
    lane: Lane,
    shown: Message,
    attempt: int,
    tried_at: datetime,
    lease_until: datetime,
) -> ClaimedRow:
    held = _held(tx, lane)
    digest = replace(lane, incident=row.digest) if row.digest else None
    above = _held(tx, digest) if digest and row.operation == CREATE else None
    return ClaimedRow(
        row.id,
        lane,
        row.operation,
        attempt,
        _message_key(lane, row),
        shown,
        held.receipt if held else None,
        tried_at,
        lease_until,
        row.looks,
        above.receipt if above else None,
        digest,
        revived=row.state == OutboxStatus.DEAD,
    )


def _message_key(lane: Lane, row: sa.Row[Any]) -> str:
    """A UUID that names this message of this step for ever, on every machine."""
    return str(
        uuid5(NAMESPACE, dumps([lane.incident, lane.channel, lane.target, row.operation, row.revision]))
    )


def _held(tx: sa.Connection, lane: Lane) -> Held | None:
    row = tx.execute(sa.select(message).where(of_lane(message, lane))).one_or_none()
    if row is None:
        return None
    return Held(MessagePlace(row.place, row.reference, row.thread), row.created_revision, row.revision)
