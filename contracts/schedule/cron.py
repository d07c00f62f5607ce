"""Strict parser of cron expressions: fields, dialects, and dates."""

from __future__ import annotations

import calendar
import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import lru_cache
from itertools import chain

from dq.contracts.outcome import ValueProblem
from dq.contracts.schedule.calendar import parse_zone


class Dialect(StrEnum):
    """Cron dialect of a schedule.

    `unix`: five fields. `seconds_first`: six fields, the first is one literal second. `eventbridge`:
    `cron(minute hour day month weekday year)` of AWS, in which Sunday is 1.
    """

    UNIX = "unix"
    SECONDS_FIRST = "seconds_first"
    EVENTBRIDGE = "eventbridge"


# Days of a schedule: the civil dates of a month that match its day, month, weekday and year fields.
#
# Days are sets of at most 31 numbers, combined with set operations. croniter is not used: it joins `*/2` and
# a weekday with OR where cron uses AND, takes `5-5` for the whole week and does not support `LW`.

LAST, LAST_WEEKDAY = 0, -1
"""Marks in `DayRule.special_days` for `L` and `LW`; a positive number n is `nW`."""

_FIRST_YEAR_OF_28 = 2000


@dataclass(frozen=True, slots=True)
class DayRule:
    """The four date fields of an expression, as values.

    `days` are 1..31 and `weekdays` are 0..6 with Sunday 0. `special_days` holds LAST, LAST_WEEKDAY or n
    for the working day nearest to n; `special_weekdays` holds (weekday, k) for the k-th such weekday of
    the month, with k = 0 for the last. `requires_both`: a date must match the day and the weekday field, else
    one is enough. `years` of None means every year.
    """

    days: frozenset[int]
    special_days: frozenset[int]
    months: tuple[int, ...]
    weekdays: frozenset[int]
    special_weekdays: frozenset[tuple[int, int]]
    requires_both: bool
    years: frozenset[int] | None = None

    @property
    def last_year(self) -> int:
        """The last year that can have a date; 9999 if the expression names no years."""
        return 9999 if self.years is None else max(self.years)

    def matches(self, day: date) -> bool:
        """Return True if a civil date matches the rule."""
        if day.month not in self.months:
            return False
        return any(midnight.date() == day for midnight in midnights(self, day.year, day.month))

    def has_any_date(self, due_on: Callable[[date], date | None] | None = None) -> bool:
        """Return True if any date matches the rule; `due_on` returns None for dates that a calendar skips."""
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
    """Return the dates of one of the rule's months, ascending, as naive civil midnights."""
    if rule.years is not None and year not in rule.years:
        return ()
    first, length = calendar.monthrange(year, month)
    month_days = {day for day in rule.days if day <= length}
    month_days.update(_special_day(mark, year, month, length) for mark in rule.special_days)
    # monthrange counts Monday as 0, cron counts Sunday as 0.
    by_weekday = {day for day in range(1, length + 1) if (first + day) % 7 in rule.weekdays}
    for weekday, nth in rule.special_weekdays:
        same_weekday = [day for day in range(1, length + 1) if (first + day) % 7 == weekday]
        by_weekday.update(same_weekday[-1:] if nth == 0 else same_weekday[nth - 1 : nth])
    matching = month_days & by_weekday if rule.requires_both else month_days | by_weekday
    return tuple(datetime(year, month, day) for day in sorted(matching))  # noqa: DTZ001 - civil


def _special_day(mark: int, year: int, month: int, length: int) -> int:
    """Return the day of `L`, `LW` or `nW`; the nearest working day never leaves the month."""
    day = length if mark in (LAST, LAST_WEEKDAY) else mark
    weekday = date(year, month, day).weekday()
    if mark == LAST or weekday < 5:
        return day
    if mark == LAST_WEEKDAY:
        return day - (weekday - 4)
    if weekday == 5:
        return day - 1 if day > 1 else day + 2
    return day + 1 if day < length else day - 2


# One field of a cron expression: lists, ranges, steps and names, read strictly.
#
# Where cron implementations disagree (descending ranges, `5/15`, steps larger than the field, `31W`) the text
# is rejected, and the message suggests a spelling that all of them support.

