"""The days of a schedule: which civil dates of a month its day, month, weekday and year fields name.

Days are sets of at most 31 numbers, so the set operation itself is the clearest form. croniter is not asked:
it joins `*/2` and a weekday with OR where cron says AND, takes `5-5` for the whole week and knows no `LW`.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache

LAST, LAST_WEEKDAY = 0, -1
"""Marks among `DayRule.nearest` for `L` and `LW`; a positive number n is `nW`."""

_FIRST_YEAR_OF_28 = 2000


@dataclass(frozen=True, slots=True)
class DayRule:
    """The four fields of an expression that choose dates, as values.

    `days` are 1..31 and `weekdays` are 0..6 with Sunday 0. `special_days` holds LAST, LAST_WEEKDAY or n
    for the working day nearest to n; `special_weekdays` holds (weekday, k) for the k-th such weekday of
    the month, with k = 0 for the last. `both`: a date must meet the day and the weekday field, else
    one is enough. `years` of None means every year.
    """

    days: frozenset[int]
    special_days: frozenset[int]
    months: tuple[int, ...]
    weekdays: frozenset[int]
    special_weekdays: frozenset[tuple[int, int]]
    both: bool
    years: frozenset[int] | None = None

    @property
    def last_year(self) -> int:
        """The last year that can have a date; 9999 where no years are named."""
        return 9999 if self.years is None else max(self.years)

    def names(self, day: date) -> bool:
        """Whether a civil date meets the rule."""
        if day.month not in self.months:
            return False
        return any(midnight.date() == day for midnight in midnights(self, day.year, day.month))

    def ever(self, due_on: Callable[[date], date | None] | None = None) -> bool:
        """Whether any date meets the rule; `due_on` gives None for those that a calendar leaves out."""
        # Within 28 years every date, 29 February included, falls on every weekday.
        years = self.years or range(_FIRST_YEAR_OF_28, _FIRST_YEAR_OF_28 + 28)
        return any(
            due_on is None or due_on(midnight.date()) is not None
            for year in sorted(years)
            for month in self.months
            for midnight in midnights(self, year, month)
        )


@lru_cache(maxsize=65_536)
def midnights(rule: DayRule, year: int, month: int) -> tuple[datetime, ...]:
    """The dates of one of the rule's months, ascending, as civil midnights without a zone."""
    if rule.years is not None and year not in rule.years:
        return ()
    first, length = calendar.monthrange(year, month)
    named = {day for day in rule.days if day <= length}
    named.update(_special_day(mark, year, month, length) for mark in rule.special_days)
    # monthrange counts Monday as 0, cron counts Sunday as 0.
    by_weekday = {day for day in range(1, length + 1) if (first + day) % 7 in rule.weekdays}
    for weekday, nth in rule.special_weekdays:
        same = [day for day in range(1, length + 1) if (first + day) % 7 == weekday]
        by_weekday.update(same[-1:] if nth == 0 else same[nth - 1 : nth])
    chosen = named & by_weekday if rule.both else named | by_weekday
    return tuple(datetime(year, month, day) for day in sorted(chosen))  # noqa: DTZ001 - civil


def _special_day(mark: int, year: int, month: int, length: int) -> int:
    """The day of `L`, `LW` or `nW`; the nearest working day never leaves the month."""
    day = length if mark in (LAST, LAST_WEEKDAY) else mark
    weekday = date(year, month, day).weekday()
    if mark == LAST or weekday < 5:
        return day
    if mark == LAST_WEEKDAY:
        return day - (weekday - 4)
    if weekday == 5:
        return day - 1 if day > 1 else day + 2
    return day + 1 if day < length else day - 2
