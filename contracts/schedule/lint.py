"""Questions a rule asks of a schedule: how close two dues come, and which of them a clock change touches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dq.contracts.schedule.clock import Schedule, civil_dues
from dq.contracts.schedule.words import Due, Note
from dq.contracts.schedule.zone import transitions

_YEAR = timedelta(days=366)
_CYCLES = 400


def shortest_gap(schedule: Schedule, start: datetime) -> timedelta | None:
    """The least time between two dues after `start`, among 400 cycles or those of a year.

    A rarer schedule is looked at until it has come twice; None when it ends before that.
    """
    shortest = previous = None
    for count, due in enumerate(schedule.after(start)):
        if previous is not None:
            gap = due.at - previous.at
            shortest = gap if shortest is None else min(shortest, gap)
            if count >= _CYCLES or due.at - start > _YEAR:
                break
        previous = due
    return shortest


def dst_hazards(schedule: Schedule, start: datetime) -> list[Due]:
    """Fixed times that a gap leaves out or an overlap repeats, within two years after `start`.

    `at` is the clock change for a time in a gap, and the first occurrence for a repeated one, whatever
    the policy makes of them. Empty for a schedule that follows real time.
    """
    if schedule.follows_real_time:
        return []
    start = start.astimezone(UTC)
    end = start + 2 * _YEAR
    changes = [
        change
        for year in range(start.year, end.year + 1)
        for change in transitions(schedule.timezone, year)
        if start < change.at <= end
    ]
    hazards = []
    for change in changes:
        low, high = change.at + min(change.before, change.after), change.at + max(change.before, change.after)
        gap = change.after > change.before
        for due in civil_dues(schedule, low, high, change.before, Note.GAP if gap else Note.FIRST_OF_TWO):
            hazards.append(due._replace(at=change.at) if gap else due)
    return hazards
