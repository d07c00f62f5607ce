"""Cron expressions read strictly: their fields, their dialects, and the dates that they name."""

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

from dq.contracts.outcome import TextFault


class Dialect(StrEnum):
    """Which cron a schedule is written in.

    `unix`: five fields. `seconds_first`: six fields, the first is one literal second. `eventbridge`:
    `cron(minute hour day month weekday year)` of AWS, in which Sunday is 1.
    """

    UNIX = "unix"
    SECONDS_FIRST = "seconds_first"
    EVENTBRIDGE = "eventbridge"


# The days of a schedule: which civil dates of a month its day, month, weekday and year fields name.
#
# Days are sets of at most 31 numbers, so the set operation itself is the clearest form. croniter is not
# asked: it joins `*/2` and a weekday with OR where cron says AND, takes `5-5` for the whole week and knows
# no `LW`.

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


# One field of a cron expression: lists, ranges, steps and names, read strictly.
#
# Where cron programs disagree (descending ranges, `5/15`, steps larger than the field, `31W`) the text is
# refused with the spelling that all of them read alike.

_MONTHS = {
    name: n
    for n, name in enumerate("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), 1)  # noqa: SIM905
}
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True, slots=True)
class Spec:
    """What a field may hold. `sunday` is the number of Sunday in a weekday field."""

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


SECOND = Spec("second", 0, 59, {})
MINUTE = Spec("minute", 0, 59, {})
HOUR = Spec("hour", 0, 23, {}, hint="; midnight is 0")
DAY = Spec("day-of-month", 1, 31, {}, days=True)
MONTH = Spec("month", 1, 12, _MONTHS)
WEEKDAY = Spec("day-of-week", 0, 7, {name: n for n, name in enumerate(WEEKDAYS)}, weekdays=True)
UNIX = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)

EVENTBRIDGE = (
    Spec("minute", 0, 59, {}, start_with_step=True),
    Spec("hour", 0, 23, {}, start_with_step=True),
    Spec("day-of-month", 1, 31, {}, days=True, nearest=True, start_with_step=True),
    Spec("month", 1, 12, _MONTHS, start_with_step=True),
    Spec(
        "day-of-week",
        1,
        7,
        {name: n for n, name in enumerate(WEEKDAYS, 1)},
        "EB_DOW",
        weekdays=True,
        sunday=1,
        hint="; in EventBridge 1 is SUN and 7 is SAT",
    ),
    Spec("year", 1970, 2199, {}, start_with_step=True),
)


@dataclass(frozen=True, slots=True)
class CronField:
    """A field as read: `ranges` of (low, high, step), and the marks that only a month can resolve."""

    text: str
    star: bool
    ranges: tuple[tuple[int, int, int], ...] = ()
    special_days: frozenset[int] = frozenset()
    special_weekdays: frozenset[tuple[int, int]] = frozenset()

    @property
    def values(self) -> frozenset[int]:
        """Every plain value of the field."""
        return frozenset(chain(*(range(low, high + 1, step) for low, high, step in self.ranges)))

    @property
    def plain(self) -> str:
        """The ranges again, without names, `*`, or ranges from a value to itself."""
        return ",".join(
            f"{low}" if low == high else f"{low}-{high}/{step}" for low, high, step in self.ranges
        )


_STAR = re.compile(r"\*(?:/(\d+))?", re.ASCII)
_RANGE = re.compile(r"(\d+|[A-Z]+)(?:-(\d+|[A-Z]+))?(?:/(\d+))?", re.ASCII)
_HASH = re.compile(r"[HR](?:\(.*\))?(?:/\d+)?|\d*~\d*", re.ASCII)
_NEAREST = re.compile(r"(\d+)W", re.ASCII)
_LAST_SAME = re.compile(r"(\d|[A-Z]{3})L", re.ASCII)
_NTH = re.compile(r"(\d|[A-Z]{3})#(\d+)", re.ASCII)


class FieldError(Exception):
    """Carries a fault out of the depth of one expression; it leaves `read` alone."""

    def __init__(self, code: str, message: str, mend: str) -> None:
        super().__init__(message)
        self.fault = TextFault(code, message, mend)


