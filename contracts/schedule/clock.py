"""Schedules: parsing, due times, analysis for rules, and conversion between cron dialects."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import groupby, islice, repeat, zip_longest
from typing import NamedTuple

from dq.contracts.outcome import ValueProblem
from dq.contracts.schedule import cron
from dq.contracts.schedule.calendar import (
    FURTHEST_MOVE,
    DayEffect,
    HolidayCalendar,
    Transition,
    load_zone,
    offset_at,
    parse_zone,
    transitions,
)
from dq.contracts.schedule.cron import LAST, LAST_WEEKDAY, WEEKDAYS, DayRule, Dialect, midnights

# Policy for clock changes, and due times.


class DstPolicy(StrEnum):
    """Handling of a civil time that a clock change skips or repeats.

    `vixie`: a fixed time in a gap is due at the change, a repeated one at its first occurrence; a
    schedule whose minute or hour starts with `*` follows real time instead. `skip`: no cycle in a gap,
    first occurrence only. `shift`: a time in a gap moves by the length of the gap, first occurrence only.
    """

    VIXIE = "vixie"
    SKIP = "skip"
    SHIFT = "shift"


class DstNote(StrEnum):
    """Relation of a due instant to its civil time."""

    NORMAL = "normal"
    GAP = "gap"
    FIRST_OF_TWO = "first_of_two"
    SECOND_OF_TWO = "second_of_two"


class DueTime(NamedTuple):
    """One promised instant.

    A named tuple instead of a dataclass, because a year of 2,000 schedules has millions of them.
    """

    at: datetime
    """The instant, aware, in UTC."""
    nominal: datetime
    """The civil time of the expression in the schedule's zone, naive."""
    note: DstNote


# A schedule and its due instants: conversion of civil times to instants, across gaps and overlaps.
#
# Two steps. Civil times are computed without a zone: the times of a day from the minute and hour field, the
# dates of a month from `days`. Then each span between two clock changes, in which the offset is constant,
# converts its civil times to instants. Spans follow each other in real time, so instants ascend by
# construction, and no step looks further than the next date of the rule.

# A shifted time is up to a day after its gap (Apia lost a whole date); an overlap lasts hours.
_REACH = timedelta(days=2)
_LAST_YEAR = 9_990
# Instants per batch: few enough for a single `next`, enough to amortize the cost of a step.
_BATCH = 200
_ANCHOR = datetime(2000, 1, 1)  # noqa: DTZ001 - civil
# Far enough back for 29 February on a given weekday across a century without a leap day.
_LOOK_BACK = tuple(timedelta(days=days) for days in (1, 8, 62, 800, 15_000))


