"""What of the outbox can be sent now, and what has to wait until when.

Conditions and questions are made once, about the instant NOW: to make them takes longer than to ask them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, case, func, select

from dq.alerts.hush import HEARD, NOW
from dq.alerts.incident import CREATE
from dq.alerts.lane import Lane
from dq.alerts.outbox import IN_FLIGHT, UNSENT, WAITING, OutboxStatus
from dq.alerts.tables import channel_pause, incident, message, outbox
from dq.store.schema import UtcDateTime

_digest, _other = incident.alias(), outbox.alias()
_whole, _place = channel_pause.alias(), channel_pause.alias()


def _unpaused() -> ColumnElement[bool]:
    mine = (channel_pause.c.channel == outbox.c.channel) & channel_pause.c.target.in_(("", outbox.c.target))
    return ~select(channel_pause.c.until).where(mine, channel_pause.c.until > NOW).exists()


def _digest_is_there() -> ColumnElement[bool]:
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


UNPAUSED = _unpaused()
"""Whether nobody has said that a row's place, or its whole channel, must wait."""

DIGEST_IS_THERE = _digest_is_there()
"""Whether a row's digest, if it has one, is where the row belongs: below it."""

SHOULD_BE_THERE = ((outbox.c.not_before <= NOW) & (outbox.c.wait == "") & HEARD) | (outbox.c.attempt > 0)
"""Whether a row ought to be sent by now: nobody wanted it later, or not at all for a while."""

LOST = (outbox.c.state == OutboxStatus.AMBIGUOUS) & (outbox.c.not_before <= NOW) & UNPAUSED
"""Whether nobody knows if a row arrived, and it is time to look for it."""

_busy = select(_other.c.id).where(
    _other.c.incident_id == outbox.c.incident_id,
    _other.c.channel == outbox.c.channel,
    _other.c.target == outbox.c.target,
    _other.c.state.in_(IN_FLIGHT),
)
_SENDABLE = and_(
    outbox.c.state.in_(UNSENT), outbox.c.not_before <= NOW, ~_busy.exists(), UNPAUSED, HEARD, DIGEST_IS_THERE
)
_slept = (outbox.c.state == OutboxStatus.SENDING) & (outbox.c.lease_until <= NOW)
_PLACES = select(outbox.c.channel, outbox.c.target).where(_SENDABLE | LOST | _slept).distinct()

_opens = (outbox.c.operation == CREATE) & outbox.c.digest.is_(None)
_first = case((_opens | incident.c.resolved_at.is_not(None), 0), else_=1)
_LANES = (
    select(outbox.c.incident_id, outbox.c.target, func.min(_first).label("rank"))
    .join(incident, incident.c.id == outbox.c.incident_id)
    .where(outbox.c.channel == bindparam("of"), _SENDABLE)
    .group_by(outbox.c.incident_id, outbox.c.target)
    .order_by(func.min(outbox.c.id))
)


def _starts(which: ColumnElement[bool]) -> Select[int, datetime, datetime, datetime]:
    """How many rows there are of each place, and the instants after which the first of them can go on."""
    # A claimed row goes on when its lease ends, a ready one not before its place's pause does.
    at = case((outbox.c.state == OutboxStatus.SENDING, outbox.c.lease_until), else_=outbox.c.not_before)
    return (
        select(func.count(), func.min(at, type_=UtcDateTime), _whole.c.until, _place.c.until)
        .select_from(
            outbox.outerjoin(
                _whole, (_whole.c.channel == outbox.c.channel) & (_whole.c.target == "")
            ).outerjoin(_place, (_place.c.channel == outbox.c.channel) & (_place.c.target == outbox.c.target))
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


def due(tx: Connection, now: datetime, channel: str) -> list[DueLane]:
    """The lanes of a channel in which something can be sent now, the one that waited longest first."""
    rows = tx.execute(_LANES, {"now": now, "of": channel})
    return [DueLane(Lane(row.incident_id, channel, row.target), row.rank) for row in rows]


def due_places(tx: Connection, now: datetime) -> list[tuple[str, str]]:
    """The channels and targets for which there is something to be sent or to be looked for now."""
    return [(row.channel, row.target) for row in tx.execute(_PLACES, {"now": now})]


def waiting(tx: Connection, now: datetime) -> tuple[int, datetime | None]:
    """How many rows should have been sent by now and are not settled, and when the first can go on.

    What is only due later, such as a reminder, does not wait.
    """
    rows = tx.execute(_OWED, {"now": now}).all()
    return sum(count for count, *_ in rows), min((_last(starts) for _, *starts in rows), default=None)


def next_after(tx: Connection, now: datetime) -> datetime | None:
    """The first instant after `now` at which a row can go on that cannot now."""
    found = (_last(starts) for _, *starts in tx.execute(_LATER, {"now": now}))
    return min((start for start in found if start > now), default=None)


def _last(starts: Iterable[datetime | None]) -> datetime:
    return max(one for one in starts if one)


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
