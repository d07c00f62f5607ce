"""Delivery terms that a history of arrivals supports: schedule, zone, grace, and how often they were kept.

Pure functions over arrivals. The steps, each named by the evidence: arrivals are grouped by the time of day
on the clock of each candidate zone; the days of a group become weekdays or a day of the month; due is the
usual first arrival, rounded down; grace covers as many cycles as the objective requires. The zone in which
arrivals vary least is chosen.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise
from statistics import median

from dq.contracts.outcome import pluralize
from dq.contracts.schedule.calendar import HolidayCalendar, load_zone, public_holidays, transitions
from dq.contracts.schedule.clock import Schedule, numbers_text, parse
from dq.contracts.schedule.cron import DayRule, midnights
from dq.dataquality.delivery.budget import allowed_misses
from dq.dataquality.delivery.cycle import EARLY_SHARE

MIN_CYCLES = 20
"""Minimum number of cycles for a schedule of three or more days a week."""
MIN_RARE_CYCLES = 6
"""Minimum number of cycles for a rarer schedule."""
OBJECTIVES = tuple(Fraction(share, 100) for share in (99, 98, 95, 90, 85, 80))
"""Objectives to fall back to if too many cycles have no arrival for the requested one."""

_DAY_MINUTES = 1_440
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)
_HOURS, _MINUTES_OF_HOUR = frozenset(range(24)), frozenset(range(60))
# A day with this share of arrivals belongs to the schedule; with at most the other, it does not.
_USUAL, _UNUSUAL = 0.6, 0.2
# Share of arrivals on days outside the schedule that is tolerated.
_MAX_EXTRA = 0.15
# From this number of arrivals a day on, the time within a period is the pattern, not the time of day.
_FREQUENT = 12
_FORTNIGHT = 14
_PERIODS = (5, 10, 15, 20, 30, 60, 120)
# Log-likelihood by which another zone must be better than an earlier candidate.
_ZONE_MARGIN = 3.0
_HINT_MARGIN = 12.0
_HINT_ZONES = ("Europe/Berlin", "America/New_York", "Australia/Sydney")
# Cycles on each side of a change of the usual time.
_MIN_SEGMENT = 28
_MIN_SHIFT = 15.0


@dataclass(frozen=True, slots=True)
class Arrival:
    """Instant (aware) at which data arrived, and the civil time its partition is named after, if any."""

    at: datetime
    stamp: datetime | None = None


@dataclass(frozen=True, slots=True)
class PastCycle:
    """A cycle of the past: when it was due, and when its data arrived, None if it did not."""

    due_at: datetime
    arrived_at: datetime | None

    @property
    def lateness(self) -> timedelta | None:
        """Arrival minus due, negative if early."""
        return None if self.arrived_at is None else self.arrived_at - self.due_at


@dataclass(frozen=True, slots=True)
class ProposedDelivery:
    """A schedule with the grace that meets the objective on the given cycles.

    `lags` are the units of `unit` (`hour`, `day`, `month`) by which partitions are older than the due time;
    empty if partitions do not follow it. `paused` is the number of cycles in pauses, which are not in
    `cycles`.
    """

    schedule: Schedule
    grace: timedelta
    objective: Fraction
    cycles: tuple[PastCycle, ...]
    lags: tuple[int, ...] = ()
    unit: str = ""
    paused: int = 0

    @property
    def missing(self) -> int:
        """Number of cycles without an arrival."""
        return sum(cycle.arrived_at is None for cycle in self.cycles)

    @property
    def misses(self) -> int:
        """Number of cycles that would have been late or missing."""
        return len(self.cycles) - self._arrived_within(self.grace)

    @property
    def evidence(self) -> str:
        """The cycles in one line: `came by 05:25 in 87 of 90 deliveries, …; 05:00 + 30m would have …`."""
        usual = _needed(self.cycles, self.objective)
        by = timedelta(minutes=_round_up(usual / _MINUTE, 5)) if usual is not None else self.grace
        zone = load_zone(self.schedule.timezone)
        first, last = (self.cycles[at].due_at.astimezone(zone) for at in (0, -1))
        grace = duration_text(self.grace)
        if self.schedule.minute.isdecimal() and self.schedule.hour.isdecimal():
            due = last.replace(tzinfo=None)
            days = (due + by).date() - due.date()
            came, promise = f"by {due + by:%H:%M}", f"{due:%H:%M} + {grace}"
            came += f" {pluralize(days.days, 'day')} later" if days else ""
        else:
            came, promise = f"within {duration_text(by)} of the due time", f"a grace of {grace}"
        return (
            f"came {came} in {self._arrived_within(by)} of "
            f"{pluralize(len(self.cycles), 'delivery', 'deliveries')}, "
            f"{first:%Y-%m-%d} to {last:%Y-%m-%d}; {promise} would {_missed_text(self.misses)}"
            + (f" ({self.missing} never came)" if self.missing else "")
        )

    def _arrived_within(self, limit: timedelta) -> int:
        return sum(cycle.lateness is not None and cycle.lateness <= limit for cycle in self.cycles)


@dataclass(frozen=True, slots=True)
class DeliveryPattern:
    """Proposed deliveries, or the `reason` why there is none. `notes` are further remarks, as sentences."""

    deliveries: tuple[ProposedDelivery, ...] = ()
    reason: str = ""
    notes: tuple[str, ...] = ()


def duration_text(length: timedelta) -> str:
    """Return a length of whole minutes as a duration of contracts, e.g. `45m` or `2h`."""
    minutes = length // _MINUTE
    return f"{minutes // 60}h" if minutes and minutes % 60 == 0 else f"{minutes}m"


def _missed_text(count: int) -> str:
    times = {1: "once", 2: "twice"}.get(count, f"{count} times")
    return f"have been missed {times}" if count else "never have been missed"


def find_pattern(
    arrivals: Iterable[Arrival],
    zones: Sequence[str] = ("UTC",),
    objective: Fraction = Fraction(95, 100),
    *,
    holidays: Sequence[str] = (),
    unit: str = "day",
) -> DeliveryPattern:
    """Return the deliveries that a history of arrivals shows, or why it shows none.

    Args:
        arrivals: In any order. All have a stamp or none has; without stamps, arrivals within half an hour
            are one delivery.
        zones: Candidate zones, the preferred one first: if the history does not distinguish them, it wins.
        objective: Share of cycles on time, in (0, 1].
        holidays: Candidate holiday calendars, e.g. `DE-BY`.
        unit: Unit of the stamps: `hour`, `day` or `month`.
    """
    history = sorted(set(arrivals), key=lambda arrival: arrival.at)
    has_stamps = bool(history) and all(arrival.stamp is not None for arrival in history)
    notes: list[str] = []
    if has_stamps:
        history, reason = _without_rewrites(history, unit, notes)
        if reason:
            return DeliveryPattern(reason=reason)
    else:
        history = _bursts(history)
    if len(history) < MIN_RARE_CYCLES:
        return DeliveryPattern(reason=_too_short(len(history)))
    search = _Search(objective, tuple(holidays), unit if has_stamps else "")
    fits = [_Fit(zone, search.deliveries(history, zone), len(history)) for zone in dict.fromkeys(zones)]
    best = next((fit for fit in fits if fit.deliveries), None)
    if best is None:
        is_short = len(history) < MIN_CYCLES
        return DeliveryPattern(
            reason=_too_short(len(history)) if is_short else _NO_PATTERN, notes=tuple(notes)
        )
    for fit in fits:
        if fit.deliveries and fit.score < best.score - _ZONE_MARGIN:
            best = fit
    notes += _zone_notes(best, fits, history, search)
    best = _since_last_change(best, history, search, notes)
    notes += _delivery_notes(best.deliveries, objective, has_stamps)
    return DeliveryPattern(best.deliveries, notes=tuple(notes))


_NO_PATTERN = (
    "no pattern: arrivals keep to no time of day, weekday or day of the month that a cron can express."
)


def _too_short(count: int) -> str:
    return (
        f"too little history: {pluralize(count, 'arrival')}; {MIN_CYCLES} are needed, "
        f"{MIN_RARE_CYCLES} for a weekly or monthly schedule."
    )


# Preparation: single deliveries, without rewritten partitions.

_BURST = timedelta(minutes=30)
_BULK = 6


def _bursts(history: Sequence[Arrival]) -> list[Arrival]:
    """Return the first of arrivals that follow each other within half an hour, unless that is usual."""
    gaps = [later.at - earlier.at for earlier, later in pairwise(history)]
    is_frequent = len(history) > _FREQUENT * _days_with_arrivals(history)
    if not gaps or (is_frequent and sorted(gaps)[len(gaps) // 2] < 2 * _BURST):
        return list(history)
    return [history[0], *(later for later, gap in zip(history[1:], gaps, strict=True) if gap > _BURST)]


def _days_with_arrivals(history: Iterable[Arrival]) -> int:
    return len({arrival.at.date() for arrival in history})


def _without_rewrites(history: Sequence[Arrival], unit: str, notes: list[str]) -> tuple[list[Arrival], str]:
    """Leave out partitions that were written together: a backfill does not show when they came first.

    Returns the others, and the reason if there are too few others.
    """
    groups: list[list[Arrival]] = []
    for arrival in history:
        if groups and arrival.at - groups[-1][-1].at <= 2 * _BURST:
            groups[-1].append(arrival)
        else:
            groups.append([arrival])
    bulks = [group for group in groups if len({arrival.stamp for arrival in group}) >= _BULK]
    if not bulks or (unit == "hour" and len(bulks) * 2 > len(groups)):
        return list(history), ""
    count = sum(map(len, bulks))
    if count * 2 <= len(history):
        first = bulks[0][0].at
        notes.append(
            f"{pluralize(count, 'partition')} written {_BULK} or more at a time "
            f"(first {first:%Y-%m-%d %H:%M} UTC) not counted: a backfill or a rewrite."
        )
        return [arrival for group in groups if group not in bulks for arrival in group], ""
    if len(bulks) <= 2:
        return [], (
            f"{count} of {len(history)} partitions were written together at "
            f"{bulks[-1][-1].at:%Y-%m-%d %H:%M} UTC, a copy or a rewrite: "
            "their times do not show when they came."
        )
    return list(history), ""


# Days: weekdays or days of the month, by counting.


@dataclass(frozen=True, slots=True)
class _Days:
    """The day and weekday field of a cron, and the calendar, with the pauses of the history."""

    fields: tuple[str, str]
    pauses: tuple[tuple[date, date], ...] = ()
    holidays: tuple[str, ...] = ()

    def schedule(self, minute: str, hour: str, zone: str) -> Schedule:
        calendar = HolidayCalendar(holidays=self.holidays) if self.holidays else None
        day, weekday = self.fields
        schedule = parse(f"{minute} {hour} {day} * {weekday}", timezone=zone, calendar=calendar)
        assert isinstance(schedule, Schedule), schedule
        return schedule


@cache
def _day_rule(fields: tuple[str, str]) -> DayRule:
    return _Days(fields).schedule("0", "0", "UTC").days


def _day_pattern(dates: Collection[date], needed: int = MIN_CYCLES) -> _Days | None:
    """Return the days on which deliveries are due, or None if the dates keep to none.

    `needed` is the minimum number of dates for three or more weekdays.
    """
    ordered = sorted(dates)
    if len(ordered) < MIN_RARE_CYCLES:
        return None
    pauses = tuple(_pauses(ordered))
    days = (ordered[0] + _DAY * count for count in range((ordered[-1] - ordered[0]).days + 1))
    span = [day for day in days if not any(begin < day < end for begin, end in pauses)]
    fields = _weekday_fields(ordered, span, needed) or _month_fields(ordered, span)
    return _Days(fields, pauses) if fields else None


def _pauses(ordered: Sequence[date]) -> Iterator[tuple[date, date]]:
    """Yield the last date before and the first after each period without deliveries."""
    gaps = [(later - earlier).days for earlier, later in pairwise(ordered)]
    longest = max(6, 4 * median(gaps))
    yield from (pair for pair, gap in zip(pairwise(ordered), gaps, strict=True) if gap > longest)


def _weekday_fields(dates: Sequence[date], span: Sequence[date], needed: int) -> tuple[str, str] | None:
    possible, actual = (
        Counter(day.isoweekday() % 7 for day in span),
        Counter(day.isoweekday() % 7 for day in dates),
    )
    shares = {weekday: actual[weekday] / count for weekday, count in possible.items()}
    usual = frozenset(weekday for weekday, share in shares.items() if share >= _USUAL)
    if not usual or any(_UNUSUAL < share < _USUAL for share in shares.values()):
        return None
    extra = sum(count for weekday, count in actual.items() if weekday not in usual)
    if extra > _MAX_EXTRA * len(dates) or len(dates) < (needed if len(usual) > 2 else MIN_RARE_CYCLES):
        return None
    return "*", numbers_text(usual, frozenset(range(7)), aws=False)


_MONTH_RULES = (
    *((str(day), "*") for day in range(1, 29)),
    ("L", "*"),
    ("LW", "*"),
    *(("*", f"{day}#{nth}") for day in range(7) for nth in range(1, 5)),
    *(("*", f"{day}L") for day in range(7)),
)


def _month_fields(dates: Sequence[date], span: Sequence[date]) -> tuple[str, str] | None:
    """Return the days of the month with the best agreement, the simplest of equals."""
    months = {(day.year, day.month) for day in span}
    if len(months) < MIN_RARE_CYCLES:
        return None
    shares = Counter(day.day for day in dates)
    usual = frozenset(day for day, count in shares.items() if count >= _USUAL * len(months) and day <= 28)
    several = [(numbers_text(usual, frozenset(range(1, 32)), aws=False), "*")] if 1 < len(usual) <= 8 else []
    actual, possible, best, best_share = set(dates), set(span), None, 0.0
    for fields in (*_MONTH_RULES, *several):
        expected = {
            midnight.date()
            for month in months
            for midnight in midnights(_day_rule(fields), *month)
            if midnight.date() in possible
        }
        agreement = 2 * len(actual & expected) / (len(actual) + len(expected))
        if agreement > best_share + 0.02:
            best, best_share = fields, agreement
    return best if best_share >= 1 - _MAX_EXTRA else None


def _with_holidays(days: _Days, dates: Collection[date], candidates: Sequence[str]) -> _Days:
    """Add the holiday calendar that explains the most days without deliveries, if one does."""
    if not candidates or days.fields[0] != "*" or not dates:
        return days
    rule = _day_rule(days.fields)
    first, last = min(dates), max(dates)
    best, best_count = days, 1
    for name in candidates:
        free = [
            day
            for year in range(first.year, last.year + 1)
            for day in public_holidays(name, year)
            if first <= day <= last and rule.matches(day)
            if not any(begin < day < end for begin, end in days.pauses)
        ]
        without = sum(day not in dates for day in free)
        if without > best_count and without >= 0.8 * len(free):
            best, best_count = replace(days, holidays=(name,)), without
    return best


# Times of day: groups of arrivals on a clock of 24 hours.


@dataclass(frozen=True, slots=True)
class _Group:
    """Times of day at which arrivals are usual, in minutes; `high` may be after midnight."""

    low: float
    high: float


def _groups(minutes: Sequence[float], days: int, width: float) -> list[_Group]:
    """Return the times of day with an arrival on a tenth of the days, ascending; empty if that is any time.

    A time counts with those `width` minutes around it.
    """
    around = sorted(minute + turn for minute in minutes for turn in (-_DAY_MINUTES, 0, _DAY_MINUTES))
    needed = max(3.0, 0.1 * days)
    usual = sorted(
        {
            minute
            for minute in minutes
            if bisect_right(around, minute + width) - bisect_left(around, minute - width) >= needed
        }
    )
    if not usual:
        return []
    gaps = [later - earlier for earlier, later in pairwise([*usual, usual[0] + _DAY_MINUTES])]
    ends = [number for number, gap in enumerate(gaps) if gap > width]
    if not ends:
        return []
    groups = []
    for previous, end in pairwise([ends[-1] - len(usual), *ends]):
        low, high = usual[(previous + 1) % len(usual)], usual[end]
        groups.append(_Group(low, high if high >= low else high + _DAY_MINUTES))
    return sorted(groups, key=lambda group: group.low)


def _merged(groups: Sequence[_Group], number: int) -> list[_Group]:
    """Merge a group with its nearest neighbour on the clock."""
    if len(groups) == 2:
        first, second = groups
        after, around = second.low - first.high, first.low + _DAY_MINUTES - second.high
        return [
            _Group(first.low, second.high)
            if after <= around
            else _Group(second.low, first.high + _DAY_MINUTES)
        ]
    before = (groups[number].low - groups[number - 1].high) % _DAY_MINUTES
    following = groups[(number + 1) % len(groups)]
    after = (following.low - groups[number].high) % _DAY_MINUTES
    first, second = (groups[number - 1], groups[number]) if before < after else (groups[number], following)
    high = second.high if second.high >= first.low else second.high + _DAY_MINUTES
    remaining = [group for group in groups if group not in (first, second)]
    return sorted([*remaining, _Group(first.low, high)], key=lambda group: group.low)


@dataclass(slots=True)
class _Run:
    """Arrivals of one group: by due date, minutes after the group's first usual time."""

    low: float
    early: float
    offsets: dict[date, list[tuple[float, Arrival]]]

    def first_offsets(self) -> list[float]:
        return [min(offset for offset, _ in entries) for entries in self.offsets.values()]


