"""Who is told: routes by severity, with the console when nobody else would be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dq.contracts.shared.outcome import Severity


@dataclass(frozen=True, slots=True)
class AlertRoute:
    """Breaches of these severities go to this target of this channel.

    `channel` is an id on the shelf of channels, `target` what that channel calls a place: '#orders-alerts'
    for slack, a path for file, nothing for console.
    """

    channel: str
    target: str = ""
    severities: frozenset[Severity] = frozenset(Severity)


CONSOLE = AlertRoute("console")


def matching(routes: Iterable[AlertRoute], severity: Severity) -> tuple[AlertRoute, ...]:
    """The routes that take a severity, each place once; the console when none does."""
    places = {(route.channel, route.target): route for route in routes if severity in route.severities}
    return tuple(places.values()) or (CONSOLE,)
