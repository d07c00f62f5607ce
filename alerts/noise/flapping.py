"""When an incident comes and goes so often that each change is news to nobody."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from dq.alerts.noise.timing import LaterWord, Wait

LIMITS = ((6, 4), (12, 6))
"""More changes than the second number within so many periods, and it flaps."""

KEPT = 16
"""So many of the last changes are remembered."""

HOUR = timedelta(hours=1)
"""How often the message is edited meanwhile; also the period of what has none."""


def flaps(changes: Sequence[datetime], period: timedelta | None, now: datetime) -> bool:
    """Whether it broke and ended too often in its last periods, by the instants of these changes.

    A period is the time from one due instant to the next. A change that lies a whole window back counts no
    more.
    """
    length = period or HOUR
    return any(sum(at > now - periods * length for at in changes) > most for periods, most in LIMITS)


def calm(period: timedelta | None) -> timedelta:
    """How long nothing must change for it to be over: what breaks after that is a new incident."""
    return max(period or HOUR, HOUR)


def edit(since: datetime, now: datetime) -> LaterWord:
    """When the message is edited next: on the hour, counted from when it began to flap."""
    hours = -((since - now) // HOUR)
    return LaterWord(since + hours * HOUR, Wait.CALM)


def reply(period: timedelta | None, now: datetime) -> LaterWord:
    """When the thread hears of a change: once it has lasted."""
    return LaterWord(now + calm(period), Wait.CALM)