def _assigned(local: Sequence[tuple[datetime, Arrival]], groups: Sequence[_Group]) -> list[_Run]:
    """Assign each arrival to the group that begins last before it, or shortly after it."""
    runs = []
    for number, group in enumerate(groups):
        free = (group.low - groups[number - 1].high) % _DAY_MINUTES or _DAY_MINUTES
        runs.append(_Run(group.low, min(90.0, free / 3), defaultdict(list)))
    for moment, arrival in local:
        minute = _minute_of(moment)
        after, run = min(
            (((minute - run.low + run.early) % _DAY_MINUTES, run) for run in runs), key=lambda pair: pair[0]
        )
        offset = after - run.early
        run.offsets[(moment - timedelta(minutes=offset)).date()].append((offset, arrival))
    return runs


def _minute_of(moment: datetime) -> float:
    return moment.hour * 60 + moment.minute + moment.second / 60


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _round_down(minutes: float, step: int) -> int:
    return math.floor(minutes / step) * step


def _round_up(minutes: float, step: int) -> int:
    return max(step, math.ceil(minutes / step - 1e-9) * step)


def _step_of_due(spread: float) -> int:
    """Return to how many minutes a due time is rounded, by the variation of the arrivals."""
    return 30 if spread >= 60 else 15 if spread >= 20 else 5


