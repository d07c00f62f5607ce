"""Service levels as numbers that can be compared, and schedules by the instants at which they fire."""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from dq.contracts.extension import Delivery
from dq.contracts.odcs import SERVICE_LEVELS, time_unit
from dq.contracts.schedule.calendar import known
from dq.contracts.schedule.clock import Due, Schedule, parse
from dq.contracts.shared.outcome import TextFault, parse_duration
from dq.contracts.slo import schedule_of

# What a service level promises, as a number that can be compared: whatever its unit, offset or spelling.

# Source: "Valid Values for SLA Properties" of ODCS, which also says "latency, preferred to freshness".
_SYNONYMS = {
    "av": "availability",
    "th": "throughput",
    "er": "errorrate",
    "ga": "generalavailability",
    "es": "endofsupport",
    "el": "endoflife",
    "re": "retention",
    "fy": "frequency",
    "ly": "latency",
    "freshness": "latency",
    "td": "timetodetect",
    "tn": "timetonotify",
    "tr": "timetorepair",
    "ta": "timeofavailability",
}

_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
# A month and a year have no fixed length, so they match a number of days within this share of it.
_CIVIL_SECONDS = {"mo": 30.436875 * 86_400, "y": 365.2425 * 86_400}
_CIVIL_SLACK = 0.02
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?\s*(Z|[+-]\d{2}:?\d{2})?", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-z%]*)", re.ASCII | re.IGNORECASE)
# Frequencies that contracts spell as words.
_WORDS = {
    "hourly": ("1", "h"),
    "daily": ("1", "d"),
    "weekly": ("1", "w"),
    "monthly": ("1", "mo"),
    "quarterly": ("3", "mo"),
    "yearly": ("1", "y"),
    "annually": ("1", "y"),
}


@dataclass(frozen=True, slots=True)
class PromisedLevel:
    """A promised level: `measure` says in what (`seconds`, `instant`, `clock`, `percent`, a unit's name).

    `amount` is None for text that is no number. `civil` marks months and years.
    """

    measure: str
    amount: float | None
    text: str
    civil: bool = False


def name_of(property_: str) -> str:
    """The service level's name as ODCS writes it; an unknown one as it stands, lower case."""
    lower = re.sub(r"[\s_-]", "", property_).lower()
    known = SERVICE_LEVELS.get(_SYNONYMS.get(lower, lower))
    return known[0] if known else lower


def level(property_: str, value: object, unit: str | None) -> PromisedLevel:
    """The level of a service level property; never fails, what cannot be read is compared as text."""
    if isinstance(value, (dt.date, dt.datetime)):
        value = value.isoformat()
    text = str(value).strip()
    measured = _BY_NAME.get(name_of(property_), _quantity)(text, unit)
    return measured or PromisedLevel("text", None, f"{text} {unit or ''}".strip())


def compare_levels(first: PromisedLevel, second: PromisedLevel) -> int | None:
    """-1, 0 or 1 as the first is smaller, equal or larger; None when they cannot be compared."""
    if first.measure != second.measure or first.amount is None or second.amount is None:
        return 0 if first == second else None
    slack = _CIVIL_SLACK if first.civil != second.civil else 1e-9
    if abs(first.amount - second.amount) <= slack * max(abs(first.amount), abs(second.amount)):
        return 0
    return -1 if first.amount < second.amount else 1


def _quantity(text: str, unit: str | None) -> PromisedLevel | None:
    text, unit = _WORDS.get(text.lower(), (text, unit))
    match = _NUMBER.fullmatch(text)
    if match is None:
        return length(text.upper()) if unit is None and text.upper().startswith("P") else None
    amount, written = float(match[1]), (match[2] or unit or "").strip()
    if written.lower() in ("%", "percent", "pct"):
        return PromisedLevel("percent", amount, text)
    word = time_unit(written) or ("ms" if written.lower() in ("ms", "milliseconds") else None)
    if word in _CIVIL_SECONDS:
        return PromisedLevel("seconds", amount * _CIVIL_SECONDS[word], text, civil=True)
    if word in _SECONDS:
        return PromisedLevel("seconds", amount * _SECONDS[word], text)
    return PromisedLevel(written.lower(), amount, text)


def length(text: str) -> PromisedLevel | None:
    """The length of time that a text means, such as `2h` or `PT2H`; None for what is none."""
    duration = parse_duration(text)
    if isinstance(duration, TextFault):
        return None
    seconds = duration.months * _CIVIL_SECONDS["mo"] + duration.elapsed.total_seconds()
    return PromisedLevel("seconds", seconds, text, civil=bool(duration.months))


