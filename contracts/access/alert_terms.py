"""When a support entry hears of a breach: the terms of its route, ready to be asked.

A rule of the gate and the watcher read them through the same door.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from dq.contracts import extension
from dq.contracts.model import SupportChannel
from dq.contracts.node import Node
from dq.contracts.schedule.quiet_hours import QuietHours, quiet_hours
from dq.contracts.shared.fault import TextFault
from dq.contracts.shared.outcome import Finding, Severity, mistake
from dq.contracts.shared.units import parse_elapsed

RULE = "alert-route-invalid"
_LONGEST = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class RouteTerms:
    """Which severities are told, after which time open and unacknowledged, and when small things wait."""

    severities: frozenset[Severity] = frozenset(Severity)
    escalate_after: timedelta = timedelta(0)
    quiet: QuietHours | None = None
    quiet_severities: frozenset[Severity] = frozenset()


def route_terms(support: SupportChannel) -> tuple[RouteTerms, list[Finding]]:
    """The terms of an entry, and what is wrong with them.

    A term that cannot be understood is as if it were not written, so that nobody hears less or later.
    """
    route, findings = extension.route(support)

    def wrong(node: Node, key: str, odd: TextFault) -> None:
        message = f"{key}: {odd.message}"
        findings.append(mistake(RULE, message, odd.mend, node.at(key), node.path(key)))

    after = _after(route.escalate_after)
    if isinstance(after, TextFault):
        wrong(route, "escalateAfter", after)
    quiet = quiet_hours(route.quiet, route.timezone) if route.quiet else None
    if isinstance(quiet, TextFault):
        wrong(route, "timezone" if quiet.code.startswith("ZONE") else "quiet", quiet)
    return RouteTerms(
        frozenset(Severity(word) for word in route.severities),
        after if isinstance(after, timedelta) else timedelta(0),
        quiet if isinstance(quiet, QuietHours) else None,
        frozenset(Severity(word) for word in route.quiet_severities),
    ), findings


def _after(text: str | None) -> timedelta | TextFault:
    if text is None:
        return timedelta(0)
    elapsed = parse_elapsed(text)
    if isinstance(elapsed, timedelta) and elapsed > _LONGEST:
        return TextFault("ROUTE_LATE", f"{text!r} is too long to wait.", "Write something up to 7d.")
    return elapsed
