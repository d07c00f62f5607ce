"""Routing of alerts: routes by severity, escalations, quiet hours, reminders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from dq.contracts.access.alert_target import QuietHours
from dq.contracts.outcome import Severity

# Routes by severity, with the console as the default.


@dataclass(frozen=True, slots=True)
class AlertRoute:
    """Breaches of these severities go to this target of this channel.

    `channel` is the id of a channel, and `target` a target of that channel: '#orders-alerts' for slack, a
    path for file, "" for console. `after` is how long an incident must have been open and unacknowledged
    before it is sent; `quiet_severities` wait for the end of the `quiet` hours.
    """

    channel: str
    target: str = ""
    severities: frozenset[Severity] = frozenset(Severity)
    after: timedelta = timedelta(0)
    quiet: QuietHours | None = None
    quiet_severities: frozenset[Severity] = frozenset()

    def quiet_hours(self, severity: Severity) -> QuietHours | None:
        """Return the quiet hours for a severity, or None if it does not wait."""
        return self.quiet if severity in self.quiet_severities else None


CONSOLE = AlertRoute("console")


def matching_routes(routes: Iterable[AlertRoute], severity: Severity) -> tuple[AlertRoute, ...]:
    """Return the routes for a severity, for each target the earliest one; the console if there are none."""
    by_target: dict[tuple[str, str], AlertRoute] = {}
    for route in routes:
        if severity in route.severities:
            target = (route.channel, route.target)
            by_target[target] = min(
                by_target.get(target, route), route, key=lambda candidate: _delay(candidate, severity)
            )
    return tuple(by_target.values()) or (CONSOLE,)


def _delay(route: AlertRoute, severity: Severity) -> tuple[timedelta, bool]:
    return route.after, route.quiet_hours(severity) is not None


# Deferrals: escalations, quiet hours, reminders.

FIRST_REMINDER, REMINDER_INTERVAL = timedelta(hours=4), timedelta(days=1)
"""Time from the breach to the first reminder, and between reminders."""

MIN_REMINDER_GAP = timedelta(hours=1)
"""Minimum time between the last message and a reminder."""


class DeferralReason(StrEnum):
    """Reason of a deferral."""

    NONE = ""
    ESCALATION = "escalation"  # it may be acknowledged by then
    QUIET = "quiet"  # quiet hours
    REMINDER = "reminder"
    CALM = "calm"  # flapping


@dataclass(frozen=True, slots=True)
class Deferral:
    """Earliest time of a notification with its reason; `quiet` are the quiet hours that apply to it."""

    not_before: datetime
    reason: DeferralReason = DeferralReason.NONE
    quiet: QuietHours | None = None


def initial_deferral(after: timedelta, quiet: QuietHours | None, now: datetime) -> Deferral:
    """Return the deferral of the first notification of an incident that opens now."""
    reason = DeferralReason.ESCALATION if after else DeferralReason.NONE
    notify_at = now + after
    not_before = quiet.end_at(notify_at) if quiet else notify_at
    if not_before > notify_at and reason is DeferralReason.NONE:
        reason = DeferralReason.QUIET
    return Deferral(not_before, reason, quiet)


def next_reminder(since: datetime, quiet: QuietHours | None, now: datetime) -> Deferral:
    """Return the next reminder of an incident open since `since`: after 4 hours, after a day, and then daily.

    Missed reminders are skipped.
    """
    remind_at, earliest = since + FIRST_REMINDER, now + MIN_REMINDER_GAP
    if remind_at < earliest:
        days = max(1, -((since - earliest) // REMINDER_INTERVAL))
        remind_at = since + days * REMINDER_INTERVAL
    return Deferral(quiet.end_at(remind_at) if quiet else remind_at, DeferralReason.REMINDER, quiet)
