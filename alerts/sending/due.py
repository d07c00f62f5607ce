"""What of the outbox can be sent now, and what has to wait until when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, case, func, select

from dq.alerts.hush import heard
from dq.alerts.incident import CREATE
from dq.alerts.lane import Lane
from dq.alerts.outbox import IN_FLIGHT, UNSENT, WAITING, OutboxStatus
from dq.alerts.tables import channel_pause, incident, message, outbox
from dq.store.schema import UtcDateTime

# Made once: an alias costs a millisecond, and a drain asks many times.
_digest, _other = incident.alias(), outbox.alias()
_whole, _place = channel_pause.alias(), channel_pause.alias()


@dataclass(frozen=True, slots=True)
class DueLane:
    """A lane in which something can be sent now: rank 0 opens or ends an incident, 1 tells more of it."""

    lane: Lane
    rank: int


def due(tx: Connection, now: datetime, channel: str) -> list[DueLane]:
    """The lanes of a channel in which something can be sent now, the one that waited longest first."""
    opens = (outbox.c.operation == CREATE) & outbox.c.digest.is_(None)
    first = case((opens | incident.c.resolved_at.is_not(None), 0), else_=1)
    rows = tx.execute(
        select(outbox.c.incident_id, outbox.c.target, func.min(first).label("rank"))
        .join(incident, incident.c.id == outbox.c.incident_id)
        .where(outbox.c.channel == channel, _sendable(now))
        .group_by(outbox.c.incident_id, outbox.c.target)
        .order_by(func.min(outbox.c.id))
    )
    return [DueLane(Lane(row.incident_id, channel, row.target), row.rank) for row in rows]


def due_places(tx: Connection, now: datetime) -> list[tuple[str, str]]:
    """The channels and targets for which there is something to be sent or to be looked for now."""
    slept = (outbox.c.state == OutboxStatus.SENDING) & (outbox.c.lease_until <= now)
    rows = tx.execute(
        select(outbox.c.channel, outbox.c.target).where(_sendable(now) | lost_by(now) | slept).distinct()
    )
    return [(row.channel, row.target) for row in rows]


def _sendable(now: datetime) -> ColumnElement[bool]:
    busy = select(_other.c.id).where(
        _other.c.incident_id == outbox.c.incident_id,
        _other.c.channel == outbox.c.channel,
        _other.c.target == outbox.c.target,
        _other.c.state.in_(IN_FLIGHT),
    )
    return and_(
        outbox.c.state.in_(UNSENT),
        outbox.c.not_before <= now,
        ~busy.exists(),
        unpaused(now),
        heard(now),
        digest_is_there(),
    )


def digest_is_there() -> ColumnElement[bool]:
    """Whether a row's digest, if it has one, is where the row belongs: below it."""
    # What belongs into the thread of a digest waits for it; none comes that was over before it was said.
    there = select(message.c.revision).where(
        message.c.incident_id == outbox.c.digest,
        message.c.channel == outbox.c.channel,
        message.c.target == outbox.c.target,
    )
    over = select(_digest.c.id).where(_digest.c.id == outbox.c.digest, _digest.c.resolved_at.is_not(None))
    coming = select(_other.c.id).where(
        _other.c.incident_id == outbox.c.digest,
        _other.c.channel == outbox.c.channel,
        _other.c.target == outbox.c.target,
        _other.c.operation == CREATE,
        _other.c.state.in_(WAITING),
    )
    return outbox.c.digest.is_(None) | there.exists() | (over.exists() & ~coming.exists())


def should_be_there(now: datetime) -> ColumnElement[bool]:
    """Whether a row ought to be sent by now: nobody wanted it later, or not at all for a while."""
    return ((outbox.c.not_before <= now) & (outbox.c.wait == "") & heard(now)) | (outbox.c.attempt > 0)


def lost_by(now: datetime) -> ColumnElement[bool]:
    """Whether nobody knows if a row arrived, and it is time to look for it."""
    return (outbox.c.state == OutboxStatus.AMBIGUOUS) & (outbox.c.not_before <= now) & unpaused(now)


def waiting(tx: Connection, now: datetime) -> tuple[int, datetime | None]:
    """How many rows should have been sent by now and are not settled, and when the first can go on.

    What is only due later, such as a reminder, does not wait.
    """
    rows = _starts(tx, should_be_there(now))
    return sum(count for count, _ in rows), min((start for _, start in rows), default=None)


def next_after(tx: Connection, now: datetime) -> datetime | None:
    """The first instant after `now` at which a row can go on that cannot now."""
    paused = ~unpaused(now)
    later = (outbox.c.not_before > now) | (outbox.c.lease_until > now) | paused
    return min((start for _, start in _starts(tx, later) if start > now), default=None)


def _starts(tx: Connection, which: ColumnElement[bool]) -> list[tuple[int, datetime]]:
    """How many rows there are of each place, and when the first of them can go on."""
    # A claimed row goes on when its lease ends, a ready one not before its place's pause does.
    at = case((outbox.c.state == OutboxStatus.SENDING, outbox.c.lease_until), else_=outbox.c.not_before)
    rows = tx.execute(
        select(func.count(), func.min(at, type_=UtcDateTime), _whole.c.until, _place.c.until)
        .select_from(
            outbox.outerjoin(
                _whole, (_whole.c.channel == outbox.c.channel) & (_whole.c.target == "")
            ).outerjoin(_place, (_place.c.channel == outbox.c.channel) & (_place.c.target == outbox.c.target))
        )
        .where(outbox.c.state.in_(WAITING), which)
        .group_by(outbox.c.channel, outbox.c.target, _whole.c.until, _place.c.until)
    ).all()
    return [(count, max(one for one in starts if one)) for count, *starts in rows]


def paused_targets(tx: Connection, channel: str, now: datetime) -> int:
    """How many targets of a channel are paused now."""
    mine = (channel_pause.c.channel == channel) & (channel_pause.c.target != "")
    found = tx.execute(
        select(func.count()).select_from(channel_pause).where(mine, channel_pause.c.until > now)
    )
    return found.scalar_one()


def waiting_lanes(tx: Connection, channel: str) -> list[Lane]:
    """The lanes of a channel in which something is not settled."""
    rows = tx.execute(
        select(outbox.c.incident_id, outbox.c.target)
        .where(outbox.c.channel == channel, outbox.c.state.in_(WAITING))
        .distinct()
    )
    return [Lane(row.incident_id, channel, row.target) for row in rows]


def unpaused(now: datetime) -> ColumnElement[bool]:
    """Whether nobody has said that a row's place, or its whole channel, must wait."""
    mine = (channel_pause.c.channel == outbox.c.channel) & channel_pause.c.target.in_(("", outbox.c.target))
    return ~select(channel_pause.c.until).where(mine, channel_pause.c.until > now).exists()
