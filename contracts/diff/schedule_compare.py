"""Two schedules compared by the instants at which they fire over a year, never by their text."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from dq.contracts.extension import Delivery
from dq.contracts.schedule import Due, Schedule, parse, zone
from dq.contracts.shared.fault import TextFault
from dq.contracts.slo import schedule_of

_YEAR = timedelta(days=366)


class Fires(StrEnum):
    """How the second schedule relates to the first."""

    SAME = "same"
    EARLIER = "earlier"  # at least as many deliveries on each day, none later
    LATER = "later"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Timing:
    """When a service level is due: the text, and what reads it."""

    text: str
    schedule: Schedule | None


def timing(text: str, delivery: Delivery | None) -> Timing:
    """The timing of a cron; without delivery terms it is read in UTC."""
    spelling = " ".join(text.split())
    if delivery is None:
        found = parse(spelling)
    else:
        found = schedule_of(spelling, delivery, delivery.calendar.days() if delivery.calendar else None)
    return Timing(spelling, None if isinstance(found, TextFault) else found)


def compare(first: Timing, second: Timing, start: date) -> Fires:
    """The relation over the year from `start`. A text that is no schedule is only equal to itself."""
    if first == second:
        return Fires.SAME
    if first.schedule is None or second.schedule is None:
        return Fires.SAME if first.text == second.text and first.schedule == second.schedule else Fires.OTHER
    before, after = _dues(first.schedule, start), _dues(second.schedule, start)
    instants, instants_after = [due.at for due in before], [due.at for due in after]
    if instants == instants_after:
        return Fires.SAME
    # A day is a day of the first schedule's zone, on both sides: promises are kept per day.
    by_day, by_day_after = (
        _days(before, first.schedule, first.schedule),
        _days(after, second.schedule, first.schedule),
    )
    if _covers(by_day_after, by_day):
        return Fires.EARLIER
    if _covers(by_day, by_day_after):
        return Fires.LATER
    return _by_gap(instants, instants_after)


def _dues(schedule: Schedule, start: date) -> list[Due]:
    begin = datetime(start.year, start.month, start.day, tzinfo=UTC)
    dues = schedule.between(begin, begin + _YEAR)
    # What is excused is promised no more than what is not due; what was moved is promised beside what is due.
    return [due for due in dues if not schedule.excuse(due) for _ in schedule.origins(due)]


def _days(dues: list[Due], own: Schedule, first: Schedule) -> dict[date, list[datetime]]:
    there = zone(first.timezone)
    days: dict[date, list[datetime]] = defaultdict(list)
    for due in dues:
        # The civil date is at hand in the schedule's own zone; making it anew costs far more.
        if own.timezone == first.timezone or isinstance(there, TextFault):
            days[due.nominal.date()].append(due.at)
        else:
            days[due.at.astimezone(there).date()].append(due.at)
    return days


def _covers(covering: dict[date, list[datetime]], covered: dict[date, list[datetime]]) -> bool:
    """Whether every delivery of `covered` has one of the same rank and day in `covering`, no later."""
    return all(
        len(covering.get(day, ())) >= len(instants)
        and all(own <= other for own, other in zip(covering[day], instants, strict=False))
        for day, instants in covered.items()
    )


def _by_gap(before: list[datetime], after: list[datetime]) -> Fires:
    longest, longest_after = _longest_gap(before), _longest_gap(after)
    if longest_after > longest and len(after) < len(before):
        return Fires.LATER
    if longest_after < longest and len(after) > len(before):
        return Fires.EARLIER
    return Fires.OTHER


def _longest_gap(instants: list[datetime]) -> timedelta:
    return max((later - earlier for earlier, later in pairwise(instants)), default=_YEAR)