_MONTHS = {
    name: n
    for n, name in enumerate("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), 1)  # noqa: SIM905
}
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """Allowed values of a field. `sunday` is the number of Sunday in a weekday field."""

    name: str
    low: int
    high: int
    names: Mapping[str, int]
    code: str = "CRON_RANGE"
    days: bool = False
    weekdays: bool = False
    nearest: bool = False
    start_with_step: bool = False
    hint: str = ""
    sunday: int = 0


SECOND = FieldSpec("second", 0, 59, {})
MINUTE = FieldSpec("minute", 0, 59, {})
HOUR = FieldSpec("hour", 0, 23, {}, hint="; midnight is 0")
DAY = FieldSpec("day-of-month", 1, 31, {}, days=True)
MONTH = FieldSpec("month", 1, 12, _MONTHS)
WEEKDAY = FieldSpec("day-of-week", 0, 7, {name: n for n, name in enumerate(WEEKDAYS)}, weekdays=True)
UNIX = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)

EVENTBRIDGE = (
    FieldSpec("minute", 0, 59, {}, start_with_step=True),
    FieldSpec("hour", 0, 23, {}, start_with_step=True),
    FieldSpec("day-of-month", 1, 31, {}, days=True, nearest=True, start_with_step=True),
    FieldSpec("month", 1, 12, _MONTHS, start_with_step=True),
    FieldSpec(
        "day-of-week",
        1,
        7,
        {name: n for n, name in enumerate(WEEKDAYS, 1)},
        "EB_DOW",
        weekdays=True,
        sunday=1,
        hint="; in EventBridge 1 is SUN and 7 is SAT",
    ),
    FieldSpec("year", 1970, 2199, {}, start_with_step=True),
)


@dataclass(frozen=True, slots=True)
class CronField:
    """A parsed field: `ranges` of (low, high, step), and the marks that depend on the month."""

    text: str
    star: bool
    ranges: tuple[tuple[int, int, int], ...] = ()
    special_days: frozenset[int] = frozenset()
    special_weekdays: frozenset[tuple[int, int]] = frozenset()

    @property
    def values(self) -> frozenset[int]:
        """All plain values of the field."""
        return frozenset(chain(*(range(low, high + 1, step) for low, high, step in self.ranges)))

    @property
    def numeric_text(self) -> str:
        """The ranges as text, without names, `*`, or ranges from a value to itself."""
        return ",".join(
            f"{low}" if low == high else f"{low}-{high}/{step}" for low, high, step in self.ranges
        )


_STAR = re.compile(r"\*(?:/(\d+))?", re.ASCII)
_RANGE = re.compile(r"(\d+|[A-Z]+)(?:-(\d+|[A-Z]+))?(?:/(\d+))?", re.ASCII)
_HASH = re.compile(r"[HR](?:\(.*\))?(?:/\d+)?|\d*~\d*", re.ASCII)
_NEAREST = re.compile(r"(\d+)W", re.ASCII)
_LAST_SAME = re.compile(r"(\d|[A-Z]{3})L", re.ASCII)
_NTH = re.compile(r"(\d|[A-Z]{3})#(\d+)", re.ASCII)


