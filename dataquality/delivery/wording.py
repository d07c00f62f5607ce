"""How deliveries are told to people: civil times in the zone of the schedule, lateness in words."""

from __future__ import annotations

from datetime import datetime, timedelta

from dq.contracts.schedule import Cycle, zone
from dq.contracts.shared.fault import TextFault
from dq.contracts.slo import Slo
from dq.dataquality.delivery.sources.probe import label
from dq.dataquality.delivery.status import CycleVerdict


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