def _instant(text: str, unit: str | None) -> PromisedLevel | None:  # noqa: ARG001 - one shape for the table
    day = date_of(text)
    if day is None:
        return None
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return PromisedLevel(
            "instant", dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC).timestamp(), text
        )
    return PromisedLevel(
        "instant", (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp(), text
    )


def date_of(text: str) -> dt.date | None:
    """The date at the start of a text, or None."""
    try:
        return dt.date.fromisoformat(text.strip()[:10])
    except ValueError:
        return None


def _clock(text: str, unit: str | None) -> PromisedLevel | None:
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds, offset = match.groups()
    total = int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0)
    if offset and offset.upper() != "Z":
        sign = -1 if offset[0] == "-" else 1
        digits = offset[1:].replace(":", "")
        total -= sign * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)
    # A time without an offset is in the zone that `unit` may name; it is comparable with its like only.
    return PromisedLevel("clock" if offset else f"clock {unit or ''}".strip() + " local", float(total), text)


_BY_NAME: Mapping[str, Callable[[str, str | None], PromisedLevel | None]] = {
    "timeOfAvailability": _clock,
    "generalAvailability": _instant,
    "endOfSupport": _instant,
    "endOfLife": _instant,
}


# Two schedules compared by the instants at which they fire over a year, never by their text.

_YEAR = timedelta(days=366)


class Fires(StrEnum):
    """How the second schedule relates to the first."""

    SAME = "same"
    EARLIER = "earlier"  # at least as many deliveries on each day, none later
    LATER = "later"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Timing:
    """When a service level is due: the text, and what reads it."""

    text: str
    schedule: Schedule | None


def timing(text: str, delivery: Delivery | None) -> Timing:
    """The timing of a cron; without delivery terms it is read in UTC."""
    spelling = " ".join(text.split())
    if delivery is None:
        found = parse(spelling)
    else:
        found = schedule_of(spelling, delivery, delivery.calendar.days() if delivery.calendar else None)
    return Timing(spelling, None if isinstance(found, TextFault) else found)


def compare_timings(first: Timing, second: Timing, start: date) -> Fires:
    """The relation over the year from `start`. A text that is no schedule is only equal to itself."""
    if first == second:
        return Fires.SAME
    if first.schedule is None or second.schedule is None:
        return Fires.SAME if first.text == second.text and first.schedule == second.schedule else Fires.OTHER
    before, after = _dues(first.schedule, start), _dues(second.schedule, start)
    instants, instants_after = [due.at for due in before], [due.at for due in after]
    if instants == instants_after:
        return Fires.SAME
    # A day is a day of the first schedule's zone, on both sides: promises are kept per day.
    by_day, by_day_after = (
        _days(before, first.schedule, first.schedule),
        _days(after, second.schedule, first.schedule),
    )
    if _covers(by_day_after, by_day):
        return Fires.EARLIER
    if _covers(by_day, by_day_after):
        return Fires.LATER
    return _by_gap(instants, instants_after)


def _dues(schedule: Schedule, start: date) -> list[Due]:
    begin = datetime(start.year, start.month, start.day, tzinfo=UTC)
    dues = schedule.between(begin, begin + _YEAR)
    # What is excused is promised no more than what is not due; what was moved is promised beside what is due.
    return [due for due in dues if not schedule.excuse(due) for _ in schedule.origins(due)]


def _days(dues: list[Due], own: Schedule, first: Schedule) -> dict[date, list[datetime]]:
    there = known(first.timezone)
    days: dict[date, list[datetime]] = defaultdict(list)
    for due in dues:
        # The civil date is at hand in the schedule's own zone; making it anew costs far more.
        if own.timezone == first.timezone:
            days[due.nominal.date()].append(due.at)
        else:
            days[due.at.astimezone(there).date()].append(due.at)
    return days


def _covers(covering: dict[date, list[datetime]], covered: dict[date, list[datetime]]) -> bool:
    """Whether every delivery of `covered` has one of the same rank and day in `covering`, no later."""
    return all(
        len(covering.get(day, ())) >= len(instants)
        and all(own <= other for own, other in zip(covering[day], instants, strict=False))
        for day, instants in covered.items()
    )


def _by_gap(before: list[datetime], after: list[datetime]) -> Fires:
    longest, longest_after = _longest_gap(before), _longest_gap(after)
    if longest_after > longest and len(after) < len(before):
        return Fires.LATER
    if longest_after < longest and len(after) > len(before):
        return Fires.EARLIER
    return Fires.OTHER


def _longest_gap(instants: list[datetime]) -> timedelta:
    return max((later - earlier for earlier, later in pairwise(instants)), default=_YEAR)
