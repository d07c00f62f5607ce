"""When something is said that is not said at once: escalations, quiet hours, reminders."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from dq.contracts.schedule.quiet_hours import QuietHours

FIRST, DAILY = timedelta(hours=4), timedelta(days=1)
"""Whoever was told is reminded so long after it broke, and then after each day."""

LEAST = timedelta(hours=1)
"""A reminder does not follow sooner on what was said last."""


class Wait(StrEnum):
    """Why something is said later."""

    NONE = ""
    ESCALATION = "escalation"  # somebody else may have taken it by then
    QUIET = "quiet"  # it is not worth waking anybody
    REMINDER = "reminder"
    CALM = "calm"  # it comes and goes


@dataclass(frozen=True, slots=True)
class LaterWord:
    """From when on something may be said, and why not before; `quiet` are the hours that hold for it."""

    not_before: datetime
    wait: Wait = Wait.NONE
    quiet: QuietHours | None = None


def first_word(after: timedelta, quiet: QuietHours | None, now: datetime) -> LaterWord:
    """When a place hears of an incident that breaks now."""
    wait = Wait.ESCALATION if after else Wait.NONE
    at = now + after
    over = quiet.over_at(at) if quiet else at
    if over > at and wait is Wait.NONE:
        wait = Wait.QUIET
    return LaterWord(over, wait, quiet)


def reminder(since: datetime, quiet: QuietHours | None, now: datetime) -> LaterWord:
    """When a place is reminded next of what is broken since then: 4 hours, a day, and each day after it.

    What should have been said while nobody could is left out, however much it was.
    """
    at, earliest = since + FIRST, now + LEAST
    if at < earliest:
        days = max(1, -((since - earliest) // DAILY))
        at = since + days * DAILY
    return LaterWord(quiet.over_at(at) if quiet else at, Wait.REMINDER, quiet)
