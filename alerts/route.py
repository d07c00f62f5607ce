"""Who is told, and when: routes by severity, escalations, quiet hours, reminders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from dq.contracts.access.alert_target import QuietHours
from dq.contracts.outcome import Severity

# Who is told: routes by severity, with the console when nobody else would be.


@dataclass(frozen=True, slots=True)
class AlertRoute:
    """Breaches of these severities go to this target of this channel.

    `channel` is an id on the shelf of channels, `target` what that channel calls a place: '#orders-alerts'
    for slack, a path for file, nothing for console. `after` is how long an incident must have been open and
    unacknowledged before it goes there; in the `quiet` hours, `quiet_severities` wait for their end.
    """

    channel: str
    target: str = ""
    severities: frozenset[Severity] = frozenset(Severity)
    after: timedelta = timedelta(0)
    quiet: QuietHours | None = None
    quiet_severities: frozenset[Severity] = frozenset()

    def hours(self, severity: Severity) -> QuietHours | None:
        """The hours at which a severity waits, if it does."""
        return self.quiet if severity in self.quiet_severities else None


CONSOLE = AlertRoute("console")


def matching(routes: Iterable[AlertRoute], severity: Severity) -> tuple[AlertRoute, ...]:
    """The routes that take a severity, each place once and as it hears first; the console when none does."""
    places: dict[tuple[str, str], AlertRoute] = {}
    for route in routes:
        if severity in route.severities:
            place = (route.channel, route.target)
            places[place] = min(places.get(place, route), route, key=lambda one: _wait(one, severity))
    return tuple(places.values()) or (CONSOLE,)


def _wait(route: AlertRoute, severity: Severity) -> tuple[timedelta, bool]:
    return route.after, route.hours(severity) is not None


# When something is said that is not said at once: escalations, quiet hours, reminders.

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