class CronFieldError(Exception):
    """Problem of a field; `parse` catches it and returns the problem."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.problem = ValueProblem(code, message, hint)


def read_field(text: str, spec: FieldSpec) -> CronField:
    """Parse a field. Raises CronFieldError."""
    items = text.upper().split(",")
    parts = [_item(item, text, spec) for item in items]
    return CronField(
        text,
        text.startswith("*"),
        tuple(chain(*(part.ranges for part in parts))),
        frozenset().union(*(part.special_days for part in parts)),
        frozenset().union(*(part.special_weekdays for part in parts)),
    )


def _item(item: str, text: str, spec: FieldSpec) -> CronField:
    if "?" in item:
        raise CronFieldError(
            "CRON_QUESTION",
            f"'?' in the {spec.name} field {text!r} belongs to Quartz and AWS, not to unix cron.",
            "Write * instead of ?, or set `dialect: eventbridge` and write cron(...).",
        )
    if _HASH.fullmatch(item):
        raise CronFieldError(
            "CRON_HASH",
            f"{item!r} in the {spec.name} field is a random or hashed value.",
            f"Write a fixed {spec.name}, so that consumers know when data is due.",
        )
    if star := _STAR.fullmatch(item):
        step = _step(star[1], spec.low, spec.high, text, spec)
        return CronField(item, True, ((spec.low, spec.high, step),))
    if special_field := _special_item(item, text, spec):
        return special_field
    match = _RANGE.fullmatch(item)
    if match is None:
        raise _invalid_item(item, text, spec)
    return CronField(item, False, (_range(match, text, spec),))


def _range(match: re.Match[str], text: str, spec: FieldSpec) -> tuple[int, int, int]:
    low = _value(match[1], text, spec)
    if match[2] is None and match[3] is None:
        return low, low, 1
    if match[2] is None:
        if not spec.start_with_step:
            raise CronFieldError(
                "CRON_STEP",
                f"{match[0]!r} in the {spec.name} field has a step but no range, which is ambiguous.",
                f"Write {low}-{spec.high}/{match[3]}.",
            )
        return low, spec.high, _step(match[3], low, spec.high, text, spec)
    high = _value(match[2], text, spec)
    if low > high:
        raise CronFieldError(
            spec.code if spec.code != "EB_DOW" else "CRON_RANGE",
            f"Range {match[1]}-{match[2]} in the {spec.name} field {text!r} is reversed.",
            f"Write {_split_descending(low, high, spec)}.",
        )
    return low, high, _step(match[3], low, high, text, spec)


def _split_descending(low: int, high: int, spec: FieldSpec) -> str:
    """Return a descending range as two ascending ones; in a unix weekday field 7 is Sunday, too."""
    first = spec.low + 1 if spec.high == 7 and spec.low == 0 else spec.low
    pairs = [(low, spec.high), (first, high)]
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in pairs if a <= b)


def _step(step: str | None, low: int, high: int, text: str, spec: FieldSpec) -> int:
    if step is None:
        return 1
    number = int(step)
    if number == 0 or (number > 1 and number > high - low):
        raise CronFieldError(
            "CRON_STEP",
            f"Step {step} in the {spec.name} field {text!r} "
            + ("must not be 0." if number == 0 else f"is larger than the range {low}-{high}."),
            f"Write a step from 1 to {max(high - low, 1)}, or the value {low} alone.",
        )
    return number


def _value(word: str, text: str, spec: FieldSpec) -> int:
    if word.isdecimal():
        number = int(word) if len(word) < 6 else spec.high + 1
        if spec.low <= number <= spec.high:
            return number
        raise CronFieldError(
            spec.code,
            f"{spec.name} {word} is out of range ({spec.low}–{spec.high}) in {text!r}.",
            f"Write a number from {spec.low} to {spec.high}{spec.hint}.",
        )
    if word in spec.names:
        return spec.names[word]
    suggestions = difflib.get_close_matches(word, spec.names, 1, 0.5) or [
        name for name in spec.names if word.startswith(name)
    ]
    raise CronFieldError(
        "CRON_NAME",
        f"{word!r} in the {spec.name} field {text!r} is not a known name.",
        f"Write {suggestions[0]}." if suggestions else _allowed_hint(spec),
    )


def _special_item(item: str, text: str, spec: FieldSpec) -> CronField | None:
    """Parse `L`, `LW`, `nW`, `nL` and `n#k`, each only in the field it belongs to."""
    if spec.days and item in ("L", "LW"):
        return CronField(item, False, special_days=frozenset({LAST if item == "L" else LAST_WEEKDAY}))
    if spec.days and (match := _NEAREST.fullmatch(item)):
        return _nearest_weekday(match, text, spec)
    if spec.weekdays and item == "L":
        raise CronFieldError(
            "CRON_SPECIAL",
            "'L' alone in the day-of-week field can mean Saturday or the last day of the month.",
            f"Write SAT for Saturday, or add a weekday: {5 + spec.sunday}L is the last Friday of a month.",
        )
    if spec.weekdays and (last := _LAST_SAME.fullmatch(item)):
        weekday = _value(last[1], text, spec)
        return CronField(item, False, special_weekdays=frozenset({((weekday - spec.sunday) % 7, 0)}))
    if spec.weekdays and (nth := _NTH.fullmatch(item)):
        weekday = _value(nth[1], text, spec)
        if not 1 <= int(nth[2]) <= 5:
            raise CronFieldError(
                "CRON_SPECIAL",
                f"{item!r} in the day-of-week field asks for occurrence {nth[2]}; a month has 1 to 5.",
                f"Write {nth[1]}#1 to {nth[1]}#5, or {nth[1]}L for the last.",
            )
        return CronField(
            item, False, special_weekdays=frozenset({((weekday - spec.sunday) % 7, int(nth[2]))})
        )
    return None


def _nearest_weekday(match: re.Match[str], text: str, spec: FieldSpec) -> CronField:
    if not spec.nearest:
        raise CronFieldError(
            "CRON_SPECIAL",
            f"{match[0]!r} (nearest working day) in the day-of-month field is not supported by unix cron.",
            "Write LW for the last working day, or set `dialect: eventbridge` and write cron(...).",
        )
    day = _value(match[1], text, spec)
    if day > 28:
        raise CronFieldError(
            "CRON_SPECIAL",
            f"{match[0]!r} is undefined in months without a day {day}.",
            "Write LW for the last working day of the month.",
        )
    return CronField(match[0], False, special_days=frozenset({day}))


def _invalid_item(item: str, text: str, spec: FieldSpec) -> CronFieldError:
    subject = f"{item!r} in the {spec.name} field {text!r}" if item else f"An empty entry in {text!r}"
    return CronFieldError("CRON_VALUE", f"{subject} is not a {spec.name}.", _allowed_hint(spec))


def _allowed_hint(spec: FieldSpec) -> str:
    names = f" or names {', '.join(spec.names)}" if spec.names else ""
    return f"Write numbers {spec.low}-{spec.high}{names}, ranges a-b, lists a,b, steps */n or a-b/n."


# Whole expressions: number of fields per dialect, macros, `cron(...)`, and combination of date fields.

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_AWS = re.compile(r"cron\((.*)\)", re.ASCII | re.IGNORECASE)
_BLANK = re.compile(r"[ \t]+", re.ASCII)
_MAX_LENGTH = 500


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression. `minute` and `hour` are rewritten to plain numbers.

    `wildcard` is True if one of those two started with `*`. `dates` describes the date fields as written.
    """

    second: int
    minute: str
    hour: str
    wildcard: bool
    days: DayRule
    dates: str


