"""cron(...) as AWS documents it, read and counted on its own: nothing of the product is asked."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_WEEK = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_EXPRESSION = re.compile(r"cron\((\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\)")


class CronRefused(ValueError):
    """No expression that EventBridge Scheduler takes."""


def _number(text: str, low: int, high: int, names: list[str]) -> int:
    if text.upper() in names:
        return names.index(text.upper()) + 1
    if not (text.isascii() and text.isdecimal()) or not low <= int(text) <= high:
        raise CronRefused(f"{text!r} is not within {low} and {high}")
    return int(text)


def _values(field: str, low: int, high: int, names: list[str] | None = None) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        if span in ("*", "?"):
            start, end = low, high
        else:
            start = _number(first, low, high, names or [])
            end = _number(last, low, high, names or []) if dash else high if slash else start
        if start > end or (slash and not 1 <= _number(step, 1, high, []) <= high):
            raise CronRefused(f"{part!r} in {field!r}")
        found.update(range(start, end + 1, int(step) if slash else 1))
    return found


@dataclass(frozen=True)
class AwsCron:
    """One expression. Raises CronRefused for what AWS would not take."""

    text: str

    def __post_init__(self) -> None:
        if not _EXPRESSION.fullmatch(self.text) or len(self.text) > 256:
            raise CronRefused(self.text)
        day, weekday = self._fields()[2], self._fields()[4]
        if (day == "?") == (weekday == "?"):
            raise CronRefused("one of day-of-month and day-of-week is '?'")
        for one in (date(2024, 2, 1), date(2025, 1, 1)):
            self._days(one.year, one.month)
        self.times()
        self.years()

    def _fields(self) -> tuple[str, ...]:
        found = _EXPRESSION.fullmatch(self.text)
        assert found is not None
        return found.groups()

    def times(self) -> list[time]:
        minute, hour = self._fields()[:2]
        return [time(h, m) for h in sorted(_values(hour, 0, 23)) for m in sorted(_values(minute, 0, 59))]

    def years(self) -> set[int]:
        return _values(self._fields()[5], 1970, 2199)

    def _days(self, year: int, month: int) -> set[int]:
        _, _, day, months, weekday, _ = self._fields()
        if month not in _values(months, 1, 12, _MONTHS):
            return set()
        length = calendar.monthrange(year, month)[1]
        every = range(1, length + 1)
        if weekday == "?":
            if day == "L":
                return {length}
            if found := re.fullmatch(r"(\d+)W", day):
                return {_nearest(year, month, _number(found[1], 1, 31, []), length)}
            return _values(day, 1, 31) & set(every)

        def of_week(one: int) -> int:
            return date(year, month, one).isoweekday() % 7 + 1

        if found := re.fullmatch(r"(\w+?)L", weekday):
            wanted = _number(found[1], 1, 7, _WEEK)
            return {max(one for one in every if of_week(one) == wanted)}
        if found := re.fullmatch(r"(\w+)#([1-5])", weekday):
            same = [one for one in every if of_week(one) == _number(found[1], 1, 7, _WEEK)]
            return set(same[int(found[2]) - 1 : int(found[2])])
        wanted_days = _values(weekday, 1, 7, _WEEK)
        return {one for one in every if of_week(one) in wanted_days}

    def fires(self, zone: str, start: datetime, end: datetime) -> Iterator[datetime]:
        """The instants in (start, end], in UTC: a time that no clock shows is left out, a repeated one is
        taken once."""
        there = _zone(zone)
        at = start.date() - timedelta(days=2)
        while at <= end.date() + timedelta(days=2):
            if at.year in self.years() and at.day in self._days(at.year, at.month):
                for one in self.times():
                    local = datetime.combine(at, one, there)
                    instant = local.astimezone(UTC)
                    shown = instant.astimezone(there).replace(tzinfo=None) == local.replace(tzinfo=None)
                    if shown and start < instant <= end:
                        yield instant
            at += timedelta(days=1)


@cache
def _zone(name: str) -> ZoneInfo:
    """The zone of the pinned database, which the product reads too: the system's may be another release."""
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def _nearest(year: int, month: int, day: int, length: int) -> int:
    day = min(day, length)
    week = date(year, month, day).isoweekday()
    if week == 6:
        return day - 1 if day > 1 else day + 2
    if week == 7:
        return day + 1 if day < length else day - 2
    return day
