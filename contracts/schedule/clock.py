"""A schedule from its text, its due instants, the questions that rules ask of it, and other cron dialects."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import groupby, islice, repeat, zip_longest
from typing import NamedTuple

from dq.contracts.outcome import TextFault
from dq.contracts.schedule import cron
from dq.contracts.schedule.calendar import (
    FURTHEST_MOVE,
    DayEffect,
    FreeDays,
    Transition,
    known,
    offset_at,
    transitions,
    zone,
)
from dq.contracts.schedule.cron import LAST, LAST_WEEKDAY, WEEKDAYS, DayRule, Dialect, midnights

# The words of a promised-delivery clock: policy for clock changes, due.


class DstPolicy(StrEnum):
    """What becomes of a civil time that a clock change skips or repeats.

    `vixie`: a fixed time in a gap is due at the change, a repeated one at its first occurrence; a
    schedule whose minute or hour starts with `*` follows real time instead. `skip`: no cycle in a gap,
    first occurrence only. `shift`: a time in a gap moves by the length of the gap, first occurrence only.
    """

    VIXIE = "vixie"
    SKIP = "skip"
    SHIFT = "shift"


class Note(StrEnum):
    """How a due instant relates to its civil time."""

    NORMAL = "normal"
    GAP = "gap"
    FIRST_OF_TWO = "first_of_two"
    SECOND_OF_TWO = "second_of_two"


class Due(NamedTuple):
    """One promised instant.

    A named tuple and not a dataclass: a year of 2,000 schedules makes millions of them.
    """

    at: datetime
    """The instant, aware, in UTC."""
    nominal: datetime
    """The civil time in the schedule's zone that the expression names, without a zone."""
    note: Note


# A schedule and its due instants: civil times become instants here, across gaps and overlaps.
#
# Two steps. Civil times come without any zone: the times of one day from the minute and hour field, the
# dates of a month from `days`. Then each span between two clock changes, in which the offset is constant,
# turns its own civil times into instants. Spans follow each other in real time, so instants ascend by
# construction, and no step looks further than the next date of the rule.

# A moved time lands up to a day after its gap (Apia lost a whole date), an overlap lasts hours.
_REACH = timedelta(days=2)
_LAST_YEAR = 9_990
# Instants made at a time: few enough for one `next`, enough to spread the cost of a step.
_BATCH = 200
_ANCHOR = datetime(2000, 1, 1)  # noqa: DTZ001 - civil
# Far enough back for 29 February on a given weekday across a century without a leap day.
_LOOK_BACK = tuple(timedelta(days=days) for days in (1, 8, 62, 800, 15_000))


@dataclass(frozen=True, slots=True)
class Schedule:
    """When deliveries are promised. Made by `parse`; plain values only, so it pickles and compares.

    `minute` and `hour` are the fields rewritten to plain numbers; `wildcard` says that one of them
    started with `*`.
    """

    expression: str
    timezone: str
    dialect: Dialect
    dst: DstPolicy
    calendar: FreeDays | None
    second: int
    minute: str
    hour: str
    days: DayRule
    wildcard: bool

    @property
    def follows_real_time(self) -> bool:
        """Whether clock changes add and drop cycles, as cron does for `*` in minute or hour."""
        return self.wildcard and self.dst is DstPolicy.VIXIE

    def after(self, instant: datetime) -> Iterator[Due]:
        """Due instants strictly after an aware instant, ascending, no instant twice.

        Endless, unless the expression names years. Each step does a bounded amount of work.
        """
        return self.between(instant, datetime.max.replace(tzinfo=UTC))

    def between(self, start: datetime, end: datetime) -> Iterator[Due]:
        """Due instants with start < due <= end; both are aware."""
        if start.tzinfo is None or end.tzinfo is None:
            raise ValueError("start and end need a time zone")
        # A civil year ends within a day of the year in UTC; nothing is due after the last one named.
        final = datetime(min(self.days.last_year, _LAST_YEAR) + 1, 1, 3, tzinfo=UTC)
        if self.calendar and self.calendar.moves:
            final += timedelta(days=FURTHEST_MOVE)
        start, end = start.astimezone(UTC), min(end.astimezone(UTC), final)
        for batch in _batches(self, start, end):
            if batch[0].at > start and batch[-1].at <= end:
                yield from batch
            else:
                yield from (due for due in batch if start < due.at <= end)

    def latest(self, instant: datetime) -> Due | None:
        """The newest due at or before an aware instant, or None when there is none within 41 years."""
        for length in _LOOK_BACK:
            if newest := deque(self.between(instant - length, instant), maxlen=1):
                return newest[0]
        return None

    def origins(self, due: Due) -> tuple[datetime, ...]:
        """The civil times that the expression names for a due, ascending.

        One, its own, unless the calendar has moved deliveries: those of several days may meet in one.
        """
        if self.calendar is None or not self.calendar.moves:
            return (due.nominal,)
        day = due.nominal.date()
        own = [day] if self.calendar.due_on(day) == day else []
        days = sorted(one for one in (*own, *self.calendar.moved_to(day)) if self.days.names(one))
        return tuple(datetime.combine(one, due.nominal.time()) for one in days)

    def excuse(self, due: Due) -> str:
        """Why the calendar excuses a due; the empty text where it does not."""
        day = due.nominal.date()
        if self.calendar is None or self.calendar.effect(day) is not DayEffect.EXCUSE:
            return ""
        return f"The calendar excuses it: {self.calendar.reason(day)}."


