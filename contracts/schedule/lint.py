"""Questions a rule asks of a schedule: how close two dues come, which of them a clock change touches, and
which of them croniter reads differently."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice, zip_longest
from typing import NamedTuple

from dq.contracts.schedule import fields
from dq.contracts.schedule.clock import Schedule, civil_dues
from dq.contracts.schedule.expression import MACROS, parse
from dq.contracts.schedule.words import Dialect, Due, Note
from dq.contracts.schedule.zone import Transition, known, transitions

_YEAR = timedelta(days=366)
_CYCLES = 400
_HOUR = timedelta(hours=1)
# How much is compared: croniter takes about 0.1 ms for each due.
_DUES_COMPARED, _YEARS_COMPARED = 60, 9


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
    return [due for change in _changes(schedule, start) for due in _times_in(schedule, change)]


def _changes(schedule: Schedule, start: datetime) -> list[Transition]:
    start = start.astimezone(UTC)
    end = start + 2 * _YEAR
    years = range(start.year, end.year + 1)
    changes = (change for year in years for change in transitions(schedule.timezone, year))
    return [change for change in changes if start < change.at <= end]


def _times_in(schedule: Schedule, change: Transition) -> list[Due]:
    """The times of a schedule that a clock change leaves out or repeats."""
    low, high = change.at + min(change.before, change.after), change.at + max(change.before, change.after)
    if change.after < change.before:
        return civil_dues(schedule, low, high, change.before, Note.FIRST_OF_TWO)
    dues = civil_dues(schedule, low, high, change.before, Note.GAP)
    return [due._replace(at=change.at) for due in dues]


class CroniterDifference(NamedTuple):
    """The first instant that only one of dq and croniter reads from a schedule.

    `at` is in UTC, or None where croniter refuses the expression; `by_croniter` tells whose instant it is.
    `alike` is another spelling, which both read as dq reads the schedule, if there is one.
    """

    at: datetime | None
    by_croniter: bool
    alike: str | None


def croniter_difference(schedule: Schedule, start: datetime) -> CroniterDifference | None:
    """How croniter, in the zone of a unix schedule, differs from it after `start`; None if it does not.

    A calendar is left aside: croniter has none. croniter is imported only for expressions and nights of
    clock changes on which the two can differ; for all others the tests compare them.
    """
    if schedule.dialect is not Dialect.UNIX:
        return None
    schedule = replace(schedule, calendar=None) if schedule.calendar else schedule
    text = schedule.expression.strip()
    parts = MACROS.get(text.lower(), text).split()
    ambiguous = _ambiguous(parts)
    # At every hour, croniter gets through changes of whole hours.
    nights = [
        change.at
        for change in _changes(schedule, start)
        if (parts[1] != "*" or (change.after - change.before) % _HOUR) and _times_in(schedule, change)
    ]
    if not ambiguous and not nights:
        return None
    from croniter import CroniterError

    try:
        differences = [
            _first_difference(schedule, max(start, at - 3 * _HOUR), at + 3 * _HOUR, 360) for at in nights[:4]
        ]
        if ambiguous:
            end = start + _YEARS_COMPARED * _YEAR
            differences += [_first_difference(schedule, start, end), _first_day_apart(schedule, parts, start)]
    except CroniterError:
        return CroniterDifference(None, by_croniter=False, alike=_spelling_alike(schedule, parts, start))
    first = min((difference for difference in differences if difference), default=None)
    return CroniterDifference(*first, alike=_spelling_alike(schedule, parts, start)) if first else None


def _ambiguous(parts: list[str]) -> bool:
    """Whether croniter may read these fields differently from cron.

    It takes `5-5` for the whole field, joins a day and a weekday with OR where one of them starts with `*`
    and a step, and refuses `LW`, `5L` and, next to other days, `1#2`.
    """
    day, weekday = parts[2].upper(), parts[4].upper()
    return (
        "LW" in day
        or "L" in weekday
        or ("#" in weekday and (day != "*" or "," in weekday))
        or ("*" not in (day, weekday) and "*" in (day[0], weekday[0]))
        or any(
            _without_ranges_of_one(part, spec) != part for part, spec in zip(parts, fields.UNIX, strict=True)
        )
    )


def _without_ranges_of_one(text: str, spec: fields.Spec) -> str:
    if "-" not in text:
        return text
    items = []
    for item in text.split(","):
        values = fields.read(item, spec).values
        items.append(str(*values) if "-" in item and len(values) == 1 else item)
    return ",".join(items)


def _spelling_alike(schedule: Schedule, parts: list[str], start: datetime) -> str | None:
    plain = [_without_ranges_of_one(*field) for field in zip(parts, fields.UNIX, strict=True)]
    text = " ".join("*" if part == "*/1" else part for part in plain)
    if text == schedule.expression:
        return None
    same = parse(text, timezone=schedule.timezone, dst=schedule.dst)
    if not isinstance(same, Schedule) or replace(same, expression=schedule.expression) != schedule:
        return None
    return None if croniter_difference(same, start) else text


def _first_day_apart(schedule: Schedule, parts: list[str], start: datetime) -> tuple[datetime, bool] | None:
    """The first time of the first day that only one of the two names.

    The other comparison does not get far in days where a schedule names many times of each.
    """
    minute = str(min(fields.read(parts[0], fields.MINUTE).values))
    hour = str(min(fields.read(parts[1], fields.HOUR).values))
    days = replace(
        schedule,
        expression=" ".join((minute, hour, *parts[2:])),
        minute=minute,
        hour=hour,
        timezone="UTC",
        wildcard=False,
    )
    zone = known(schedule.timezone)
    civil = start.astimezone(zone).replace(tzinfo=UTC)
    difference = _first_difference(days, civil, civil + _YEARS_COMPARED * _YEAR)
    return difference and (difference[0].replace(tzinfo=zone).astimezone(UTC), difference[1])


def _first_difference(
    schedule: Schedule, start: datetime, end: datetime, most: int = _DUES_COMPARED
) -> tuple[datetime, bool] | None:
    ours = (due.at for due in schedule.between(start, end))
    theirs = _croniter_dues(schedule, start, end)
    for mine, other in islice(zip_longest(ours, theirs), most):
        if mine != other:
            by_croniter = mine is None or (other is not None and other < mine)
            return (other, True) if by_croniter else (mine, False)
    return None


def _croniter_dues(schedule: Schedule, start: datetime, end: datetime) -> Iterator[datetime]:
    # Imported here because it takes longer to import than a contract takes to read.
    from croniter import CroniterBadDateError, croniter

    # The bound on years keeps its search short; all is compared within that many.
    dues = croniter(
        schedule.expression.strip(),
        start.astimezone(known(schedule.timezone)),
        max_years_between_matches=_YEARS_COMPARED,
    )
    try:
        while (due := dues.get_next(datetime).astimezone(UTC)) <= end:
            yield due
    except CroniterBadDateError:
        return