@dataclass(frozen=True, slots=True)
class Schedule:
    """A delivery schedule, created by `parse`. It has plain values only, so it can be pickled and compared.

    `minute` and `hour` are the fields rewritten to plain numbers; `wildcard` is True if one of them started
    with `*`.
    """

    expression: str
    timezone: str
    dialect: Dialect
    dst: DstPolicy
    calendar: HolidayCalendar | None
    second: int
    minute: str
    hour: str
    days: DayRule
    wildcard: bool

    @property
    def follows_real_time(self) -> bool:
        """True if clock changes add and drop cycles, as cron does for `*` in minute or hour."""
        return self.wildcard and self.dst is DstPolicy.VIXIE

    def after(self, instant: datetime) -> Iterator[DueTime]:
        """Yield the due times strictly after an aware instant, ascending, without duplicates.

        Infinite unless the expression names years. Each step does a bounded amount of work.
        """
        return self.between(instant, datetime.max.replace(tzinfo=UTC))

    def between(self, start: datetime, end: datetime) -> Iterator[DueTime]:
        """Yield the due times with start < due <= end; both are aware."""
        if start.tzinfo is None or end.tzinfo is None:
            raise ValueError("start and end need a time zone")
        # A civil year ends within a day of the UTC year; nothing is due after the last year in the
        # expression.
        final = datetime(min(self.days.last_year, _LAST_YEAR) + 1, 1, 3, tzinfo=UTC)
        if self.calendar and self.calendar.moves:
            final += timedelta(days=FURTHEST_MOVE)
        start, end = start.astimezone(UTC), min(end.astimezone(UTC), final)
        for batch in _batches(self, start, end):
            if batch[0].at > start and batch[-1].at <= end:
                yield from batch
            else:
                yield from (due for due in batch if start < due.at <= end)

    def latest(self, instant: datetime) -> DueTime | None:
        """Return the latest due time at or before an aware instant, or None if there is none within 41
        years.
        """
        for length in _LOOK_BACK:
            if newest := deque(self.between(instant - length, instant), maxlen=1):
                return newest[0]
        return None

    def origins(self, due: DueTime) -> tuple[datetime, ...]:
        """Return the civil times of the expression that lead to a due time, ascending.

        There is one, unless the calendar has moved deliveries of several days onto it.
        """
        if self.calendar is None or not self.calendar.moves:
            return (due.nominal,)
        day = due.nominal.date()
        own_day = [day] if self.calendar.due_on(day) == day else []
        days = sorted(
            origin for origin in (*own_day, *self.calendar.moved_to(day)) if self.days.matches(origin)
        )
        return tuple(datetime.combine(origin, due.nominal.time()) for origin in days)

    def excuse(self, due: DueTime) -> str:
        """Return why the calendar excuses a due time, or ""."""
        day = due.nominal.date()
        if self.calendar is None or self.calendar.effect(day) is not DayEffect.EXCUSE:
            return ""
        return f"Excluded by the calendar: {self.calendar.reason(day)}."


@dataclass(frozen=True, slots=True)
class _OffsetSpan:
    """Real time [start, end) with one offset, and the clock changes at its start and end, if known."""

    start: datetime
    end: datetime
    offset: timedelta
    opened: Transition | None
    closed: Transition | None


def _spans(timezone: str, start: datetime, end: datetime) -> Iterator[_OffsetSpan]:
    opened = None
    offset = offset_at(load_zone(timezone), start)
    while start < end:
        ahead = (*transitions(timezone, start.year), *transitions(timezone, start.year + 1))
        closed = next((change for change in ahead if change.at > start), None)
        # Without a change, the span is split at each new year, so that a lazy search loads one year at a
        # time.
        edge = closed.at if closed else datetime(start.year + 1, 1, 1, tzinfo=UTC)
        yield _OffsetSpan(start, min(edge, end), offset, opened, closed)
        start = edge
        if closed:
            offset, opened = closed.offset_after, closed


def _batches(schedule: Schedule, start: datetime, end: datetime) -> Iterator[list[DueTime]]:
    """Yield non-empty batches of due times from `start` (and some before) to `end`."""
    moved: list[DueTime] = []
    for span in _spans(schedule.timezone, start - _REACH, end + timedelta(seconds=1)):
        low = _civil(max(span.start, start), span.offset)
        for first, last, note in _dst_parts(schedule, span, low, _civil(span.end, span.offset)):
            for batch in _due_batches(schedule, first, last, span.offset, note):
                if moved:
                    due_now = [due for due in moved if due.at <= batch[-1].at]
                    moved = moved[len(due_now) :]
                    yield _merge(due_now, batch)
                else:
                    yield batch
        if due_now := [due for due in moved if due.at < span.end]:
            moved = moved[len(due_now) :]
            yield due_now
        if span.closed and span.closed.at == span.end:
            moved += [due for due in _moved_out_of_gap(schedule, span.closed) if due.at >= start]
    if moved:
        yield moved


