"""A schedule and its due instants: civil times become instants here, across gaps and overlaps.

Two steps. Civil times come without any zone: the times of one day from the minute and hour field, the
dates of a month from `days`. Then each span between two clock changes, in which the offset is constant,
turns its own civil times into instants. Spans follow each other in real time, so instants ascend by
construction, and no step looks further than the next date of the rule.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import repeat

from dq.contracts.schedule import fields
from dq.contracts.schedule.calendar_days import FURTHEST_MOVE, DayEffect, FreeDays
from dq.contracts.schedule.days import DayRule, midnights
from dq.contracts.schedule.words import Dialect, DstPolicy, Due, Note
from dq.contracts.schedule.zone import Transition, known, offset_at, transitions

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
    hours = sorted(fields.read(hour, fields.HOUR).values)
    minutes = sorted(fields.read(minute, fields.MINUTE).values)
    return tuple(timedelta(hours=h, minutes=m, seconds=second) for h in hours for m in minutes)


def _merged(moved: list[Due], real: list[Due]) -> list[Due]:
    """Both in order; where they meet, the time that stands on the clock wins over the one moved onto it."""
    by_instant = {due.at: due for due in (*moved, *real)}
    return [by_instant[at] for at in sorted(by_instant)]


def _civil(instant: datetime, offset: timedelta) -> datetime:
    return (instant + offset).replace(tzinfo=None)