def read(text: str, spec: Spec) -> CronField:
    """The field a text means; raises FieldError."""
    items = text.upper().split(",")
    parts = [_item(item, text, spec) for item in items]
    return CronField(
        text,
        text.startswith("*"),
        tuple(chain(*(part.ranges for part in parts))),
        frozenset().union(*(part.special_days for part in parts)),
        frozenset().union(*(part.special_weekdays for part in parts)),
    )


def _item(item: str, text: str, spec: Spec) -> CronField:
    if "?" in item:
        raise FieldError(
            "CRON_QUESTION",
            f"'?' in the {spec.name} field {text!r} belongs to Quartz and AWS, not to unix cron.",
            "Write * instead of ?, or set `dialect: eventbridge` and write cron(...).",
        )
    if _HASH.fullmatch(item):
        raise FieldError(
            "CRON_HASH",
            f"{item!r} in the {spec.name} field stands for a random or hashed value.",
            f"Write the {spec.name} itself: consumers must be able to read a promise.",
        )
    if star := _STAR.fullmatch(item):
        step = _step(star[1], spec.low, spec.high, text, spec)
        return CronField(item, True, ((spec.low, spec.high, step),))
    if special := _special(item, text, spec):
        return special
    plain = _RANGE.fullmatch(item)
    if plain is None:
        raise _unreadable(item, text, spec)
    return CronField(item, False, (_range(plain, text, spec),))


def _range(found: re.Match[str], text: str, spec: Spec) -> tuple[int, int, int]:
    low = _value(found[1], text, spec)
    if found[2] is None and found[3] is None:
        return low, low, 1
    if found[2] is None:
        if not spec.start_with_step:
            raise FieldError(
                "CRON_STEP",
                f"{found[0]!r} in the {spec.name} field has a step and no range; crons differ on it.",
                f"Write {low}-{spec.high}/{found[3]}.",
            )
        return low, spec.high, _step(found[3], low, spec.high, text, spec)
    high = _value(found[2], text, spec)
    if low > high:
        raise FieldError(
            spec.code if spec.code != "EB_DOW" else "CRON_RANGE",
            f"Range {found[1]}-{found[2]} in the {spec.name} field {text!r} runs backwards.",
            f"Write {_unwrapped(low, high, spec)}.",
        )
    return low, high, _step(found[3], low, high, text, spec)


def _unwrapped(low: int, high: int, spec: Spec) -> str:
    """A descending range as two ascending ones; 7 is Sunday again in a unix weekday field."""
    first = spec.low + 1 if spec.high == 7 and spec.low == 0 else spec.low
    pairs = [(low, spec.high), (first, high)]
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in pairs if a <= b)


def _step(step: str | None, low: int, high: int, text: str, spec: Spec) -> int:
    if step is None:
        return 1
    number = int(step)
    if number == 0 or (number > 1 and number > high - low):
        raise FieldError(
            "CRON_STEP",
            f"Step {step} in the {spec.name} field {text!r} "
            + ("never moves." if number == 0 else f"is larger than the range {low}-{high}."),
            f"Write a step from 1 to {max(high - low, 1)}, or the value {low} alone.",
        )
    return number


def _value(word: str, text: str, spec: Spec) -> int:
    if word.isdecimal():
        number = int(word) if len(word) < 6 else spec.high + 1
        if spec.low <= number <= spec.high:
            return number
        raise FieldError(
            spec.code,
            f"{spec.name} {word} in {text!r} is out of {spec.low}-{spec.high}.",
            f"Write a number from {spec.low} to {spec.high}{spec.hint}.",
        )
    if word in spec.names:
        return spec.names[word]
    near = difflib.get_close_matches(word, spec.names, 1, 0.5) or [
        name for name in spec.names if word.startswith(name)
    ]
    raise FieldError(
        "CRON_NAME",
        f"{word!r} in the {spec.name} field {text!r} is no name that cron knows.",
        f"Write {near[0]}." if near else _allowed(spec),
    )