@dataclass(frozen=True, slots=True)
class _OffsetSpan:
    """Real time [start, end) of one offset; the changes that opened it and will close it, where known."""

    start: datetime
    end: datetime
    offset: timedelta
    opened: Transition | None
    closed: Transition | None


def _spans(timezone: str, start: datetime, end: datetime) -> Iterator[_OffsetSpan]:
    opened = None
    offset = offset_at(known(timezone), start)
    while start < end:
        ahead = (*transitions(timezone, start.year), *transitions(timezone, start.year + 1))
        closed = next((change for change in ahead if change.at > start), None)
        # A zone at rest is cut at each new year, so that a lazy search asks for one year at a time.
        edge = closed.at if closed else datetime(start.year + 1, 1, 1, tzinfo=UTC)
        yield _OffsetSpan(start, min(edge, end), offset, opened, closed)
        start = edge
        if closed:
            offset, opened = closed.after, closed


def _batches(schedule: Schedule, start: datetime, end: datetime) -> Iterator[list[Due]]:
    """Due instants from `start` (and some before) to `end`, in lists, never an empty one."""
    moved: list[Due] = []
    for span in _spans(schedule.timezone, start - _REACH, end + timedelta(seconds=1)):
        low = _civil(max(span.start, start), span.offset)
        for first, last, note in _pieces(schedule, span, low, _civil(span.end, span.offset)):
            for batch in _real(schedule, first, last, span.offset, note):
                if moved:
                    due_now = [due for due in moved if due.at <= batch[-1].at]
                    moved = moved[len(due_now) :]
                    yield _merged(due_now, batch)
                else:
                    yield batch
        if due_now := [due for due in moved if due.at < span.end]:
            moved = moved[len(due_now) :]
            yield due_now
        if span.closed and span.closed.at == span.end:
            moved += [due for due in _moved_out_of_gap(schedule, span.closed) if due.at >= start]
    if moved:
        yield moved


def _pieces(
    schedule: Schedule, span: _OffsetSpan, low: datetime, high: datetime
) -> Iterator[tuple[datetime, datetime, Note]]:
    """Civil [low, high) of a span in parts: what has been on the clock before, once, will be again."""
    opened, closed = span.opened, span.closed
    again = _civil(opened.at, opened.before) if opened and opened.after < opened.before else low
    twice = _civil(closed.at, closed.after) if closed and closed.after < closed.before else high
    again = min(max(low, again), high)
    twice = min(max(again, twice), high)
    if low < again and schedule.follows_real_time:
        yield low, again, Note.SECOND_OF_TWO
    if again < twice:
        yield again, twice, Note.NORMAL
    if twice < high:
        yield twice, high, Note.FIRST_OF_TWO


def _moved_out_of_gap(schedule: Schedule, change: Transition) -> list[Due]:
    """The due instants that the policy makes of civil times which a clock change leaves out."""
    if schedule.follows_real_time or schedule.dst is DstPolicy.SKIP:
        return []
    dues = civil_dues(schedule, change.at + change.before, change.at + change.after, change.before, Note.GAP)
    if schedule.dst is DstPolicy.SHIFT:
        return dues
    return [due._replace(at=change.at) for due in dues[:1]]