def _dst_parts(
    schedule: Schedule, span: _OffsetSpan, low: datetime, high: datetime
) -> Iterator[tuple[datetime, datetime, DstNote]]:
    """Split civil [low, high) of a span into times that repeat earlier ones, occur once, and will be
    repeated.
    """
    opened, closed = span.opened, span.closed
    repeated_until = (
        _civil(opened.at, opened.offset_before)
        if opened and opened.offset_after < opened.offset_before
        else low
    )
    repeats_from = (
        _civil(closed.at, closed.offset_after)
        if closed and closed.offset_after < closed.offset_before
        else high
    )
    repeated_until = min(max(low, repeated_until), high)
    repeats_from = min(max(repeated_until, repeats_from), high)
    if low < repeated_until and schedule.follows_real_time:
        yield low, repeated_until, DstNote.SECOND_OF_TWO
    if repeated_until < repeats_from:
        yield repeated_until, repeats_from, DstNote.NORMAL
    if repeats_from < high:
        yield repeats_from, high, DstNote.FIRST_OF_TWO


def _moved_out_of_gap(schedule: Schedule, change: Transition) -> list[DueTime]:
    """Return the due times that the policy assigns to civil times that a clock change skips."""
    if schedule.follows_real_time or schedule.dst is DstPolicy.SKIP:
        return []
    dues = civil_dues(
        schedule,
        change.at + change.offset_before,
        change.at + change.offset_after,
        change.offset_before,
        DstNote.GAP,
    )
    if schedule.dst is DstPolicy.SHIFT:
        return dues
    return [due._replace(at=change.at) for due in dues[:1]]


def civil_dues(
    schedule: Schedule, low: datetime, high: datetime, offset: timedelta, note: DstNote
) -> list[DueTime]:
    """Return the due times for civil times in [low, high) at an offset."""
    low, high = low.replace(tzinfo=None), high.replace(tzinfo=None)
    return [due for batch in _due_batches(schedule, low, high, offset, note) for due in batch]