def _special(item: str, text: str, spec: Spec) -> CronField | None:
    """`L`, `LW`, `nW`, `nL`, `n#k`, each only in the field it belongs to."""
    if spec.days and item in ("L", "LW"):
        return CronField(item, False, special_days=frozenset({LAST if item == "L" else LAST_WEEKDAY}))
    if spec.days and (near := _NEAREST.fullmatch(item)):
        return _nearest_weekday(near, text, spec)
    if spec.weekdays and item == "L":
        raise FieldError(
            "CRON_SPECIAL",
            "'L' alone in the day-of-week field can be read as Saturday or as the last day of the month.",
            f"Write SAT for Saturday, or a day before it: {5 + spec.sunday}L is the last Friday of a month.",
        )
    if spec.weekdays and (last := _LAST_SAME.fullmatch(item)):
        weekday = _value(last[1], text, spec)
        return CronField(item, False, special_weekdays=frozenset({((weekday - spec.sunday) % 7, 0)}))
    if spec.weekdays and (nth := _NTH.fullmatch(item)):
        weekday = _value(nth[1], text, spec)
        if not 1 <= int(nth[2]) <= 5:
            raise FieldError(
                "CRON_SPECIAL",
                f"{item!r} in the day-of-week field asks for occurrence {nth[2]}; a month has 1 to 5.",
                f"Write {nth[1]}#1 to {nth[1]}#5, or {nth[1]}L for the last.",
            )
        return CronField(
            item, False, special_weekdays=frozenset({((weekday - spec.sunday) % 7, int(nth[2]))})
        )
    return None


def _nearest_weekday(found: re.Match[str], text: str, spec: Spec) -> CronField:
    if not spec.nearest:
        raise FieldError(
            "CRON_SPECIAL",
            f"{found[0]!r} (nearest working day) in the day-of-month field is not unix cron.",
            "Write LW for the last working day, or set `dialect: eventbridge` and write cron(...).",
        )
    day = _value(found[1], text, spec)
    if day > 28:
        raise FieldError(
            "CRON_SPECIAL",
            f"{found[0]!r} does not say what happens in a month without a day {day}.",
            "Write LW for the last working day of the month.",
        )
    return CronField(found[0], False, special_days=frozenset({day}))


def _unreadable(item: str, text: str, spec: Spec) -> FieldError:
    found = f"{item!r} in the {spec.name} field {text!r}" if item else f"An empty entry in {text!r}"
    return FieldError("CRON_VALUE", f"{found} is not a {spec.name}.", _allowed(spec))


def _allowed(spec: Spec) -> str:
    names = f" or names {', '.join(spec.names)}" if spec.names else ""
    return f"Write numbers {spec.low}-{spec.high}{names}, ranges a-b, lists a,b, steps */n or a-b/n."