def civil_dues(schedule: Schedule, low: datetime, high: datetime, offset: timedelta, note: Note) -> list[Due]:
    """The civil times in [low, high), with the instants they would have at an offset."""
    low, high = low.replace(tzinfo=None), high.replace(tzinfo=None)
    return [due for batch in _real(schedule, low, high, offset, note) for due in batch]


def _real(
    schedule: Schedule, low: datetime, high: datetime, offset: timedelta, note: Note
) -> Iterator[list[Due]]:
    """Due instants of the civil times in [low, high), all of which stand at one offset."""
    times = times_of_day(schedule.minute, schedule.hour, schedule.second)
    anchor = _ANCHOR.replace(tzinfo=UTC) - offset
    for dates in _dates(schedule, low, high, max(1, _BATCH // len(times))):
        if low <= dates[0] and dates[-1] + times[-1] < high:
            civil = [midnight + time for midnight in dates for time in times]
        else:
            civil = [c for midnight in dates for time in times if low <= (c := midnight + time) < high]
        # The inner loop of everything: by difference, since replace() costs ten times as much.
        instants = [anchor + (moment - _ANCHOR) for moment in civil]
        if civil:
            yield list(map(tuple.__new__, repeat(Due), zip(instants, civil, repeat(note))))


def _dates(schedule: Schedule, low: datetime, high: datetime, size: int) -> Iterator[Sequence[datetime]]:
    """Midnights of the dates that meet rule and calendar and touch [low, high), some of a month at a time."""
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
                dates = _by_calendar(rule, calendar, year, month)
            if dates and (dates[0] < first or dates[-1] >= high):
                dates = [midnight for midnight in dates if first <= midnight < high]
            for begin in range(0, len(dates), size):
                yield dates[begin : begin + size]


@lru_cache(maxsize=65_536)
def _by_calendar(rule: DayRule, calendar: FreeDays, year: int, month: int) -> tuple[datetime, ...]:
    """The dates of a month on which something is due after the calendar has skipped and moved, ascending."""
    # A delivery moves by 60 days at most, which is within four months.
    back = range(3, -1, -1) if calendar.moves else (0,)
    months = (divmod(year * 12 + month - 1 - count, 12) for count in back)
    named = (one for y, m in months if m + 1 in rule.months for one in _due_days(rule, calendar, y, m + 1))
    return tuple(sorted({one for one in named if one.month == month and one.year == year}))


@lru_cache(maxsize=65_536)
def _due_days(rule: DayRule, calendar: FreeDays, year: int, month: int) -> tuple[datetime, ...]:
    """When what the rule names in a month is due, in the order of the rule; some of it in later months."""
    due: list[datetime] = []
    # Asked for once a month: most days are like others.
    special = calendar.effects(year)
    for midnight in midnights(rule, year, month):
        effect = special.get(midnight.date())
        if effect is None or effect is DayEffect.EXCUSE:
            due.append(midnight)
        elif effect is DayEffect.MOVE and (moved := calendar.due_on(midnight.date())) is not None:
            due.append(datetime(moved.year, moved.month, moved.day))  # noqa: DTZ001 - civil
    return tuple(due)


@lru_cache(maxsize=4_096)
def times_of_day(minute: str, hour: str, second: int) -> tuple[timedelta, ...]:
    """The times of one civil day that a minute and an hour field name, ascending, as time since midnight."""
    hours = sorted(cron.read(hour, cron.HOUR).values)
    minutes = sorted(cron.read(minute, cron.MINUTE).values)
    return tuple(timedelta(hours=h, minutes=m, seconds=second) for h in hours for m in minutes)


def _merged(moved: list[Due], real: list[Due]) -> list[Due]:
    """Both in order; where they meet, the time that stands on the clock wins over the one moved onto it."""
    by_instant = {due.at: due for due in (*moved, *real)}
    return [by_instant[at] for at in sorted(by_instant)]


def _civil(instant: datetime, offset: timedelta) -> datetime:
    return (instant + offset).replace(tzinfo=None)


# From the text of a contract to a schedule, or to the one fault that stands in its way.


def parse(
    expression: str,
    *,
    timezone: str = "UTC",
    dialect: Dialect = Dialect.UNIX,
    dst: DstPolicy | None = None,
    calendar: FreeDays | None = None,
) -> Schedule | TextFault:
    """The schedule that an expression means in an IANA zone, or the first fault found.

    `dst` of None is the habit of the dialect: `skip` for eventbridge, as its scheduler does, else `vixie`.
    """
    found_zone = zone(timezone)
    if isinstance(found_zone, TextFault):
        return found_zone
    for _, fault in calendar.faults() if calendar else ():
        return fault
    policy = dst or (DstPolicy.SKIP if dialect is Dialect.EVENTBRIDGE else DstPolicy.VIXIE)
    fields = cron.parse(expression.strip(" \t\r\n"), dialect)
    if isinstance(fields, TextFault):
        return fields
    if not fields.days.ever(calendar.due_on if calendar else None):
        return _never(expression, fields.dates, calendar)
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


def _never(expression: str, dates: str, calendar: FreeDays | None) -> TextFault:
    if calendar is not None:
        return TextFault(
            "CRON_NEVER",
            f"{expression!r} never comes on a day that the calendar leaves: {dates}.",
            "Let the calendar move or excuse such days, or write a date that it leaves.",
        )
    return TextFault(
        "CRON_NEVER",
        f"{expression!r} never comes: no date meets {dates}.",
        "Write a date that exists; L in the day-of-month field is the last day of any month.",
    )


# Questions a rule asks of a schedule: how close two dues come, which of them a clock change touches, and
# which of them croniter reads differently.

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
    parts = cron.MACROS.get(text.lower(), text).split()
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
            _without_ranges_of_one(part, spec) != part for part, spec in zip(parts, cron.UNIX, strict=True)
        )
    )