def _due_batches(
    schedule: Schedule, low: datetime, high: datetime, offset: timedelta, note: DstNote
) -> Iterator[list[DueTime]]:
    """Yield batches of due times for the civil times in [low, high), all at one offset."""
    times = times_of_day(schedule.minute, schedule.hour, schedule.second)
    anchor = _ANCHOR.replace(tzinfo=UTC) - offset
    for dates in _dates(schedule, low, high, max(1, _BATCH // len(times))):
        if low <= dates[0] and dates[-1] + times[-1] < high:
            civil = [midnight + time for midnight in dates for time in times]
        else:
            civil = [c for midnight in dates for time in times if low <= (c := midnight + time) < high]
        # Hot loop: the difference is ten times as fast as replace().
        instants = [anchor + (moment - _ANCHOR) for moment in civil]
        if civil:
            yield list(map(tuple.__new__, repeat(DueTime), zip(instants, civil, repeat(note))))


def _dates(schedule: Schedule, low: datetime, high: datetime, size: int) -> Iterator[Sequence[datetime]]:
    """Yield midnights of the dates that match rule and calendar in [low, high), at most `size` at a time."""
    rule, calendar = schedule.days, schedule.calendar
    moves = calendar is not None and calendar.moves
    first = datetime(low.year, low.month, low.day)  # noqa: DTZ001 - civil
    for year in range(low.year, min(high.year, rule.last_year + moves) + 1):
        for month in range(1, 13) if moves else rule.months:
            if (year, month) < (low.year, low.month):
                continue
            if (year, month) > (high.year, high.month):
                return
            dates: Sequence[datetime] = midnights(rule, year, month)
            if calendar:
                dates = _calendar_dates(rule, calendar, year, month)
            if dates and (dates[0] < first or dates[-1] >= high):
                dates = [midnight for midnight in dates if first <= midnight < high]
            for begin in range(0, len(dates), size):
                yield dates[begin : begin + size]


@lru_cache(maxsize=65_536)
def _calendar_dates(rule: DayRule, calendar: HolidayCalendar, year: int, month: int) -> tuple[datetime, ...]:
    """Return the due dates of a month after the calendar has skipped and moved deliveries, ascending."""
    # A delivery moves by 60 days at most, which is within four months.
    months_back = range(3, -1, -1) if calendar.moves else (0,)
    months = (divmod(year * 12 + month - 1 - count, 12) for count in months_back)
    candidates = (
        midnight
        for y, m in months
        if m + 1 in rule.months
        for midnight in _moved_dates(rule, calendar, y, m + 1)
    )
    return tuple(
        sorted({midnight for midnight in candidates if midnight.month == month and midnight.year == year})
    )


@lru_cache(maxsize=65_536)
def _moved_dates(rule: DayRule, calendar: HolidayCalendar, year: int, month: int) -> tuple[datetime, ...]:
    """Return the due dates for the rule's dates of a month, in that order; some are in later months."""
    due: list[datetime] = []
    # Looked up once per month, because most days have no effect.
    effects = calendar.effects(year)
    for midnight in midnights(rule, year, month):
        effect = effects.get(midnight.date())
        if effect is None or effect is DayEffect.EXCUSE:
            due.append(midnight)
        elif effect is DayEffect.MOVE and (moved := calendar.due_on(midnight.date())) is not None:
            due.append(datetime(moved.year, moved.month, moved.day))  # noqa: DTZ001 - civil
    return tuple(due)


@lru_cache(maxsize=4_096)
def times_of_day(minute: str, hour: str, second: int) -> tuple[timedelta, ...]:
    """Return the times of day of a minute and an hour field, ascending, as time since midnight."""
    hours = sorted(cron.read_field(hour, cron.HOUR).values)
    minutes = sorted(cron.read_field(minute, cron.MINUTE).values)
    return tuple(timedelta(hours=h, minutes=m, seconds=second) for h in hours for m in minutes)


def _merge(moved: list[DueTime], regular: list[DueTime]) -> list[DueTime]:
    """Merge both in order; at the same instant, the regular time wins over the moved one."""
    by_instant = {due.at: due for due in (*moved, *regular)}
    return [by_instant[instant] for instant in sorted(by_instant)]


def _civil(instant: datetime, offset: timedelta) -> datetime:
    return (instant + offset).replace(tzinfo=None)


# Parsing of a schedule.


def parse(
    expression: str,
    *,
    timezone: str = "UTC",
    dialect: Dialect = Dialect.UNIX,
    dst: DstPolicy | None = None,
    calendar: HolidayCalendar | None = None,
) -> Schedule | ValueProblem:
    """Return the schedule of an expression in an IANA zone, or the first problem found.

    If `dst` is None, the dialect's default applies: `skip` for eventbridge, as its scheduler does, else
    `vixie`.
    """
    found_zone = parse_zone(timezone)
    if isinstance(found_zone, ValueProblem):
        return found_zone
    for _, fault in calendar.problems() if calendar else ():
        return fault
    policy = dst or (DstPolicy.SKIP if dialect is Dialect.EVENTBRIDGE else DstPolicy.VIXIE)
    fields = cron.parse(expression.strip(" \t\r\n"), dialect)
    if isinstance(fields, ValueProblem):
        return fields
    if not fields.days.has_any_date(calendar.due_on if calendar else None):
        return _never_due(expression, fields.dates, calendar)
    return Schedule(
        expression=expression,
        timezone=timezone,
        dialect=dialect,
        dst=policy,
        calendar=calendar,
        second=fields.second,
        minute=fields.minute,
        hour=fields.hour,
        days=fields.days,
        wildcard=fields.wildcard,
    )


def _never_due(expression: str, dates: str, calendar: HolidayCalendar | None) -> ValueProblem:
    if calendar is not None:
        return ValueProblem(
            "CRON_NEVER",
            f"{expression!r} never occurs on a day that the calendar allows: {dates}.",
            "Move or exclude these days in the calendar, or use a date that it allows.",
        )
    return ValueProblem(
        "CRON_NEVER",
        f"{expression!r} never occurs: no date matches {dates}.",
        "Use a date that exists; L in the day-of-month field is the last day of any month.",
    )


# Analysis of schedules for rules: the shortest gap, due times at clock changes, and differences to croniter.

_YEAR = timedelta(days=366)
_CYCLES = 400
_HOUR = timedelta(hours=1)
# Number of compared due times: croniter takes about 0.1 ms for each.
_DUES_COMPARED, _YEARS_COMPARED = 60, 9


def shortest_gap(schedule: Schedule, start: datetime) -> timedelta | None:
    """Return the shortest time between two due times after `start`, among 400 cycles or those of a year.

    For a rarer schedule, the first two due times are compared; None if it ends before that.
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


def dst_hazards(schedule: Schedule, start: datetime) -> list[DueTime]:
    """Return fixed times that a gap skips or an overlap repeats, within two years after `start`.

    `at` is the clock change for a time in a gap, and the first occurrence for a repeated one, regardless of
    the policy. Empty for a schedule that follows real time.
    """
    if schedule.follows_real_time:
        return []
    return [due for change in _changes(schedule, start) for due in _affected_times(schedule, change)]


def _changes(schedule: Schedule, start: datetime) -> list[Transition]:
    start = start.astimezone(UTC)
    end = start + 2 * _YEAR
    years = range(start.year, end.year + 1)
    changes = (change for year in years for change in transitions(schedule.timezone, year))
    return [change for change in changes if start < change.at <= end]


def _affected_times(schedule: Schedule, change: Transition) -> list[DueTime]:
    """Return the times of a schedule that a clock change skips or repeats."""
    low, high = (
        change.at + min(change.offset_before, change.offset_after),
        change.at + max(change.offset_before, change.offset_after),
    )
    if change.offset_after < change.offset_before:
        return civil_dues(schedule, low, high, change.offset_before, DstNote.FIRST_OF_TWO)
    dues = civil_dues(schedule, low, high, change.offset_before, DstNote.GAP)
    return [due._replace(at=change.at) for due in dues]


class CroniterDifference(NamedTuple):
    """The first instant that only one of dq and croniter computes for a schedule.

    Attributes:
        at: The instant in UTC, or None if croniter rejects the expression.
        by_croniter: True if it is croniter's instant.
        equivalent: Another spelling that both read as dq reads the schedule, or None.
    """

    at: datetime | None
    by_croniter: bool
    equivalent: str | None


def croniter_difference(schedule: Schedule, start: datetime) -> CroniterDifference | None:
    """Return the first difference of croniter to a unix schedule in its zone after `start`, or None.

    The calendar is ignored: croniter has none. croniter is imported only for expressions and nights of clock
    changes on which the two can differ; the tests compare all others.
    """
    if schedule.dialect is not Dialect.UNIX:
        return None
    schedule = replace(schedule, calendar=None) if schedule.calendar else schedule
    text = schedule.expression.strip()
    parts = cron.MACROS.get(text.lower(), text).split()
    is_ambiguous = _is_ambiguous(parts)
    # With every hour, croniter handles changes of whole hours correctly.
    nights = [
        change.at
        for change in _changes(schedule, start)
        if (parts[1] != "*" or (change.offset_after - change.offset_before) % _HOUR)
        and _affected_times(schedule, change)
    ]
    if not is_ambiguous and not nights:
        return None
    from croniter import CroniterError

    try:
        differences = [
            _first_difference(schedule, max(start, instant - 3 * _HOUR), instant + 3 * _HOUR, 360)
            for instant in nights[:4]
        ]
        if is_ambiguous:
            end = start + _YEARS_COMPARED * _YEAR
            differences += [
                _first_difference(schedule, start, end),
                _first_coarse_difference(schedule, parts, start, fixed_fields=1),
                _first_coarse_difference(schedule, parts, start, fixed_fields=2),
            ]
    except CroniterError:
        return CroniterDifference(
            None, by_croniter=False, equivalent=_equivalent_spelling(schedule, parts, start)
        )
    first = min((difference for difference in differences if difference), default=None)
    return (
        CroniterDifference(*first, equivalent=_equivalent_spelling(schedule, parts, start)) if first else None
    )


def _is_ambiguous(parts: list[str]) -> bool:
    """Return True if croniter may interpret these fields differently from cron.

    It takes `5-5` for the whole field, joins a day and a weekday with OR if one of them starts with `*` and a
    step, and rejects `LW`, `5L` and, next to other days, `1#2`.
    """
    day, weekday = parts[2].upper(), parts[4].upper()
    return (
        "LW" in day
        or "L" in weekday
        or ("#" in weekday and (day != "*" or "," in weekday))
        or ("*" not in (day, weekday) and "*" in (day[0], weekday[0]))
        or any(_collapse_ranges(part, spec) != part for part, spec in zip(parts, cron.UNIX, strict=True))
    )


def _collapse_ranges(text: str, spec: cron.FieldSpec) -> str:
    if "-" not in text:
        return text
    items = []
    for item in text.split(","):
        values = cron.read_field(item, spec).values
        items.append(str(*values) if "-" in item and len(values) == 1 else item)
    return ",".join(items)


def _equivalent_spelling(schedule: Schedule, parts: list[str], start: datetime) -> str | None:
    collapsed = [_collapse_ranges(*field) for field in zip(parts, cron.UNIX, strict=True)]
    text = " ".join("*" if part == "*/1" else part for part in collapsed)
    if text == schedule.expression:
        return None
    reparsed = parse(text, timezone=schedule.timezone, dst=schedule.dst)
    if not isinstance(reparsed, Schedule) or replace(reparsed, expression=schedule.expression) != schedule:
        return None
    return None if croniter_difference(reparsed, start) else text


def _first_coarse_difference(
    schedule: Schedule, parts: list[str], start: datetime, fixed_fields: int
) -> tuple[datetime, bool] | None:
    """Return the first difference with the first `fixed_fields` fields at their smallest value.

    The comparison of due times does not reach many hours or days if a schedule has many times in each.
    """
    fixed = [
        str(min(cron.read_field(part, spec).values))
        for part, spec in zip(parts[:fixed_fields], cron.UNIX[:fixed_fields], strict=True)
    ]
    minute, hour, *days = fixed + parts[fixed_fields:]
    coarse = replace(
        schedule,
        expression=" ".join((minute, hour, *days)),
        minute=minute,
        hour=hour,
        timezone="UTC",
        wildcard=False,
    )
    zone = load_zone(schedule.timezone)
    civil = start.astimezone(zone).replace(tzinfo=UTC)
    difference = _first_difference(coarse, civil, civil + _YEARS_COMPARED * _YEAR)
    return difference and (difference[0].replace(tzinfo=zone).astimezone(UTC), difference[1])


def _first_difference(
    schedule: Schedule, start: datetime, end: datetime, limit: int = _DUES_COMPARED
) -> tuple[datetime, bool] | None:
    dq_dues = (due.at for due in schedule.between(start, end))
    croniter_dues = _croniter_dues(schedule, start, end)
    for dq_due, croniter_due in islice(zip_longest(dq_dues, croniter_dues), limit):
        if dq_due != croniter_due:
            by_croniter = dq_due is None or (croniter_due is not None and croniter_due < dq_due)
            return (croniter_due, True) if by_croniter else (dq_due, False)
    return None


def _croniter_dues(schedule: Schedule, start: datetime, end: datetime) -> Iterator[datetime]:
    # Imported here because importing it takes longer than reading a contract.
    from croniter import CroniterBadDateError, croniter

    # The limit on years bounds its search; nothing beyond is compared.
    dues = croniter(
        schedule.expression.strip(),
        start.astimezone(load_zone(schedule.timezone)),
        max_years_between_matches=_YEARS_COMPARED,
    )
    try:
        while (due := dues.get_next(datetime).astimezone(UTC)) <= end:
            yield due
    except CroniterBadDateError:
        return


_DAYS, _WEEK, _MONTHS = frozenset(range(1, 32)), frozenset(range(7)), frozenset(range(1, 13))
_KEEP_DIALECT = "Keep the schedule as it is, with 'dialect: eventbridge'."


@dataclass(frozen=True, slots=True)
class ScheduleDifference:
    """An instant in UTC at which one of two schedules is due and the other is not (None)."""

    at: datetime
    first: DueTime | None
    second: DueTime | None


def to_eventbridge(schedule: Schedule) -> list[str] | ValueProblem:
    """Return the `cron(...)` expressions that together have the days and times of a unix schedule."""
    if schedule.second:
        return _not_convertible(
            f"second {schedule.second}, but EventBridge has no seconds.",
            "Use second 0.",
        )
    rule = schedule.days
    time = (
        f"{_field_text(schedule.minute, cron.MINUTE, aws=True)} "
        f"{_field_text(schedule.hour, cron.HOUR, aws=True)}"
    )
    months = numbers_text(frozenset(rule.months), _MONTHS, aws=True)
    if LAST_WEEKDAY in rule.special_days:
        return _not_convertible("LW, which AWS does not define.", "Write L, or list the days.")
    parts = day_fields(rule)
    if isinstance(parts, ValueProblem):
        return parts
    return [f"cron({time} {day} {months} {weekday} *)" for day, weekday in parts]


def to_unix(schedule: Schedule) -> list[str] | ValueProblem:
    """Return the five cron fields of an EventBridge schedule; `L` and `#` are extensions of dq."""
    rule = schedule.days
    if rule.years is not None:
        return _not_convertible("years, which cron does not support.", _KEEP_DIALECT)
    if any(mark > 0 for mark in rule.special_days):
        return _not_convertible(
            "the working day nearest to a date (W), which cron does not support.", _KEEP_DIALECT
        )
    days = [*_number_texts(rule.days, _DAYS, "*")]
    days += ["LW" if mark == LAST_WEEKDAY else "L" for mark in sorted(rule.special_days)]
    weekdays = [*_number_texts(rule.weekdays, _WEEK, "*")]
    weekdays += [_weekday_text(*weekday, sunday=0) for weekday in sorted(rule.special_weekdays)]
    months = numbers_text(frozenset(rule.months), _MONTHS, aws=False)
    time = f"{_field_text(schedule.minute, cron.MINUTE)} {_field_text(schedule.hour, cron.HOUR)}"
    return [f"{time} {','.join(days)} {months} {','.join(weekdays)}"]


def describe_schedule(schedule: Schedule) -> str:
    """Return a description of a schedule in words: times, then days."""
    rule = schedule.days
    days = [*_number_texts(rule.days, _DAYS, "")]
    marks = {LAST: "the last day", LAST_WEEKDAY: "the last working day"}
    days += [marks.get(mark, f"the working day nearest to {mark}") for mark in sorted(rule.special_days)]
    week = [WEEKDAYS[number] for number in sorted(rule.weekdays) if rule.weekdays != _WEEK]
    week += [
        f"the last {WEEKDAYS[day]}" if nth == 0 else f"{WEEKDAYS[day]} number {nth}"
        for day, nth in sorted(rule.special_weekdays)
    ]
    month_days = f"day of month {', '.join(days)}" if any(days) else ""
    weekdays = f"weekday {', '.join(week)}" if week else ""
    day_text = (" and " if rule.requires_both else " or ").join(
        text for text in (month_days, weekdays) if text
    )
    months = numbers_text(frozenset(rule.months), _MONTHS, aws=False)
    parts = [
        f"minute {_field_text(schedule.minute, cron.MINUTE)}, hour {_field_text(schedule.hour, cron.HOUR)}",
        day_text or "every day",
        f"month {months}" if months != "*" else "",
        f"year {', '.join(map(str, sorted(rule.years)))}" if rule.years else "",
    ]
    zone = f"in {schedule.timezone}, clock changes as '{schedule.dst}'"
    return f"{'; '.join(part for part in parts if part)}; {zone}"


def differences(
    first: Iterable[Schedule], second: Iterable[Schedule], start: datetime, end: datetime
) -> Iterator[ScheduleDifference]:
    """Yield the instants in (start, end] at which only one group of schedules is due, ascending."""
    left = {due.at: due for schedule in first for due in schedule.between(start, end)}
    right = {due.at: due for schedule in second for due in schedule.between(start, end)}
    for instant in sorted(left.keys() ^ right.keys()):
        yield ScheduleDifference(instant, left.get(instant), right.get(instant))


def day_fields(rule: DayRule) -> list[tuple[str, str]] | ValueProblem:
    """Return pairs of a day and a weekday field, one of them `?`, that together have the days of a rule."""
    every_day, every_weekday = rule.days >= _DAYS, rule.weekdays >= _WEEK
    if rule.requires_both and not (every_day or every_weekday):
        return _not_convertible(
            "both days of the month and weekdays, but EventBridge requires '?' for one of them.",
            "Use only days of the month, or only weekdays.",
        )
    if (every_day and every_weekday) or (not rule.requires_both and (every_day or every_weekday)):
        return [("*", "?")]
    parts: list[tuple[str, str]] = []
    if not every_day:
        numbers = numbers_text(rule.days, _DAYS, aws=True) if rule.days else ""
        parts += [(day, "?") for day in (numbers, *("L" for _ in rule.special_days)) if day]
    if not every_weekday:
        names = ",".join(WEEKDAYS[number] for number in sorted(rule.weekdays))
        marks = [_weekday_text(*weekday, sunday=1) for weekday in sorted(rule.special_weekdays)]
        # EventBridge does not allow a list together with a mark.
        parts += [("?", weekday) for weekday in (names, *marks) if weekday]
    return parts


def _weekday_text(day: int, nth: int, *, sunday: int) -> str:
    return f"{day + sunday}L" if nth == 0 else f"{day + sunday}#{nth}"


def _field_text(text: str, spec: cron.FieldSpec, *, aws: bool = False) -> str:
    return numbers_text(
        cron.read_field(text, spec).values, frozenset(range(spec.low, spec.high + 1)), aws=aws
    )


def _number_texts(values: frozenset[int], full_range: frozenset[int], all_text: str) -> list[str]:
    if values >= full_range:
        return [all_text]
    return [numbers_text(values, full_range, aws=False)] if values else []


def numbers_text(values: frozenset[int], full_range: frozenset[int], *, aws: bool) -> str:
    """Return a set of numbers as a field: `*`, a step from its smallest number, or a list of ranges."""
    ordered = sorted(values)
    if values >= full_range:
        return "*"
    if len(ordered) > 2:
        step = ordered[1] - ordered[0]
        if step > 1 and ordered == list(range(ordered[0], max(full_range) + 1, step)):
            start = ordered[0]
            if aws:
                return f"{start}/{step}"
            return f"*/{step}" if start == min(full_range) else f"{start}-{max(full_range)}/{step}"
    runs = [
        [value for _, value in run]
        for _, run in groupby(enumerate(ordered), lambda indexed: indexed[1] - indexed[0])
    ]
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


def _not_convertible(construct: str, hint: str) -> ValueProblem:
    return ValueProblem("CRON_CONVERT", f"The schedule uses {construct}", hint)