def step_of_grace(minutes: float) -> int:
    """Return to how many minutes a grace is rounded up."""
    return 5 if minutes <= 60 else 15 if minutes <= 240 else 30 if minutes <= 720 else 60


# Search in one zone.


@dataclass(frozen=True, slots=True)
class _Plan:
    """A run: its usual first arrival in minutes of the day, the step of its due time, its days and lags."""

    start: float
    step: int
    days: _Days
    lags: tuple[int, ...]

    @property
    def minute(self) -> int:
        """Minute of the due time."""
        return _round_down(self.start, self.step) % 60

    def wait(self, minute: int) -> float:
        """Minutes from the latest time of the day with this minute to the usual first arrival."""
        return (self.start - minute) % 60 if minute <= self.start else math.inf

    def hour(self, minute: int) -> int:
        """Hour of the latest time with this minute that is not after the usual first arrival."""
        return int((self.start - minute) // 60)


@dataclass(frozen=True, slots=True)
class _Search:
    objective: Fraction
    holidays: tuple[str, ...]
    unit: str

    def deliveries(self, history: Sequence[Arrival], zone: str) -> tuple[ProposedDelivery, ...]:
        """Return the deliveries on the clock of a zone, in order of due times; empty without pattern."""
        tz = load_zone(zone)
        local = [(arrival.at.astimezone(tz).replace(tzinfo=None), arrival) for arrival in history]
        per_day = len(local) / len({moment.date() for moment, _ in local})
        if self.unit == "hour":
            return self._with_stamped_times(history, local, zone)
        if per_day >= _FREQUENT:
            return self._frequent(history, local, zone)
        plans = self._plans(local, per_day)
        if not self.unit:
            return self._in_one_schedule(history, plans, zone)
        deliveries = [self._delivery(history, [plan], plan.minute, zone) for plan in plans]
        if not all(deliveries):
            return ()
        return tuple(delivery for delivery in deliveries if delivery is not None)

    def _in_one_schedule(
        self, history: Sequence[Arrival], plans: Sequence[_Plan], zone: str
    ) -> tuple[ProposedDelivery, ...]:
        """Return the delivery of all runs with the most common days.

        Without partitions, an update belongs to a cycle by its time alone: schedules of their own would take
        each other's updates. One cron has one minute for all hours, that which is the least early.
        """
        if not plans:
            return ()
        fields = Counter(plan.days.fields for plan in plans).most_common(1)[0][0]
        runs = [plan for plan in plans if plan.days.fields == fields]
        step = max(plan.step for plan in runs)
        minute = min(range(0, 60, step), key=lambda minute: max(run.wait(minute) for run in runs))
        delivery = self._delivery(history, runs, minute, zone)
        return (delivery,) if delivery else ()

    def _plans(self, local: Sequence[tuple[datetime, Arrival]], per_day: float) -> list[_Plan]:
        minutes = [_minute_of(moment) for moment, _ in local]
        days = len({moment.date() for moment, _ in local})
        groups = _groups(minutes, days, min(30.0, 180 / per_day))
        while groups:
            runs = _assigned(local, groups)
            patterns = [_day_pattern(run.offsets) for run in runs]
            unclear = [number for number, pattern in enumerate(patterns) if pattern is None]
            if not self.unit and not unclear:
                unclear = _on_other_days(runs)
            if not unclear:
                return list(self._plans_of_runs(runs))
            if len(groups) == 1:
                return []
            groups = _merged(groups, unclear[0])
        return []

    def _plans_of_runs(self, runs: Sequence[_Run]) -> Iterator[_Plan]:
        spreads = [
            _quantile(offsets, 0.9) - _quantile(offsets, 0.05)
            for offsets in (run.first_offsets() for run in runs)
        ]
        step = _step_of_due(max(spreads))
        for run in runs:
            start = run.low + _quantile(run.first_offsets(), 0.05)
            # The run is due on the date of its first usual time, or with an earlier start on the one before.
            moved = _round_down(start, step) // _DAY_MINUTES * _DAY
            dates = {day + moved: entries for day, entries in run.offsets.items()}
            days = _day_pattern(dates)
            if days is None:
                continue
            for part, lags in self._by_lag(dates, _with_holidays(days, dates, self.holidays)):
                yield _Plan(start % _DAY_MINUTES, step, part, lags)

    def _by_lag(
        self, dates: Mapping[date, Sequence[tuple[float, Arrival]]], days: _Days
    ) -> Iterator[tuple[_Days, tuple[int, ...]]]:
        """Yield the days with equal lags of their partitions; no lags if they do not follow the due date."""
        if not self.unit:
            yield days, ()
            return
        counts: dict[int, Counter[int]] = defaultdict(Counter)
        for day, entries in dates.items():
            counts[day.weekday()].update({self._lag(day, arrival) for _, arrival in entries})
        weekdays = Counter(day.weekday() for day in dates)
        lags = {
            weekday: tuple(
                sorted(lag for lag, count in of_day.items() if count >= _USUAL * weekdays[weekday])
            )
            for weekday, of_day in counts.items()
            if weekdays[weekday] >= 3 or len(weekdays) == 1
        }
        covered = sum(counts[weekday][lag] for weekday, of_day in lags.items() for lag in of_day)
        common = Counter(lag for of_day in counts.values() for lag in of_day.elements())
        if not common:
            yield days, ()
        elif days.fields[0] != "*" or max(common.values()) >= 0.9 * common.total():
            lag, count = common.most_common(1)[0]
            yield days, (lag,) if count >= 0.8 * common.total() else ()
        elif not all(lags.values()) or covered < 0.8 * common.total():
            yield days, ()
        else:
            usual = _day_rule(days.fields).weekdays
            for of_day in dict.fromkeys(lags.values()):
                numbers = frozenset((weekday + 1) % 7 for weekday, other in lags.items() if other == of_day)
                field = numbers_text(numbers & usual, frozenset(range(7)), aws=False)
                if numbers & usual:
                    yield replace(days, fields=("*", field)), of_day

    def _lag(self, day: date, arrival: Arrival) -> int:
        assert arrival.stamp is not None
        if self.unit == "month":
            return (day.year - arrival.stamp.year) * 12 + day.month - arrival.stamp.month
        return (day - arrival.stamp.date()).days

    def _frequent(
        self, history: Sequence[Arrival], local: Sequence[tuple[datetime, Arrival]], zone: str
    ) -> tuple[ProposedDelivery, ...]:
        """Return a delivery several times an hour or every few hours, by the time within its period."""
        gap = median((later - earlier) / _MINUTE for (earlier, _), (later, _) in pairwise(local))
        period = min(_PERIODS, key=lambda length: abs(math.log(length / gap)) if gap > 0 else length)
        folded = sorted(_minute_of(moment) % period for moment, _ in local)
        low, width = _narrowest(folded, period, 0.9)
        if width > 0.6 * period:
            return ()
        start = _round_down(low, 5 if period >= 15 else 1) % period
        hours: dict[int, set[date]] = defaultdict(set)
        for moment, _ in local:
            due = moment - timedelta(minutes=(_minute_of(moment) - start) % period)
            hours[due.hour].add(due.date())
        days = _day_pattern({day for of_hour in hours.values() for day in of_hour}, _FORTNIGHT)
        if days is None:
            return ()
        usual = max(map(len, hours.values())) * _USUAL
        active = frozenset(hour for hour, of_hour in hours.items() if len(of_hour) >= usual)
        minutes = frozenset(range(start % 60, 60, period)) if period < 60 else frozenset({start % 60})
        schedule = days.schedule(
            numbers_text(minutes, _MINUTES_OF_HOUR, aws=False), numbers_text(active, _HOURS, aws=False), zone
        )
        delivery = self._evaluated(history, schedule, days, ())
        return (delivery,) if delivery else ()

    def _with_stamped_times(
        self, history: Sequence[Arrival], local: Sequence[tuple[datetime, Arrival]], zone: str
    ) -> tuple[ProposedDelivery, ...]:
        """Return the delivery of partitions that are named after a time, by arrival minus that time."""
        offsets = [(moment - arrival.stamp) / _MINUTE for moment, arrival in local if arrival.stamp]
        spread = _quantile(offsets, 0.9) - _quantile(offsets, 0.05)
        start = _round_down(_quantile(offsets, 0.05), _step_of_due(spread))
        lag = start // 60
        dues = [arrival.stamp + timedelta(minutes=start) for _, arrival in local if arrival.stamp]
        days = _day_pattern({due.date() for due in dues}, _FORTNIGHT)
        if days is None:
            return ()
        counts = Counter(due.hour for due in dues)
        hours = frozenset(hour for hour, count in counts.items() if count >= _USUAL * max(counts.values()))
        schedule = days.schedule(str(start % 60), numbers_text(hours, _HOURS, aws=False), zone)
        delivery = self._evaluated(history, schedule, days, (lag,))
        return (delivery,) if delivery else ()

    def _delivery(
        self, history: Sequence[Arrival], plans: Sequence[_Plan], minute: int, zone: str
    ) -> ProposedDelivery | None:
        days, lags = plans[0].days, plans[0].lags
        hours = frozenset(plan.hour(minute) for plan in plans)
        schedule = days.schedule(str(minute), numbers_text(hours, _HOURS, aws=False), zone)
        return self._evaluated(history, schedule, days, lags)

    def _evaluated(
        self, history: Sequence[Arrival], schedule: Schedule, days: _Days, lags: tuple[int, ...]
    ) -> ProposedDelivery | None:
        """Return the delivery with the grace that meets the objective, or None if that is half a period."""
        unit = self.unit if lags else ""
        every = past_cycles(history, schedule, lags, unit)
        zone = load_zone(schedule.timezone)
        counted = [
            cycle
            for cycle in every
            if cycle.arrived_at is not None
            or not any(begin < cycle.due_at.astimezone(zone).date() < end for begin, end in days.pauses)
        ]
        if len(counted) < MIN_RARE_CYCLES or not (lags or _explains(counted, history)):
            return None
        missing = sum(cycle.arrived_at is None for cycle in counted)
        objective = next(
            (
                share
                for share in (self.objective, *OBJECTIVES)
                if share <= self.objective and allowed_misses(len(counted), share) >= missing
            ),
            None,
        )
        needed = _needed(counted, objective) if objective else None
        if objective is None or needed is None:
            return None
        minutes = needed / _MINUTE
        grace = timedelta(minutes=_round_up(minutes, step_of_grace(minutes)))
        gap = min(later.due_at - earlier.due_at for earlier, later in pairwise(every))
        if grace > gap / 2:
            # Less than a step remains for frequent deliveries.
            grace = timedelta(minutes=_round_up(minutes, 1))
        if grace > gap / 2:
            return None
        return ProposedDelivery(
            schedule, grace, objective, tuple(counted), lags, unit, len(every) - len(counted)
        )


def _explains(cycles: Sequence[PastCycle], history: Sequence[Arrival]) -> bool:
    """Return whether most arrivals are those of cycles, and about when they are due.

    Among many arrivals at any time, one would come by any due time.
    """
    lateness = [cycle.lateness for cycle in cycles if cycle.lateness is not None]
    early = sum(late < -_BURST for late in lateness)
    return len(lateness) >= _USUAL * len(history) and early <= 0.1 * len(lateness)


def _on_other_days(runs: Sequence[_Run]) -> list[int]:
    """Return a run whose days are disjoint from those of another one.

    Without partitions, an update on one day would count as the early one of the next.
    """
    days = [set(run.offsets) for run in runs]
    for number, own in enumerate(days):
        for other in days[:number]:
            if len(own & other) <= 0.2 * min(len(own), len(other)):
                return [number]
    return []


def _narrowest(folded: Sequence[float], period: float, share: float) -> tuple[float, float]:
    """Return begin and length of the shortest arc of a circle with a share of the points."""
    count = max(1, math.ceil(share * len(folded)))
    around = [*folded, *(point + period for point in folded)]
    length, low = min((around[at + count - 1] - around[at], around[at]) for at in range(len(folded)))
    return low, length


def _needed(cycles: Sequence[PastCycle], objective: Fraction) -> timedelta | None:
    """Return the lateness that as many cycles as the objective demands do not exceed, None if too few
    arrived.
    """
    late = sorted(cycle.lateness for cycle in cycles if cycle.lateness is not None)
    needed = len(cycles) - allowed_misses(len(cycles), objective)
    return max(late[needed - 1], timedelta(0)) if needed <= len(late) else None


# Cycles of a schedule, with the arrivals that count for them.


def past_cycles(
    history: Sequence[Arrival], schedule: Schedule, lags: Sequence[int], unit: str
) -> list[PastCycle]:
    """Return the cycles from the first to the last arrival, each with its arrival.

    With lags, a cycle has arrived when its last partition has. Without, it is the first arrival from a
    quarter of the interval before it is due to a quarter before the next one is, as for tables without
    partitions.
    """
    first, last = history[0].at, history[-1].at
    margin = timedelta(days=40)
    dues = list(schedule.between(first - margin, last + margin))
    if lags:
        by_stamp: dict[datetime, datetime] = {}
        for arrival in history:
            assert arrival.stamp is not None
            stamp = _truncated(arrival.stamp, unit)
            by_stamp[stamp] = max(arrival.at, by_stamp.get(stamp, arrival.at))
        cycles = []
        for due in dues:
            stamps = [_earlier(due.nominal, lag, unit) for lag in lags]
            arrived = [by_stamp[stamp] for stamp in stamps if stamp in by_stamp]
            is_complete = len(arrived) == len(stamps)
            if is_complete or first <= due.at <= last:
                cycles.append(PastCycle(due.at, max(arrived) if is_complete else None))
        return cycles
    times = [arrival.at for arrival in history]
    instants = [due.at for due in dues]
    cycles = []
    for previous, due_at, following in zip(instants, instants[1:], instants[2:], strict=False):
        opens_at = due_at - (due_at - previous) * EARLY_SHARE
        closes_at = following - (following - due_at) * EARLY_SHARE
        if closes_at <= first or opens_at > last:
            continue
        number = bisect_left(times, opens_at)
        arrived_at = times[number] if number < len(times) and times[number] < closes_at else None
        cycles.append(PastCycle(due_at, arrived_at))
    return cycles


def _truncated(moment: datetime, unit: str) -> datetime:
    if unit == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return day.replace(day=1) if unit == "month" else day


def _earlier(moment: datetime, lag: int, unit: str) -> datetime:
    if unit == "month":
        year, month = divmod(moment.year * 12 + moment.month - 1 - lag, 12)
        return datetime(year, month + 1, 1)  # noqa: DTZ001 - civil
    return _truncated(moment - (timedelta(hours=lag) if unit == "hour" else lag * _DAY), unit)


# Zones, changes of the usual time, and remarks.


@dataclass(frozen=True)
class _Fit:
    zone: str
    deliveries: tuple[ProposedDelivery, ...]
    arrivals: int

    @cached_property
    def changes(self) -> list[datetime]:
        """Due instants at which the usual lateness changed, ascending."""
        return sorted(change for delivery in self.deliveries for change in _changes(_lateness(delivery)))

    @cached_property
    def score(self) -> float:
        """Negative log-likelihood of the arrivals around their usual times; lower is better."""
        deviations = [
            deviation
            for delivery in self.deliveries
            for segment in _split(_lateness(delivery), self.changes)
            for deviation in _deviations(segment)
        ]
        explained = sum(len(_lateness(delivery)) * max(1, len(delivery.lags)) for delivery in self.deliveries)
        deviations += [_MAX_DEVIATION] * (self.arrivals - explained)
        parameters = len(self.deliveries) + 5 * len(self.changes)
        return self.arrivals * math.log(sum(deviations) / len(deviations) + 2) + 3 * parameters


_MAX_DEVIATION = 240.0
_Lateness = list[tuple[datetime, float]]


def _lateness(delivery: ProposedDelivery) -> _Lateness:
    """Return due instant and lateness in minutes of the cycles that arrived."""
    return [
        (cycle.due_at, cycle.lateness / _MINUTE) for cycle in delivery.cycles if cycle.lateness is not None
    ]


def _split(lateness: _Lateness, changes: Sequence[datetime]) -> Iterator[list[float]]:
    segments: dict[int, list[float]] = defaultdict(list)
    for due_at, minutes in lateness:
        segments[bisect_right(changes, due_at)].append(minutes)
    yield from segments.values()


def _deviations(minutes: Sequence[float]) -> list[float]:
    middle = median(minutes)
    return [min(abs(minute - middle), _MAX_DEVIATION) for minute in minutes]


def _changes(lateness: _Lateness) -> list[datetime]:
    """Return the due instants at which the median changes by more than the usual variation."""
    minutes = [minute for _, minute in lateness]
    last = len(minutes) - _MIN_SEGMENT
    if last < _MIN_SEGMENT:
        return []
    # Long histories are first searched coarsely.
    step = max(1, len(minutes) // 120)
    coarse = min(range(_MIN_SEGMENT, last + 1, step), key=lambda at: _cost(minutes, at))
    near = range(max(_MIN_SEGMENT, coarse - step), min(last, coarse + step) + 1)
    at = min(near, key=lambda at: _cost(minutes, at))
    before, after = minutes[:at], minutes[at:]
    noise = 1.5 * median(_deviations(before) + _deviations(after))
    if abs(median(after) - median(before)) <= max(_MIN_SHIFT, 2 * noise):
        return []
    return [*_changes(lateness[:at]), lateness[at][0], *_changes(lateness[at:])]


def _cost(minutes: Sequence[float], at: int) -> float:
    return sum(_deviations(minutes[:at])) + sum(_deviations(minutes[at:]))


def _since_last_change(best: _Fit, history: Sequence[Arrival], search: _Search, notes: list[str]) -> _Fit:
    """Return the fit of the arrivals since the usual time last changed."""
    zone = load_zone(best.zone)
    since = None
    while best.changes:
        later = [arrival for arrival in history if arrival.at >= best.changes[-1] - _DAY / 4]
        shorter = search.deliveries(later, best.zone)
        if not shorter or len(later) >= len(history):
            break
        since = best.changes[-1]
        history, best = later, _Fit(best.zone, shorter, len(later))
    if since is not None:
        notes.append(
            f"The usual time changed until {since.astimezone(zone):%Y-%m-%d}; "
            "only arrivals from then on count."
        )
    return best


def _zone_notes(
    best: _Fit, fits: Sequence[_Fit], history: Sequence[Arrival], search: _Search
) -> Iterator[str]:
    first, last = history[0].at, history[-1].at
    other_zones = [fit.zone for fit in fits if fit.zone != best.zone]
    changing = [zone for zone in (best.zone, *other_zones) if _has_change(zone, first, last)]
    if other_zones and not changing:
        yield f"No clock changed in this time, so the history does not show whether {best.zone} is the zone."
    if not other_zones and best.zone == "UTC":
        hints = [zone for zone in _HINT_ZONES if _has_change(zone, first, last)]
        tried = [_Fit(zone, search.deliveries(history, zone), len(history)) for zone in hints]
        closest = min((fit for fit in tried if fit.deliveries), key=lambda fit: fit.score, default=None)
        if closest and closest.score < best.score - _HINT_MARGIN:
            yield (
                f"Arrivals move with the clocks of {closest.zone}: pass their zone, "
                f"e.g. --zone {closest.zone}."
            )


def _has_change(zone: str, first: datetime, last: datetime) -> bool:
    return any(
        first < change.at < last
        for year in range(first.year, last.year + 1)
        for change in transitions(zone, year)
    )


def _delivery_notes(
    deliveries: Sequence[ProposedDelivery], objective: Fraction, has_stamps: bool
) -> Iterator[str]:
    for delivery in deliveries:
        if delivery.objective < objective:
            yield (
                f"{delivery.missing} of {len(delivery.cycles)} deliveries never came, so the objective is "
                f"{percent_text(delivery.objective)}, not {percent_text(objective)}."
            )
        if delivery.paused:
            yield f"{pluralize(delivery.paused, 'delivery', 'deliveries')} in pauses are not counted."
        if has_stamps and not delivery.lags:
            yield "Partitions do not follow the due date, so any new data counts as a delivery."


def percent_text(share: Fraction) -> str:
    """Return a share as a percentage of contracts, e.g. `99.5%`."""
    return f"{float(share * 100):.6f}".rstrip("0").rstrip(".") + "%"
