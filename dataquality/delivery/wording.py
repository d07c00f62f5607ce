"""How deliveries are told to people: civil times in the zone of the schedule, lateness in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from dq.contracts.schedule import Cycle, zone
from dq.contracts.shared.fault import TextFault
from dq.contracts.slo import Slo
from dq.dataquality.delivery.sources.probe import label
from dq.dataquality.delivery.status import CycleVerdict

if TYPE_CHECKING:
    from dq.dataquality.delivery.watch import PastMiss

# A message has room for twelve facts.
_MOST_LINES = 10


def local(slo: Slo, instant: datetime) -> str:
    """An instant on the clock of the schedule's zone, such as `2013-11-05 06:00 EST`."""
    found = zone(slo.schedule.timezone)
    if isinstance(found, TextFault):
        return f"{instant:%Y-%m-%d %H:%M}Z"
    return f"{instant.astimezone(found):%Y-%m-%d %H:%M %Z}"


def span(length: timedelta) -> str:
    """A length of time in its two largest units: `2 h 10 min`, `3 d 4 h`, `0 min`."""
    minutes = int(abs(length).total_seconds()) // 60
    parts = [(minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min")]
    used = [f"{amount} {unit}" for amount, unit in parts if amount][:2]
    return " ".join(used) or "0 min"


def promised(slo: Slo, cycle: Cycle) -> str:
    """The promise of one cycle: what, by when, with which grace."""
    what = ", ".join(label(partition) for partition in cycle.partitions) or "an update"
    grace = f", {span(slo.grace)} grace" if slo.grace else ""
    return f"{what} by {local(slo, cycle.due_at)}{grace}"


def seen(slo: Slo, cycle: Cycle, judged: CycleVerdict) -> str:
    """What came of a cycle that was missing."""
    if judged.lateness is None:
        return judged.reason
    when = local(slo, cycle.due_at + judged.lateness)
    if judged.lateness <= slo.grace:
        return f"{when}: it was in time, and we saw it late"
    return f"{when}, {span(judged.lateness)} after it was due"


def summary(misses: Sequence[PastMiss]) -> str:
    """What ended badly before anybody was told, in one line."""
    never = sum(1 for one in misses if one.verdict.lateness is None)
    late = len(misses) - never
    said = [f"{late} came late"] if late else []
    said += [f"{never} never came"] if never else []
    return f"deliveries that nobody was told of: {', '.join(said)}"


def digest(misses: Sequence[PastMiss]) -> tuple[tuple[str, str], ...]:
    """A line for each of them, the latest first, as far as a message holds them."""
    newest = sorted(misses, key=lambda one: one.kept.cycle.due_at, reverse=True)
    lines = [
        # No two lines may have one label.
        (
            f"{one.slo.contract.key}/{one.slo.id} {one.kept.cycle.due_at:%m-%d %H:%M}Z",
            f"{promised(one.slo, one.kept.cycle)}: {_came(one)}",
        )
        for one in newest[:_MOST_LINES]
    ]
    left = len(newest) - _MOST_LINES
    return (*lines, ("and", f"{left} more; see 'dq status'")) if left > 0 else tuple(lines)


def _came(miss: PastMiss) -> str:
    if miss.verdict.lateness is None:
        return "it never came"
    return f"it came {seen(miss.slo, miss.kept.cycle, miss.verdict)}"