# A whole expression: how many fields each dialect has, macros, `cron(...)`, and how date fields are joined.

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
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression as read. `minute` and `hour` are rewritten to plain numbers.

    `wildcard`: one of those two started with `*`. `dates` names the fields of the date as they are written.
    """

    second: int
    minute: str
    hour: str
    wildcard: bool
    days: DayRule
    dates: str


def parse(text: str, dialect: Dialect) -> Expression | TextFault:
    """The expression that a text means in a dialect, or the first fault found."""
    try:
        second, fields = _fields(text, dialect)
    except FieldError as refused:
        return refused.fault
    minute, hour, day, month, weekday = fields[:5]
    return Expression(
        second,
        minute.plain,
        hour.plain,
        minute.star or hour.star,
        _day_rule(fields, dialect),
        f"day-of-month {day.text!r}, month {month.text!r} and day-of-week {weekday.text!r}",
    )


def _fields(text: str, dialect: Dialect) -> tuple[int, tuple[CronField, ...]]:
    if len(text) > _LONGEST:
        raise FieldError(
            "CRON_LONG", f"The schedule has {len(text)} characters.", f"Write at most {_LONGEST}."
        )
    if dialect is Dialect.EVENTBRIDGE:
        return 0, _eventbridge(text)
    _refuse_foreign(text, dialect)
    parts = _BLANK.split(_macro(text) if text.startswith("@") else text)
    second = 0
    if dialect is Dialect.SECONDS_FIRST and not text.startswith("@"):
        _refuse_count(parts, text, 6, "seconds_first: second minute hour day-of-month month day-of-week")
        second, parts = _second(parts[0]), parts[1:]
    _refuse_count(parts, text, 5, "unix: minute hour day-of-month month day-of-week")
    _refuse_swapped(parts, text)
    return second, tuple(read(part, spec) for part, spec in zip(parts, UNIX, strict=True))


def _refuse_foreign(text: str, dialect: Dialect) -> None:
    """Texts of another tool, each with its way home."""
    if not text.split():
        raise FieldError("CRON_FIELDS", "The schedule is empty.", "Write five fields, such as 0 6 * * *.")
    if text.lower().startswith(("cron(", "rate(")):
        raise FieldError(
            "CRON_DIALECT",
            f"{text!r} is an AWS expression, and the dialect is {dialect.value}.",
            "Set `dialect: eventbridge`.",
        )
    if "=" in text.split()[0]:
        raise FieldError(
            "CRON_ZONE",
            f"{text.split()[0]!r} in front of the schedule is not part of it.",
            "Write the zone in the field `timezone`.",
        )


def _macro(text: str) -> str:
    if expansion := MACROS.get(text.lower()):
        return expansion
    reason = (
        "has no time on the clock: it runs when a machine starts."
        if text == "@reboot"
        else "is no macro of cron."
    )
    raise FieldError("CRON_MACRO", f"{text!r} {reason}", f"Write five fields, or one of {', '.join(MACROS)}.")


def _refuse_count(parts: list[str], text: str, wanted: int, form: str) -> None:
    if len(parts) == wanted:
        return
    mend = f"Write {wanted} fields, {form}."
    if wanted == 5 and len(parts) == 6:
        mend = f"Leave the seconds out, or set `dialect: seconds_first`. {mend}"
    raise FieldError("CRON_FIELDS", f"{text!r} has {len(parts)} field{'s' * (len(parts) != 1)}.", mend)


def _second(text: str) -> int:
    if text.isascii() and text.isdecimal():
        (value,) = read(text, SECOND).values
        return value
    raise FieldError(
        "CRON_TOO_FREQUENT",
        f"Second {text!r} asks for more than one delivery a minute.",
        "Write one literal second, such as 0.",
    )


def _refuse_swapped(parts: list[str], text: str) -> None:
    """`0 30 * * *`, which even the ODCS standard shows: minute and hour changed places."""
    minute, hour = parts[0], parts[1]
    if not (minute.isdecimal() and hour.isdecimal() and len(hour) < 3):
        return
    if 24 < int(hour) <= 59 and int(minute) <= 23:
        swapped = " ".join((hour, minute, *parts[2:]))
        raise FieldError(
            "CRON_RANGE",
            f"hour {hour} in {text!r} is out of 0-23.",
            f"The minute stands first: perhaps {swapped!r} was meant.",
        )


def _eventbridge(text: str) -> tuple[CronField, ...]:
    wrapped = _AWS.fullmatch(text)
    if wrapped is None:
        raise FieldError(
            "EB_RATE" if text.lower().startswith("rate(") else "EB_FIELDS",
            f"{text!r} is not of the form cron(...).",
            "Write cron(minute hour day-of-month month day-of-week year), such as cron(0 6 * * ? *).",
        )
    parts = _BLANK.split(wrapped[1].strip(" \t"))
    if len(parts) != 6:
        raise FieldError(
            "EB_FIELDS",
            f"{text!r} has {len(parts)} fields, EventBridge wants six.",
            "Write cron(minute hour day-of-month month day-of-week year); the year is mostly *.",
        )
    if (parts[2] == "?") == (parts[4] == "?"):
        raise FieldError(
            "EB_DOM_DOW",
            f"Day-of-month {parts[2]!r} and day-of-week {parts[4]!r} in {text!r}: exactly one must be '?'.",
            "Write ? for the one that does not matter.",
        )
    parts = ["*" if part == "?" and index in (2, 4) else part for index, part in enumerate(parts)]
    fields = tuple(read(part, spec) for part, spec in zip(parts, EVENTBRIDGE, strict=True))
    for mark, field in (("W", fields[2]), ("#", fields[4])):
        if mark in field.text.upper() and "," in field.text:
            raise FieldError(
                "EB_SPECIAL",
                f"{field.text!r} lists more than one value beside '{mark}', which EventBridge refuses.",
                f"Write the value with {mark} alone, and one schedule for each.",
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
        # Vixie cron looks at the first character only, so `*/2` joins with AND too.
        both=day.star or weekday.star,
        years=None if len(fields) < 6 or fields[5].text == "*" else fields[5].values,
    )