def parse(text: str, dialect: Dialect) -> Expression | ValueProblem:
    """Parse an expression of a dialect; return it or the first problem found."""
    try:
        second, fields = _fields(text, dialect)
    except CronFieldError as error:
        return error.problem
    minute, hour, day, month, weekday = fields[:5]
    return Expression(
        second,
        minute.numeric_text,
        hour.numeric_text,
        minute.star or hour.star,
        _day_rule(fields, dialect),
        f"day-of-month {day.text!r}, month {month.text!r} and day-of-week {weekday.text!r}",
    )


def _fields(text: str, dialect: Dialect) -> tuple[int, tuple[CronField, ...]]:
    if len(text) > _MAX_LENGTH:
        raise CronFieldError(
            "CRON_LONG", f"The schedule has {len(text)} characters.", f"Write at most {_MAX_LENGTH}."
        )
    if dialect is Dialect.EVENTBRIDGE:
        return 0, _eventbridge(text)
    _reject_other_dialects(text, dialect)
    parts = _BLANK.split(_macro(text) if text.startswith("@") else text)
    second = 0
    if dialect is Dialect.SECONDS_FIRST and not text.startswith("@"):
        _check_field_count(parts, text, 6, "seconds_first: second minute hour day-of-month month day-of-week")
        second, parts = _second(parts[0]), parts[1:]
    _check_field_count(parts, text, 5, "unix: minute hour day-of-month month day-of-week")
    _reject_swapped(parts, text)
    return second, tuple(read_field(part, spec) for part, spec in zip(parts, UNIX, strict=True))


def _reject_other_dialects(text: str, dialect: Dialect) -> None:
    """Reject expressions of other tools, with a hint how to convert them."""
    if not text.split():
        raise CronFieldError("CRON_FIELDS", "The schedule is empty.", "Write five fields, e.g. 0 6 * * *.")
    if text.lower().startswith(("cron(", "rate(")):
        raise CronFieldError(
            "CRON_DIALECT",
            f"{text!r} is an AWS expression, but the dialect is {dialect.value}.",
            "Set `dialect: eventbridge`.",
        )
    if "=" in text.split()[0]:
        raise CronFieldError(
            "CRON_ZONE",
            f"{text.split()[0]!r} in front of the schedule is not part of it.",
            "Set the zone in `timezone`.",
        )


