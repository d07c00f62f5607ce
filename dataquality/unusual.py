"""Forecasts of a table's numbers, and p-values of those that deviate (see docs/explanation/unusual.md).

Series are judged together: each operation is on an array of all series, and a loop runs over the runs. Every
number is judged by the numbers before it, so a replay of the history gives what was reported at the time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]

MIN_RUNS = 20
"""Runs that a series needs before its numbers are judged."""
MAX_LEVEL = 0.1
"""Largest level of a number in one run."""
_MIN_DAYS = 14.0
# Runs after which a level that persists is the new one.
ADAPTS_AFTER = 3
# Runs during which a return to the level before is expected.
_RETURN_WITHIN = 30
YEAR = 365.25

# Forecasts compete for each series: season, weight of a new value for level, season and trend.
_EXPERTS = (
    ("none", 0.4, 0.0, 0.0),
    ("none", 0.1, 0.0, 0.0),
    ("none", 0.3, 0.0, 0.05),
    ("week", 0.1, 0.15, 0.0),
    ("week", 0.3, 0.15, 0.0),
    ("week", 0.2, 0.15, 0.03),
)
# For several runs a day.
_EXPERTS_WITHIN_DAY = (
    ("none", 0.4, 0.0, 0.0),
    ("none", 0.1, 0.0, 0.0),
    ("day", 0.2, 0.15, 0.0),
    ("hours", 0.2, 0.2, 0.0),
    ("hours", 0.05, 0.2, 0.0),
)
_DAMPING = 0.97
# A season has to be this much better than none.
_SEASON_COST = {"none": 1.0, "week": 1.02, "day": 1.02, "hours": 1.05}
_SLOTS = {"none": 1, "week": 7, "day": 24, "hours": 168}
# Deviations beyond this many standard deviations count as this many (Huber).
_CLIP = 2.5
_SPREAD_WEIGHT = 0.03

# Tail: the largest deviations, and a prior of this many excesses with this index and mean.
_LARGEST = 24
_PRIOR_COUNT, _PRIOR_INDEX, _PRIOR_EXCESS = 8.0, 0.12, 0.5
_MIN_INDEX, _MAX_INDEX = 0.05, 0.33
_TAIL_SHARE = 0.15
# Beyond the level of the table, i.e. for the limit of all tables, the tail has this index, heavier than any
# that is estimated: how rare the rarest numbers are is an extrapolation.
_FAR_INDEX = 0.5
_REFIT_RUNS = 4
# Of a false alarm, at most this deviation is learned, because it widens the tail.
_MOST_DEVIATION = 30.0
# An alarm in the last year divides the level of its table by this and one.
_CAUTION = 2.0
# The level grows to its full size during this many runs, because early tails are guesses.
_CAUTIOUS_RUNS, _CAUTIOUS_POWER = 200.0, 1.5
# Shares and counts that hardly varied so far are not constant for certain: until a history has this many
# runs, the smallest deviation that matters is larger, at first by this many times its size.
_VARIED_RUNS = {"share": 360.0, "count": 200.0}
_VARIED_STEPS = 3.0

# Turn of the month: the last and first days, remembered for some months.
_TURN_DAYS, _TURNS, _TURN_SHIFT = 3, 4, 2
_HOLIDAYS = 6


class Scale(Enum):
    """Kind of number, which determines the smallest deviation that matters."""

    ROWS = "rows"
    """Counts of events: deviations of the order of the square root are noise."""
    COUNT = "count"
    """Counts of different things."""
    SHARE = "share"
    """From 0 to 1."""
    NUMBER = "number"
    BYTES = "bytes"
    """Sizes of files, which compression varies: deviations of about 2 % are noise."""
    MINUTES = "minutes"
    """Times of arrival."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Result for series × runs.

    Attributes:
        p: p-value of each number; NaN where it is missing, or not judged because the series is learning.
        unusual: Numbers whose p-value is below the level.
        lower, upper: Expected range of the last run, by series.
        level: Level of each number: the accepted one, lower for short histories and after alarms.
    """

    p: Floats
    unusual: Bools
    lower: Floats
    upper: Floats
    level: Floats


@dataclass(frozen=True, slots=True)
class _Smallest:
    """Standard deviation of each series below which deviations do not matter."""

    unit: Floats
    factor: Floats
    rows: Integers
    counts: Integers
    minutes: Integers
    shares: Integers
    varied_runs: Floats

    @classmethod
    def of(cls, scales: Sequence[Scale], unit: Floats) -> _Smallest:
        values = np.array([scale.value for scale in scales])
        rows, counts, minutes, shares = (
            np.flatnonzero(values == scale.value)
            for scale in (Scale.ROWS, Scale.COUNT, Scale.MINUTES, Scale.SHARE)
        )
        factor = np.where(values == Scale.BYTES.value, 2.0, 1.0)
        varied_runs = np.array([_VARIED_RUNS.get(scale.value, 1.0) for scale in scales])
        return cls(unit, factor, rows, counts, minutes, shares, varied_runs)

    def deviation(self, forecast: Floats, learned_runs: Floats) -> Floats:
        """Return it on the transformed scale, for forecasts there."""
        size = np.abs(np.sinh(np.clip(forecast, -600, 600)) * self.unit)
        raw = 0.01 * size
        raw[self.rows] = np.hypot(raw[self.rows], np.sqrt(size[self.rows] + 1.0))
        raw[self.counts] = np.hypot(raw[self.counts], 0.15)
        raw *= self.factor
        raw[self.minutes] = 5.0
        smallest = np.maximum(raw * (1.0 / np.hypot(size, self.unit)), 1e-4)
        smallest[self.shares] = 0.15
        return smallest * (1.0 + _VARIED_STEPS * np.maximum(1.0 - learned_runs / self.varied_runs, 0.0))


@dataclass(frozen=True, slots=True)
class _Transform:
    """Maps numbers to a scale on which deviations of one series are alike at all levels, and back."""

    unit: Floats
    is_share: Bools
    smallest: _Smallest

    def forward(self, values: Floats) -> Floats:
        unit = _wide(self.unit, values)
        if not self.is_share.any():
            return _log_like(values, unit)
        shares = np.clip(values, 0.0, 1.0)
        logits = np.log((shares + _SHARE_UNIT) / (1.0 - shares + _ALL_UNIT))
        return np.where(_wide(self.is_share, values), logits, _log_like(values, unit))

    def backward(self, values: Floats) -> Floats:
        odds = np.exp(np.clip(values, -60, 60))
        shares = np.clip((odds * (1 + _ALL_UNIT) - _SHARE_UNIT) / (1 + odds), 0.0, 1.0)
        return np.where(self.is_share, shares, np.sinh(np.clip(values, -600, 600)) * self.unit)


# Differences of shares near 0 do not matter below this; all rows differ clearly from nearly all.
_SHARE_UNIT, _ALL_UNIT = 0.01, 0.0005


def _log_like(values: Floats, unit: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.arcsinh(np.clip(values / unit, -1e300, 1e300))


def _wide(by_series: NDArray[np.generic], values: Floats) -> Floats:
    return by_series[:, None] if values.ndim == 2 else by_series  # type: ignore[return-value]


def judge(
    times: NDArray[np.datetime64],
    values: Floats,
    scales: Sequence[Scale],
    level: Floats | float,
    holidays: Bools | None = None,
    confirmed: Bools | None = None,
    tables: Integers | None = None,
    normal: Bools | None = None,
) -> Judged:
    """Judge each number by those before it.

    Args:
        times: Time of the data of each run, ascending.
        values: Series × runs, NaN where a run has no number.
        scales: Kind of each series.
        level: Accepted probability of a false alarm in one run, for all or each of the series.
        holidays: Runs on holidays.
        confirmed: Numbers (series × runs) that are known to be right, though they may be unusual.
        tables: Table of each series, ascending from 0; by default each series has one of its own. After an
            alarm, fewer are raised for the table.
        normal: Numbers (series × runs) whose alarm was answered as not real: they are learned at once, as
            confirmed ones, and deviations of their size count as seen.
    """
    series, runs = values.shape
    if not series or not runs:
        empty = np.zeros(series)
        return Judged(values.copy(), np.zeros(values.shape, bool), empty, empty, values.copy())
    levels = np.broadcast_to(np.asarray(level, float), (series,))
    tables = np.arange(series) if tables is None else tables
    calendar = _calendar(times, holidays)
    # Blocks of whole tables.
    starts = np.unique(np.searchsorted(tables, tables[::_BLOCK]))
    parts = [
        _Replay(
            calendar,
            values[start:end],
            list(scales[start:end]),
            levels[start:end],
            None if confirmed is None else confirmed[start:end],
            tables[start:end] - tables[start],
            None if normal is None else normal[start:end],
        ).result()
        for start, end in pairwise([*starts.tolist(), series])
    ]
    return Judged(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in Judged.__dataclass_fields__)
    )


_SCALES = {
    "rowCount": Scale.ROWS,
    "distinctCount": Scale.COUNT,
    "nullShare": Scale.SHARE,
    "bytes": Scale.BYTES,
    "arrival": Scale.MINUTES,
}


def judge_runs(
    times: Sequence[datetime],
    numbers: Mapping[str, Sequence[float | None]],
    alarms_a_year: float,
    expected: Collection[date] = (),
    holidays: Collection[date] = (),
    normal: Sequence[bool] = (),
) -> tuple[Judged, float]:
    """Judge the numbers of one table, by name, and return the number of its runs a year.

    Args:
        times: Time of the data of each run, ascending, in UTC.
        numbers: Numbers of each run by name, or None in a run without one.
        alarms_a_year: Accepted false alarms of each number.
        expected: Dates whose numbers are right.
        holidays: Dates that may be like Sundays, or like other holidays.
        normal: Runs whose alarm was answered as not real; by default none.
    """
    moments = np.array([time.replace(tzinfo=None) for time in times], "datetime64[s]")
    values = np.array([list(series) for series in numbers.values()], float)
    yearly = runs_a_year(moments)
    level = min(alarms_a_year / yearly, MAX_LEVEL)
    confirmed = np.array([time.date() in expected for time in times])
    judged = judge(
        moments,
        values,
        [_SCALES.get(name, Scale.NUMBER) for name in numbers],
        level,
        holidays=np.array([time.date() in holidays for time in times]),
        confirmed=np.broadcast_to(confirmed, values.shape) if expected else None,
        tables=np.zeros(len(values), np.int64),
        normal=np.broadcast_to(np.array(normal, bool), values.shape) if any(normal) else None,
    )
    return judged, yearly


def is_daily(yearly: float) -> bool:
    """Return True for about a run a day, also without weekends."""
    return YEAR / 2 < yearly < 1.5 * YEAR


# Series whose state fits into the caches of a processor.
_BLOCK = 4_000


@dataclass(frozen=True, slots=True)
class _Calendar:
    """Place of each run in the seasons. `turn` is the day in the turn of the month, -1 outside of it."""

    days: Floats
    slots: dict[str, Integers]
    turn: Integers
    holidays: Bools
    within_day: bool


def runs_a_year(times: NDArray[np.datetime64]) -> float:
    """Return the number of runs a year by the usual distance between them."""
    days = times.astype("datetime64[s]").astype(float) / 86_400
    gaps = np.diff(days)
    gaps = gaps[gaps > 0]
    return YEAR / max(float(np.median(gaps)), 1 / 1_440) if len(gaps) else YEAR


def _calendar(times: NDArray[np.datetime64], holidays: Bools | None) -> _Calendar:
    seconds = times.astype("datetime64[s]").astype(np.int64)
    dates = times.astype("datetime64[D]")
    months = times.astype("datetime64[M]")
    weekdays = (dates.astype(np.int64) + 3) % 7
    hours = seconds // 3_600 % 24
    from_first = (dates - months.astype("datetime64[D]")).astype(np.int64)
    to_last = ((months + 1).astype("datetime64[D]") - dates).astype(np.int64) - 1
    turn = np.full(len(times), -1)
    turn[to_last < _TURN_DAYS] = _TURN_DAYS - 1 - to_last[to_last < _TURN_DAYS]
    turn[from_first < _TURN_DAYS] = _TURN_DAYS + from_first[from_first < _TURN_DAYS]
    yearly = runs_a_year(times)
    within_day = yearly > 1.5 * YEAR
    if within_day or yearly < YEAR / 4:
        turn[:] = -1
    return _Calendar(
        seconds / 86_400,
        {
            "none": np.zeros(len(times), np.int64),
            "week": weekdays,
            "day": hours,
            "hours": weekdays * 24 + hours,
        },
        turn,
        np.zeros(len(times), bool) if holidays is None else holidays,
        within_day,
    )


def _transform(values: Floats, scales: Sequence[Scale]) -> _Transform:
    """Return the transformation of each series by its first numbers, so that later ones do not change it."""
    # The first numbers of each series, missing ones last.
    order = np.argsort(np.isnan(values), axis=1, kind="stable")[:, :MIN_RUNS]
    first = np.take_along_axis(values, order, axis=1)
    sizes = np.abs(first)
    empty = np.isnan(first).all(axis=1)
    first[empty], sizes[empty] = 0.0, 0.0
    middle = np.nanmedian(first, axis=1)
    size = np.nanmedian(sizes, axis=1)
    spread = 1.4826 * np.nanmedian(np.abs(first - middle[:, None]), axis=1)
    of = np.array([scale.value for scale in scales])
    least = np.where((of == "rows") | (of == "count"), 1.0, np.where(of == "minutes", 10.0, 0.0))
    unit = np.maximum(np.maximum(0.1 * size, spread), least)
    # Times of arrival do not grow by factors.
    unit = np.where(of == "minutes", np.maximum(unit, 10 * spread + 60), unit)
    unit = np.where(unit > 0, unit, 1.0)
    return _Transform(unit, of == "share", _Smallest.of(scales, unit))


@dataclass(slots=True)
class _Replay:
    """State of all series while their runs are replayed in order; experts come first in the arrays."""

    calendar: _Calendar
    values: Floats
    scales: list[Scale]
    levels: Floats
    confirmed: Bools | None
    tables: Integers
    normal: Bools | None = None
    _experts: tuple[tuple[str, float, float, float], ...] = field(init=False)

    def result(self) -> Judged:
        transform = _transform(self.values, self.scales)
        transformed = transform.forward(self.values)
        series, runs = self.values.shape
        self._experts = _EXPERTS_WITHIN_DAY if self.calendar.within_day else _EXPERTS
        state = _State.empty(self._experts, self.tables)
        # By run, so that the numbers of a run are next to each other.
        by_run = np.ascontiguousarray(transformed.T)
        present = ~np.isnan(by_run)
        by_run[~present] = 0.0
        p, level = np.empty((runs, series)), np.empty((runs, series))
        unusual = np.empty((runs, series), bool)
        for run in range(runs):
            step = state.advance(
                self.calendar,
                run,
                by_run[run],
                present[run],
                self.levels,
                transform,
                None if self.confirmed is None else self.confirmed[:, run],
                None if self.normal is None else self.normal[:, run],
            )
            p[run], unusual[run], level[run] = step.p, step.unusual, step.level
        p[~present] = np.nan
        scales = np.array([scale.value for scale in self.scales])
        least = np.where(np.isin(scales, ("rows", "count", "bytes")), 0.0, -np.inf)
        lower = np.maximum(transform.backward(step.lower), least)
        return Judged(p.T, unusual.T, lower, transform.backward(step.upper), level.T)


@dataclass(frozen=True, slots=True)
class _Step:
    p: Floats
    unusual: Bools
    lower: Floats
    upper: Floats
    level: Floats


@dataclass(slots=True)
class _State:
    """State of each series before its next run."""

    experts: tuple[tuple[str, float, float, float], ...]
    learned_runs: Floats
    first_day: Floats
    day: float
    level: Floats
    trend: Floats
    seasons: dict[int, Floats]
    visits: dict[str, Floats]
    spread: Floats
    loss: Floats
    scored: Floats
    largest: Floats
    judged: Floats
    streak: Floats
    recent: Floats
    back: Floats
    back_left: Floats
    slot_alarm: Floats
    turns: Floats
    turns_seen: Floats
    holiday: Floats
    alarms: Floats
    pending: Bools
    moved: Bools
    tables: Integers
    table_sizes: Integers
    tail: _Tail | None

    @classmethod
    def empty(cls, experts: tuple[tuple[str, float, float, float], ...], tables: Integers) -> _State:
        series = len(tables)
        count = len(experts)
        seasons = {
            index: np.zeros((_SLOTS[season], series))
            for index, (season, *_) in enumerate(experts)
            if season != "none"
        }
        names = dict.fromkeys(season for season, *_ in experts if season != "none")
        return cls(
            experts=experts,
            learned_runs=np.zeros(series),
            first_day=np.full(series, np.nan),
            day=np.nan,
            level=np.zeros((count, series)),
            trend=np.zeros((count, series)),
            seasons=seasons,
            visits={name: np.zeros((_SLOTS[name], series)) for name in names},
            spread=np.zeros((count, series)),
            loss=np.zeros((count, series)),
            scored=np.zeros((count, series)),
            largest=np.zeros((_LARGEST, series)),
            judged=np.zeros(series),
            streak=np.zeros(series),
            recent=np.zeros((ADAPTS_AFTER, count, series)),
            back=np.zeros(series),
            back_left=np.zeros(series),
            slot_alarm=np.zeros((7, series)),
            turns=np.full((_TURNS, 2 * _TURN_DAYS, series), np.nan),
            turns_seen=np.zeros(series),
            holiday=np.full((_HOLIDAYS, series), np.nan),
            alarms=np.zeros(series),
            pending=np.zeros(series, bool),
            moved=np.zeros(series, bool),
            tables=tables,
            table_sizes=np.bincount(tables)[tables],
            tail=None,
        )

    def advance(
        self,
        calendar: _Calendar,
        run: int,
        x: Floats,
        present: Bools,
        levels: Floats,
        transform: _Transform,
        confirmed: Bools | None,
        normal: Bools | None,
    ) -> _Step:
        """Judge the numbers of one run, and learn from them."""
        days = calendar.days[run] - self.day if run else 0.0
        self.day = calendar.days[run]
        slots = {name: int(index[run]) for name, index in calendar.slots.items()}
        self.level += self.trend * days
        self.trend *= _DAMPING
        forecasts = self.level.copy()
        for index, season in self.seasons.items():
            forecasts[index] += season[slots[self.experts[index][0]]]
        residuals = x - forecasts
        # The forecast that was closest so far.
        best = np.argmin(np.where(self.scored > 0, self.loss, np.inf), axis=0)
        best_index = best * len(x) + np.arange(len(x))
        forecast, residual = forecasts.take(best_index), residuals.take(best_index)
        sigmas = np.sqrt(self.spread)
        spread = np.hypot(sigmas.take(best_index), transform.smallest.deviation(forecast, self.learned_runs))
        lower_offset, upper_offset = self._explained(calendar, run, slots)
        unexplained = residual - np.clip(residual, lower_offset, upper_offset)
        deviation = np.abs(unexplained) / spread
        if self.tail is None or run % _REFIT_RUNS == 0:
            self.tail = _Tail.of(self.largest, self.judged)
        tail = self.tail
        maturity = np.minimum(self.learned_runs / _CAUTIOUS_RUNS, 1.0) ** _CAUTIOUS_POWER
        level = levels * maturity / (1.0 + _CAUTION * self.alarms)
        level = np.maximum(level, 1e-12)
        reach = tail.quantile(level)
        ready = self._ready(calendar, run, slots, best)
        p = np.where(ready, 1.0, np.nan)
        beyond = np.flatnonzero(ready & (deviation > tail.base))
        p[beyond] = tail.p(beyond, deviation, self.largest, self.judged, reach)
        unusual = present & (deviation > reach) & (p < level)
        step = _Step(
            p,
            unusual,
            forecast + lower_offset - reach * spread,
            forecast + upper_offset + reach * spread,
            level,
        )
        far = present & (self.learned_runs >= MIN_RUNS) & (np.abs(residual) > reach * spread)
        false_alarms = np.zeros_like(unusual) if normal is None else unusual & normal
        if normal is not None:
            confirmed = normal if confirmed is None else confirmed | normal
        self._learn(
            calendar, run, slots, days, residuals, residual, sigmas, spread, present, far, unusual, confirmed
        )  # fmt: skip
        learns = present & (ready | (self.learned_runs >= 8))
        self._learn_tail(deviation, reach, learns, far, unusual, false_alarms, levels)
        return step

    def _ready(self, calendar: _Calendar, run: int, slots: dict[str, int], best: Integers) -> Bools:
        ready = (self.learned_runs >= MIN_RUNS) & (self.day - self.first_day >= _MIN_DAYS)
        for name, visits in self.visits.items():
            is_new = visits[slots[name]] < 2
            if is_new.any():
                uses = np.array([expert[0] == name for expert in self.experts])[best]
                ready &= ~(uses & is_new)
        if calendar.turn[run] >= 0:
            # The first turn of the month is only learned.
            ready &= self.turns_seen >= 1
        return ready

    def _explained(self, calendar: _Calendar, run: int, slots: dict[str, int]) -> tuple[Floats, Floats]:
        """Return the range of residuals with an explanation by the calendar or an earlier report."""
        zero = np.zeros_like(self.learned_runs)
        returning = np.where(self.back_left > 0, self.back, 0.0)
        weekly = self.slot_alarm[slots["week"]]
        lower = np.minimum(np.minimum(zero, returning), weekly)
        upper = np.maximum(np.maximum(zero, returning), weekly)
        place = int(calendar.turn[run])
        if place >= 0:
            near = self.turns[:, max(place - _TURN_SHIFT, 0) : place + _TURN_SHIFT + 1]
            lower = np.fmin(lower, np.fmin.reduce(near, axis=(0, 1)))
            upper = np.fmax(upper, np.fmax.reduce(near, axis=(0, 1)))
        if calendar.holidays[run]:
            lower = np.fmin(lower, np.fmin.reduce(self.holiday, axis=0))
            upper = np.fmax(upper, np.fmax.reduce(self.holiday, axis=0))
            for index, season in self.seasons.items():
                if self.experts[index][0] == "week":
                    sunday = season[6] - season[slots["week"]]
                    lower, upper = np.minimum(lower, sunday), np.maximum(upper, sunday)
        return lower, upper

    def _learn(
        self,
        calendar: _Calendar,
        run: int,
        slots: dict[str, int],
        days: float,
        residuals: Floats,
        residual: Floats,
        sigmas: Floats,
        spread: Floats,
        present: Bools,
        far: Bools,
        unusual: Bools,
        confirmed: Bools | None,
    ) -> None:
        weekday = slots["week"]
        place = int(calendar.turn[run])
        # Far from the forecast, but explained.
        explained = far & ~unusual
        returned = explained & (self.back_left > 0) & (np.sign(residual) == np.sign(self.back))
        # The same weekday was as far off the last time.
        weekly = explained & ~returned & (np.sign(residual) == np.sign(self.slot_alarm[weekday]))
        calendar_day = np.full_like(far, place >= 0 or bool(calendar.holidays[run]))
        outlier = unusual | (explained & calendar_day)
        accepted = unusual & confirmed if confirmed is not None else np.zeros_like(unusual)
        # A level that persists is the new one.
        sign = np.sign(residual)
        may_persist = far & ~calendar_day
        same = may_persist & (np.sign(self.streak) == sign)
        self.streak = np.where(
            present, np.where(may_persist, np.where(same, self.streak + sign, sign), 0.0), self.streak
        )
        if may_persist.any():
            # Only those of a streak, which are the last ones, are looked at.
            self.recent[:-1, :, may_persist] = self.recent[1:, :, may_persist]
            self.recent[-1, :, may_persist] = residuals[:, may_persist].T
        persists = np.abs(self.streak) >= ADAPTS_AFTER
        moved = self.moved = persists | accepted | returned
        jump = np.where(moved, residuals, 0.0) if moved.any() else np.zeros_like(residuals)
        if persists.any():
            jump[:, persists] = np.median(self.recent[:, :, persists], axis=0)
        # Deviations beyond the clip count as the clip; those that were reported do not count at all.
        learns = present & ~outlier & ~moved
        bound = _CLIP * sigmas
        np.maximum(bound, spread, out=bound)
        if (is_early := self.learned_runs < 8).any():
            bound[:, is_early] = np.inf
        learned = np.minimum(residuals, bound)
        np.maximum(learned, np.negative(bound, out=bound), out=learned)
        learned *= learns
        visits_before = np.ones_like(residuals)
        first = self.learned_runs == 0
        early_weight = 1.0 / (self.learned_runs + 1.0)
        any_weekly = bool(weekly.any())
        for index, (season, level_weight, season_weight, trend_weight) in enumerate(self.experts):
            weight = np.maximum(level_weight, early_weight)
            error = learned[index]
            if season != "none":
                visited = self.visits[season][slots[season]]
                visits_before[index] = visited
                season_error = np.maximum(season_weight, 1.0 / (visited + 1.0)) * error
                # The first number is the level; a day of the week that is new does not change the level.
                weight = np.where((visited > 0) | first, weight, 0.0)
                if any_weekly:
                    season_error = np.where(weekly, residuals[index], season_error)
                    error = np.where(weekly, 0.0, error)
                self.seasons[index][slots[season]] += np.where(first, 0.0, season_error)
            self.level[index] += weight * error
            if trend_weight and days > 0:
                gain = np.where(self.learned_runs >= 5, trend_weight, 0.0)
                self.trend[index] += gain * error / days
        if moved.any():
            self.level += np.where(moved & present, jump, 0.0)
        for name, visits in self.visits.items():
            visits[slots[name]] += present
        self._learn_spread(residuals, learns, visits_before, sigmas, spread)
        self.back = np.where(
            persists | accepted, -np.where(persists, np.take(jump, 0, axis=0), residual), self.back
        )
        self.back_left = np.where(
            persists | accepted,
            _RETURN_WITHIN,
            np.where(returned, 0.0, np.maximum(self.back_left - present, 0)),
        )
        self.streak = np.where(moved, 0.0, self.streak)
        self.slot_alarm[weekday] = np.where(
            present,
            np.where(unusual & ~moved & (not calendar.within_day), residual, 0.0),
            self.slot_alarm[weekday],
        )
        if place >= 0:
            if place == 0 or calendar.turn[max(run - 1, 0)] < 0:
                self.turns[1:] = self.turns[:-1].copy()
                self.turns[0] = np.nan
            self.turns[0, place] = np.where(present, residual, self.turns[0, place])
        elif run and calendar.turn[run - 1] >= 0:
            self.turns_seen += 1
        if calendar.holidays[run]:
            self.holiday[1:] = np.where(present, self.holiday[:-1], self.holiday[1:])
            self.holiday[0] = np.where(present, residual, self.holiday[0])
        self.first_day = np.where(present & np.isnan(self.first_day), self.day, self.first_day)
        self.learned_runs += present

    def _learn_spread(
        self, residuals: Floats, learns: Bools, visits: Floats, sigmas: Floats, spread: Floats
    ) -> None:
        """Update the spread and the loss of each forecast, except of days that it could not know."""
        size = np.abs(residuals)
        learns = learns & (visits > 0) & (self.learned_runs >= 2)
        self.scored += learns
        is_early = self.scored < 10
        costs = np.array([_SEASON_COST[season] for season, *_ in self.experts])[:, None]
        # In place, because memory is the limit: weight is 1 / scored, at least _SPREAD_WEIGHT.
        weight = np.maximum(self.scored, 1.0)
        np.maximum(np.divide(1.0, weight, out=weight), _SPREAD_WEIGHT, out=weight)
        weight *= learns
        bound = _CLIP_SPREAD * sigmas
        np.maximum(bound, spread, out=bound)
        for average, limit in ((self.spread, bound), (self.loss, 5.0 * spread)):
            change = np.minimum(size, limit)
            if is_early.any():
                np.copyto(change, size, where=is_early)
            change *= change if average is self.spread else costs
            change -= average
            change *= weight
            average += change

    def _learn_tail(
        self,
        deviation: Floats,
        reach: Floats,
        learns: Bools,
        far: Bools,
        unusual: Bools,
        false_alarms: Bools,
        levels: Floats,
    ) -> None:
        """Add the deviations to the largest.

        An unusual one counts once it turns out not to be a new level, as one at the edge of the range. An
        alarm that was answered as not real counts with its size, so that such deviations are not reported.
        """
        ends = (self.pending & learns & ~far) | false_alarms
        # Forgotten in the time of one accepted alarm of the table.
        self.alarms *= np.exp(-levels * self.table_sizes)
        if ends.any():
            self.alarms += (np.bincount(self.tables, ends) > 0)[self.tables]
        pushed = np.where(learns & ~unusual, np.minimum(deviation, reach), 0.0)
        pushed = np.where(ends, reach, pushed)
        pushed = np.where(false_alarms, np.minimum(deviation, _MOST_DEVIATION), pushed)
        changed = np.flatnonzero(pushed > self.largest[-1])
        if len(changed):
            largest, pushed = self.largest[:, changed], pushed[changed]
            # Smaller ones move down by one place.
            inserted = np.maximum(largest, pushed)
            inserted[1:] = np.maximum(largest[1:], np.minimum(largest[:-1], pushed))
            self.largest[:, changed] = inserted
        self.judged += learns
        self.pending = (self.pending | unusual) & ~ends & ~self.moved


# Spread: deviations beyond this many standard deviations count as this many.
_CLIP_SPREAD = 4.0


@dataclass(frozen=True, slots=True)
class _Tail:
    """Generalized Pareto tail of each series' deviations beyond `base`, which a share of them exceeds."""

    share: Floats
    base: Floats
    scale: Floats
    index: Floats

    @classmethod
    def of(cls, largest: Floats, judged: Floats) -> _Tail:
        count = np.clip(np.ceil(_TAIL_SHARE * judged), 3, _LARGEST - 1)
        base = np.maximum(np.take_along_axis(largest, count.astype(np.int64)[None], 0)[0], 1.0)
        share = np.minimum((count + 1.0) / (judged + 1.0), 0.5)
        excesses = np.maximum(largest - base, 0.0)
        # Probability-weighted moments (Hosking and Wallis 1987), drawn to the prior.
        mean = excesses.sum(axis=0) / count
        ranks = np.arange(_LARGEST)[:, None]
        weighted = (excesses * np.maximum(ranks + 0.35, 0) / count).sum(axis=0) / count
        spread = mean - 2.0 * weighted
        with np.errstate(divide="ignore", invalid="ignore"):
            index = np.where(spread > 1e-9, 2.0 - mean / spread, _PRIOR_INDEX)
        index = (count * np.clip(index, -0.5, 1.0) + _PRIOR_COUNT * _PRIOR_INDEX) / (count + _PRIOR_COUNT)
        index = np.clip(index, _MIN_INDEX, _MAX_INDEX)
        mean = (mean * count + _PRIOR_COUNT * _PRIOR_EXCESS) / (count + _PRIOR_COUNT)
        return cls(share, base, mean * (1.0 - index), index)

    def p(
        self,
        series: Integers,
        deviation: Floats,
        largest: Floats,
        judged: Floats,
        reach: Floats,
    ) -> Floats:
        """Return the probability of deviations at least as large, of series whose deviation is beyond `base`.

        It is at least the share of larger ones so far. Beyond `reach`, the quantile of the level, the tail is
        assumed to be heavy: no history tells how rare its rarest numbers are.
        """
        deviation, index, scale = deviation[series], self.index[series], self.scale[series]
        share, base, reach = self.share[series], self.base[series], reach[series]
        excess = np.minimum(deviation, reach) - base
        tail = share * (1.0 + index * excess / scale) ** (-1.0 / index)
        far = np.flatnonzero(deviation > reach)
        excess = (deviation - reach)[far] / (scale + index * (reach - base))[far]
        tail[far] *= (1.0 + _FAR_INDEX * excess) ** (-1.0 / _FAR_INDEX)
        larger = (largest[:, series] >= deviation).sum(axis=0) / (judged[series] + 1.0)
        p: Floats = np.maximum(tail, larger)
        return p

    def quantile(self, level: Floats) -> Floats:
        """Return the deviation that is exceeded with this probability."""
        return self.base + self.scale * (np.maximum(self.share / level, 1.0) ** self.index - 1.0) / self.index