def _without_ranges_of_one(text: str, spec: cron.Spec) -> str:
    if "-" not in text:
        return text
    items = []
    for item in text.split(","):
        values = cron.read(item, spec).values
        items.append(str(*values) if "-" in item and len(values) == 1 else item)
    return ",".join(items)


def _spelling_alike(schedule: Schedule, parts: list[str], start: datetime) -> str | None:
    plain = [_without_ranges_of_one(*field) for field in zip(parts, cron.UNIX, strict=True)]
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
    minute = str(min(cron.read(parts[0], cron.MINUTE).values))
    hour = str(min(cron.read(parts[1], cron.HOUR).values))
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


_DAYS, _WEEK, _MONTHS = frozenset(range(1, 32)), frozenset(range(7)), frozenset(range(1, 13))
_CALENDAR = "Keep what the contract says: 'dialect: eventbridge' reads it as it is."


@dataclass(frozen=True, slots=True)
class Difference:
    """An instant, in UTC, at which one of two readings is due and the other is not (None)."""

    at: datetime
    first: Due | None
    second: Due | None


def to_eventbridge(schedule: Schedule) -> list[str] | TextFault:
    """The `cron(...)` texts that together name the days and times of a unix schedule."""
    if schedule.second:
        return _unsayable(
            f"second {schedule.second} of a minute: EventBridge counts in whole minutes.",
            "Let it be due at second 0.",
        )
    rule = schedule.days
    time = f"{_field(schedule.minute, cron.MINUTE, aws=True)} {_field(schedule.hour, cron.HOUR, aws=True)}"
    months = _numbers(frozenset(rule.months), _MONTHS, aws=True)
    if LAST_WEEKDAY in rule.special_days:
        return _unsayable("LW: AWS does not say what it is.", "Write L, or the days themselves.")
    parts = _either(rule)
    if isinstance(parts, TextFault):
        return parts
    return [f"cron({time} {day} {months} {weekday} *)" for day, weekday in parts]


def to_unix(schedule: Schedule) -> list[str] | TextFault:
    """The five fields that name the days and times of an EventBridge schedule; `L` and `#` are dq's own."""
    rule = schedule.days
    if rule.years is not None:
        return _unsayable("years, which cron does not know.", _CALENDAR)
    if any(mark > 0 for mark in rule.special_days):
        return _unsayable("the working day nearest to a date (W), which cron does not know.", _CALENDAR)
    days = [*_listed(rule.days, _DAYS, "*")]
    days += ["LW" if mark == LAST_WEEKDAY else "L" for mark in sorted(rule.special_days)]
    weekdays = [*_listed(rule.weekdays, _WEEK, "*")]
    weekdays += [_weekday(*one, sunday=0) for one in sorted(rule.special_weekdays)]
    months = _numbers(frozenset(rule.months), _MONTHS, aws=False)
    time = f"{_field(schedule.minute, cron.MINUTE)} {_field(schedule.hour, cron.HOUR)}"
    return [f"{time} {','.join(days)} {months} {','.join(weekdays)}"]


