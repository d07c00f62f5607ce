"""Schedules of EventBridge that start an evaluation right after each breach: after due time plus grace.

EventBridge computes times on the clock of a zone, without calendars, and cron lists minutes, hours and days
independently of each other. What it cannot express is approximated with more starts, never with fewer: an
evaluation without a breach changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from dq.contracts.outcome import ValueProblem
from dq.contracts.schedule.calendar import Transition, load_zone, transitions
from dq.contracts.schedule.clock import Schedule, day_fields, numbers_text, parse, times_of_day
from dq.contracts.schedule.cron import LAST, LAST_WEEKDAY, WEEKDAYS, DayRule, Dialect

_HOURS, _MINUTES = frozenset(range(24)), frozenset(range(60))
_DAYS, _WEEK, _MONTHS = frozenset(range(1, 32)), frozenset(range(7)), frozenset(range(1, 13))
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)
_EVERY_DAY = "* * ? *"
_EVERY_DATE = DayRule(_DAYS, frozenset(), tuple(range(1, 13)), _WEEK, frozenset(), requires_both=False)
# A later date is then in the same or in the next month.
_LONGEST_SHIFT = 27
_LONGEST_TEXT = 256
# Within 28 years a clock change on a certain Sunday has been on each of its dates.
_YEARS = 28

Start = tuple[str, str]
"""A `cron(...)` expression of EventBridge and its time zone."""


def breach_starts(schedule: Schedule, grace: timedelta, year: int) -> list[Start]:
    """Return the schedules that together start within a minute after each breach from `year` on.

    They may also start without a breach: where a calendar or two restrictions of the day exclude dates, after
    the ends of short months, and around the dates of clock changes.
    """
    zone = schedule.timezone
    starts = [(text, zone) for text in _local_starts(schedule, grace)]
    # Only what clock changes depend on, so that equal times are computed once.
    daily = replace(schedule, expression="", days=_EVERY_DATE, calendar=None)
    is_daily = grace > _LONGEST_SHIFT * _DAY or _date_fields(schedule, 0) == [_EVERY_DAY]
    return starts + [(text, "UTC") for text in _clock_change_starts(daily, grace, year, is_daily=is_daily)]


def _local_starts(schedule: Schedule, grace: timedelta) -> Iterator[str]:
    """Yield the expressions of due time plus grace on the clock of the zone."""
    times: dict[int, set[timedelta]] = defaultdict(set)
    for time in times_of_day(schedule.minute, schedule.hour, schedule.second):
        days, time = divmod(_next_minute(time + grace), _DAY)
        times[days].add(time)
    for days, shifted_times in sorted(times.items()):
        yield from _expressions(shifted_times, _date_fields(schedule, days))


def _next_minute(time: timedelta) -> timedelta:
    """Return a time rounded up to a minute."""
    return -(-time // _MINUTE) * _MINUTE


def _expressions(times: Iterable[timedelta], dates: Iterable[str]) -> Iterator[str]:
    """Yield an expression for each set of minutes that occur in the same hours, and each of the dates."""
    hours_by_minute: dict[int, set[int]] = defaultdict(set)
    for time in times:
        hour, minute = divmod(time // _MINUTE, 60)
        hours_by_minute[minute].add(hour)
    minutes_by_hours: dict[frozenset[int], set[int]] = defaultdict(set)
    for minute, hours in hours_by_minute.items():
        minutes_by_hours[frozenset(hours)].add(minute)
    for hour_set, minutes in sorted(minutes_by_hours.items(), key=lambda entry: min(entry[1])):
        minute_text = numbers_text(frozenset(minutes), _MINUTES, aws=True)
        time_text = f"{minute_text} {numbers_text(hour_set, _HOURS, aws=True)}"
        texts = [f"cron({time_text} {fields})" for fields in dates]
        is_too_long = any(len(text) > _LONGEST_TEXT for text in texts)
        yield from [f"cron({time_text} {_EVERY_DAY})"] if is_too_long else texts


# Dates, a number of days after those of a schedule.


def _date_fields(schedule: Schedule, days: int) -> list[str]:
    """Return the fields (day, month, weekday, year) that include each date of a schedule, `days` later."""
    rule = schedule.days
    if days > _LONGEST_SHIFT or (schedule.calendar is not None and schedule.calendar.moves):
        return [_EVERY_DAY]
    years = (
        None if rule.years is None else rule.years | ({year + 1 for year in rule.years} if days else set())
    )
    year_text = "*" if years is None else ",".join(map(str, sorted(years)))
    if days == 0:
        months = numbers_text(frozenset(rule.months), _MONTHS, aws=True)
        exact = day_fields(rule)
        if not isinstance(exact, ValueProblem) and rule.special_days <= {LAST}:
            return [f"{day} {months} {weekday} {year_text}" for day, weekday in exact]
    return [f"{text} {year_text}" for text in _later_fields(rule, days)]


def _later_fields(rule: DayRule, days: int) -> Iterator[str]:
    every_day, every_weekday = rule.days >= _DAYS, rule.weekdays >= _WEEK
    months, next_months = frozenset(rule.months), frozenset(month % 12 + 1 for month in rule.months)
    either_month = numbers_text(months | next_months if days else months, _MONTHS, aws=True)
    if (every_day and every_weekday) or (not rule.requires_both and (every_day or every_weekday)):
        yield f"* {either_month} ?"
        return
    if not every_day:
        same_month, next_month = _later_days(rule, days)
        if months == _MONTHS:
            same_month, next_month = same_month | next_month, frozenset()
        for later_days, in_months in ((same_month, months), (next_month, next_months)):
            if later_days:
                day_text = numbers_text(later_days, _DAYS, aws=True)
                yield f"{day_text} {numbers_text(in_months, _MONTHS, aws=True)} ?"
    if not every_weekday and (every_day or not rule.requires_both):
        weekdays = rule.weekdays | {weekday for weekday, _ in rule.special_weekdays}
        names = [WEEKDAYS[number] for number in sorted((weekday + days) % 7 for weekday in weekdays)]
        yield f"? {either_month} {','.join(names)}"


def _later_days(rule: DayRule, days: int) -> tuple[frozenset[int], frozenset[int]]:
    """Return the days of the month of a rule, `days` later, in its month and in the next one.

    The end of the month is that of any month.
    """
    same_month: set[int] = set()
    next_month: set[int] = set()
    for length in range(28, 32):
        dates = {day for day in rule.days if day <= length}
        for mark in rule.special_days:
            day = length if mark in (LAST, LAST_WEEKDAY) else mark
            # The nearest working day is at most two days away.
            distance = 0 if mark == LAST else 2
            dates.update(range(max(1, day - distance), min(length, day + distance) + 1))
        same_month.update(day + days for day in dates if day + days <= length)
        next_month.update(day + days - length for day in dates if day + days > length)
    return frozenset(same_month), frozenset(next_month)


# Clock changes: breaches that are not due plus grace on the clock of the zone.


@lru_cache(maxsize=4_096)
def _clock_change_starts(daily: Schedule, grace: timedelta, year: int, *, is_daily: bool) -> tuple[str, ...]:
    """Return the expressions in UTC for breaches at which EventBridge does not start the local ones.

    It skips a time that a clock change skips, and starts at a repeated time once. Unless the local ones start
    on every day (`is_daily`), a start that belongs to the due time of another date may not exist.
    """
    local_starts = [
        parsed
        for text in _local_starts(daily, grace)
        if isinstance(parsed := parse(text, timezone=daily.timezone, dialect=Dialect.EVENTBRIDGE), Schedule)
    ]
    starts: dict[str, None] = {}
    zone = load_zone(daily.timezone)
    for change, dates in _clock_changes(daily.timezone, year, exact=grace > _LONGEST_SHIFT * _DAY):
        midnight = change.at.replace(hour=0, minute=0, second=0)
        low, high = change.at - grace - _DAY, change.at + _DAY
        due_times = [due.at for due in daily.between(low, high)]
        breaches = {due_at: midnight + _next_minute(due_at + grace - midnight) for due_at in due_times}
        started = {
            start.at for schedule in local_starts for start in schedule.between(low, high + grace + _DAY)
        }
        days_by_time: dict[timedelta, set[int]] = defaultdict(set)
        for due_at, breach in breaches.items():
            if breach in started and (is_daily or breach == _local_start(due_at, grace, zone)):
                continue
            days, time = divmod(breach - midnight, _DAY)
            days_by_time[time].add(days)
        times: dict[str, set[timedelta]] = defaultdict(set)
        for time, later in days_by_time.items():
            times[_date_field([day + days * _DAY for day in dates for days in later])].add(time)
        for fields, missing_times in sorted(times.items()):
            starts |= dict.fromkeys(_expressions(missing_times, [fields]))
    return tuple(starts)


def _local_start(due_at: datetime, grace: timedelta, zone: ZoneInfo) -> datetime:
    """Return the start of due time plus grace on the clock of the zone, in UTC."""
    wall = due_at.astimezone(zone).replace(tzinfo=None) + grace
    midnight = wall.replace(hour=0, minute=0, second=0, microsecond=0)
    return (midnight + _next_minute(wall - midnight)).replace(tzinfo=zone).astimezone(UTC)


def _date_field(dates: Iterable[date]) -> str:
    """Return the fields (day, month, weekday, year) that include the dates in each year."""
    days, months = zip(*((day.day, day.month) for day in dates), strict=True)
    day_text = numbers_text(frozenset(days), _DAYS, aws=True)
    return f"{day_text} {numbers_text(frozenset(months), _MONTHS, aws=True)} ? *"


@lru_cache(maxsize=1_024)
def _clock_changes(zone: str, year: int, *, exact: bool) -> tuple[tuple[Transition, tuple[date, ...]], ...]:
    """Return the clock changes of a zone, alike ones once, with the dates in UTC of all that are alike.

    `exact`: no two are alike, because the next change also matters.
    """
    changes: dict[object, tuple[Transition, list[date]]] = {}
    for change_year in range(year, year + _YEARS):
        for change in transitions(zone, change_year):
            key = change.at if exact else (change.at.time(), change.offset_before, change.offset_after)
            changes.setdefault(key, (change, []))[1].append(change.at.date())
    return tuple((change, tuple(dates)) for change, dates in changes.values())
