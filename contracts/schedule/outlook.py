"""What is ahead of a schedule: the days that its calendar changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime

from dq.contracts.schedule.calendar_days import DayEffect
from dq.contracts.schedule.clock import Schedule


@dataclass(frozen=True, slots=True)
class ChangedDay:
    """A civil date that the expression names and the calendar changes. `due_on` is set where it moves."""

    day: date
    effect: DayEffect
    reason: str
    due_on: date | None = None


def changed_days(schedule: Schedule, start: datetime, end: datetime) -> Iterator[ChangedDay]:
    """The dates of deliveries in (start, end] that the calendar skips, moves or excuses, ascending."""
    calendar = schedule.calendar
    if calendar is None:
        return
    plain = replace(schedule, calendar=None)
    for day in dict.fromkeys(due.nominal.date() for due in plain.between(start, end)):
        effect = calendar.effect(day)
        if effect is not None:
            moved = calendar.due_on(day) if effect is DayEffect.MOVE else None
            yield ChangedDay(day, effect, calendar.reason(day), moved)
