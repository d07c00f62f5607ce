"""Who is told: routes by severity, with the console when nobody else would be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from dq.contracts.schedule.quiet_hours import QuietHours
from dq.contracts.shared.outcome import Severity


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