def reading(schedule: Schedule) -> str:
    """What a schedule means, in words: times, then days."""
    rule = schedule.days
    days = [*_listed(rule.days, _DAYS, "")]
    marks = {LAST: "the last day", LAST_WEEKDAY: "the last working day"}
    days += [marks.get(mark, f"the working day nearest to {mark}") for mark in sorted(rule.special_days)]
    week = [WEEKDAYS[number] for number in sorted(rule.weekdays) if rule.weekdays != _WEEK]
    week += [
        f"the last {WEEKDAYS[day]}" if nth == 0 else f"{WEEKDAYS[day]} number {nth}"
        for day, nth in sorted(rule.special_weekdays)
    ]
    month_days = f"day of month {', '.join(days)}" if any(days) else ""
    weekdays = f"weekday {', '.join(week)}" if week else ""
    either = (" and " if rule.both else " or ").join(one for one in (month_days, weekdays) if one)
    months = _numbers(frozenset(rule.months), _MONTHS, aws=False)
    parts = [
        f"minute {_field(schedule.minute, cron.MINUTE)}, hour {_field(schedule.hour, cron.HOUR)}",
        either or "every day",
        f"month {months}" if months != "*" else "",
        f"year {', '.join(map(str, sorted(rule.years)))}" if rule.years else "",
    ]
    zone = f"in {schedule.timezone}, clock changes as '{schedule.dst}'"
    return f"{'; '.join(part for part in parts if part)}; {zone}"


def differences(
    first: Iterable[Schedule], second: Iterable[Schedule], start: datetime, end: datetime
) -> Iterator[Difference]:
    """The instants in (start, end] at which one group of schedules is due and the other is not, ascending."""
    left = {due.at: due for schedule in first for due in schedule.between(start, end)}
    right = {due.at: due for schedule in second for due in schedule.between(start, end)}
    for at in sorted(left.keys() ^ right.keys()):
        yield Difference(at, left.get(at), right.get(at))


def _either(rule: DayRule) -> list[tuple[str, str]] | TextFault:
    """Pairs of a day and a weekday field, one of them `?`, which together name the days of a rule."""
    every_day, every_weekday = rule.days >= _DAYS, rule.weekdays >= _WEEK
    if rule.both and not (every_day or every_weekday):
        return _unsayable(
            "days that must meet both a day of the month and a weekday; one of them is '?'.",
            "Write the days of the month, or the weekdays, alone.",
        )
    if (every_day and every_weekday) or (not rule.both and (every_day or every_weekday)):
        return [("*", "?")]
    parts: list[tuple[str, str]] = []
    if not every_day:
        plain = _numbers(rule.days, _DAYS, aws=True) if rule.days else ""
        parts += [(one, "?") for one in (plain, *("L" for _ in rule.special_days)) if one]
    if not every_weekday:
        names = ",".join(WEEKDAYS[number] for number in sorted(rule.weekdays))
        marks = [_weekday(*one, sunday=1) for one in sorted(rule.special_weekdays)]
        # EventBridge takes no list beside a mark.
        parts += [("?", one) for one in (names, *marks) if one]
    return parts


def _weekday(day: int, nth: int, *, sunday: int) -> str:
    return f"{day + sunday}L" if nth == 0 else f"{day + sunday}#{nth}"


def _field(text: str, spec: cron.Spec, *, aws: bool = False) -> str:
    return _numbers(cron.read(text, spec).values, frozenset(range(spec.low, spec.high + 1)), aws=aws)


def _listed(values: frozenset[int], whole: frozenset[int], all_of_them: str) -> list[str]:
    if values >= whole:
        return [all_of_them]
    return [_numbers(values, whole, aws=False)] if values else []


def _numbers(values: frozenset[int], whole: frozenset[int], *, aws: bool) -> str:
    """A set of numbers as a field: `*`, a step from its least number, or a list of ranges."""
    ordered = sorted(values)
    if values >= whole:
        return "*"
    if len(ordered) > 2:
        step = ordered[1] - ordered[0]
        if step > 1 and ordered == list(range(ordered[0], max(whole) + 1, step)):
            start = ordered[0]
            if aws:
                return f"{start}/{step}"
            return f"*/{step}" if start == min(whole) else f"{start}-{max(whole)}/{step}"
    runs = [
        [value for _, value in run] for _, run in groupby(enumerate(ordered), lambda one: one[1] - one[0])
    ]
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


def _unsayable(what: str, mend: str) -> TextFault:
    return TextFault("CRON_CONVERT", f"The schedule names {what}", mend)
