"""From the text of a contract to a schedule, or to the one fault that stands in its way.

The grammar is ours and strict; see `fields`. This module knows the dialects: how many fields, macros,
`cron(...)`, and which date fields are joined how.
"""

from __future__ import annotations

import re

from dq.contracts.schedule import fields
from dq.contracts.schedule.calendar_days import FreeDays
from dq.contracts.schedule.clock import Schedule
from dq.contracts.schedule.days import DayRule
from dq.contracts.schedule.fields import CronField, FieldError
from dq.contracts.schedule.words import Dialect, DstPolicy
from dq.contracts.schedule.zone import zone
from dq.contracts.shared.outcome import TextFault

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
    try:
        second, read = _fields(expression.strip(" \t\r\n"), dialect)
        rule = _day_rule(read, dialect)
    except FieldError as refused:
        return refused.fault
    if not rule.ever(calendar.due_on if calendar else None):
        return _never(expression, read, calendar)
    return Schedule(
        expression=expression,
        timezone=timezone,
        dialect=dialect,
        dst=policy,
        calendar=calendar,
        second=second,
        minute=read[0].plain,
        hour=read[1].plain,
        days=rule,
        wildcard=read[0].star or read[1].star,
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
    return second, tuple(fields.read(part, spec) for part, spec in zip(parts, fields.UNIX, strict=True))


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
        (value,) = fields.read(text, fields.SECOND).values
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
    read = tuple(fields.read(part, spec) for part, spec in zip(parts, fields.EVENTBRIDGE, strict=True))
    for mark, field in (("W", read[2]), ("#", read[4])):
        if mark in field.text.upper() and "," in field.text:
            raise FieldError(
                "EB_SPECIAL",
                f"{field.text!r} lists more than one value beside '{mark}', which EventBridge refuses.",
                f"Write the value with {mark} alone, and one schedule for each.",
            )
    return read


def _day_rule(read: tuple[CronField, ...], dialect: Dialect) -> DayRule:
    day, month, weekday = read[2:5]
    sunday = 1 if dialect is Dialect.EVENTBRIDGE else 0
    return DayRule(
        days=day.values,
        special_days=day.special_days,
        months=tuple(sorted(month.values)),
        weekdays=frozenset((value - sunday) % 7 for value in weekday.values),
        special_weekdays=weekday.special_weekdays,
        # Vixie cron looks at the first character only, so `*/2` joins with AND too.
        both=day.star or weekday.star,
        years=None if len(read) < 6 or read[5].text == "*" else read[5].values,
    )


def _never(expression: str, read: tuple[CronField, ...], calendar: FreeDays | None) -> TextFault:
    day, month, weekday = read[2:5]
    fields_said = f"day-of-month {day.text!r}, month {month.text!r} and day-of-week {weekday.text!r}"
    if calendar is not None:
        return TextFault(
            "CRON_NEVER",
            f"{expression!r} never comes on a day that the calendar leaves: {fields_said}.",
            "Let the calendar move or excuse such days, or write a date that it leaves.",
        )
    return TextFault(
        "CRON_NEVER",
        f"{expression!r} never comes: no date meets {fields_said}.",
        "Write a date that exists; L in the day-of-month field is the last day of any month.",
    )