def _macro(text: str) -> str:
    if expansion := MACROS.get(text.lower()):
        return expansion
    reason = (
        "has no scheduled time: it runs when a machine boots."
        if text == "@reboot"
        else "is not a cron macro."
    )
    raise CronFieldError(
        "CRON_MACRO", f"{text!r} {reason}", f"Write five fields, or one of {', '.join(MACROS)}."
    )


def _check_field_count(parts: list[str], text: str, expected: int, layout: str) -> None:
    if len(parts) == expected:
        return
    hint = f"Write {expected} fields, {layout}."
    if expected == 5 and len(parts) == 6 and not isinstance(parse_zone(parts[-1]), ValueProblem):
        hint = f"Set the zone in `timezone`. {hint}"
    elif expected == 5 and len(parts) == 6:
        hint = f"Remove the seconds, or set `dialect: seconds_first`. {hint}"
    raise CronFieldError("CRON_FIELDS", f"{text!r} has {len(parts)} field{'s' * (len(parts) != 1)}.", hint)


def _second(text: str) -> int:
    if text.isascii() and text.isdecimal():
        (value,) = read_field(text, SECOND).values
        return value
    raise CronFieldError(
        "CRON_TOO_FREQUENT",
        f"second {text!r} means more than one delivery per minute.",
        "Write a single second, e.g. 0.",
    )


def _reject_swapped(parts: list[str], text: str) -> None:
    """Reject swapped minute and hour as in `0 30 * * *`, which even the ODCS standard shows."""
    minute, hour = parts[0], parts[1]
    if not (minute.isdecimal() and hour.isdecimal() and len(hour) < 3):
        return
    if 24 < int(hour) <= 59 and int(minute) <= 23:
        swapped = " ".join((hour, minute, *parts[2:]))
        raise CronFieldError(
            "CRON_RANGE",
            f"hour {hour} is out of range (0–23) in {text!r}.",
            f"The first field is the minute. Did you mean {swapped!r}?",
        )


def _eventbridge(text: str) -> tuple[CronField, ...]:
    match = _AWS.fullmatch(text)
    if match is None:
        raise CronFieldError(
            "EB_RATE" if text.lower().startswith("rate(") else "EB_FIELDS",
            f"{text!r} is not of the form cron(...).",
            "Write cron(minute hour day-of-month month day-of-week year), e.g. cron(0 6 * * ? *).",
        )
    parts = _BLANK.split(match[1].strip(" \t"))
    if len(parts) != 6:
        raise CronFieldError(
            "EB_FIELDS",
            f"{text!r} has {len(parts)} fields, but EventBridge requires six.",
            "Write cron(minute hour day-of-month month day-of-week year); the year is usually *.",
        )
    if (parts[2] == "?") == (parts[4] == "?"):
        raise CronFieldError(
            "EB_DOM_DOW",
            f"Day-of-month {parts[2]!r} and day-of-week {parts[4]!r} in {text!r}: exactly one must be '?'.",
            "Write ? for the one that does not matter.",
        )
    parts = ["*" if part == "?" and index in (2, 4) else part for index, part in enumerate(parts)]
    fields = tuple(read_field(part, spec) for part, spec in zip(parts, EVENTBRIDGE, strict=True))
    for mark, field in (("W", fields[2]), ("#", fields[4])):
        if mark in field.text.upper() and "," in field.text:
            raise CronFieldError(
                "EB_SPECIAL",
                f"{field.text!r} combines '{mark}' with other values, which EventBridge rejects.",
                f"Write only the value with {mark}, and one schedule for each value.",
            )
    return fields


def _day_rule(fields: tuple[CronField, ...], dialect: Dialect) -> DayRule:
    day, month, weekday = fields[2:5]
    sunday = 1 if dialect is Dialect.EVENTBRIDGE else 0
    return DayRule(
        days=day.values,
        special_days=day.special_days,
        months=tuple(sorted(month.values)),
        weekdays=frozenset((value - sunday) % 7 for value in weekday.values),
        special_weekdays=weekday.special_weekdays,
        # Vixie cron checks the first character only, so `*/2` is joined with AND, too.
        requires_both=day.star or weekday.star,
        years=None if len(fields) < 6 or fields[5].text == "*" else fields[5].values,
    )
