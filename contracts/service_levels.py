"""Service levels as comparable numbers, regardless of unit, offset or spelling."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dq.contracts.odcs import SERVICE_LEVELS, time_unit
from dq.contracts.outcome import ValueProblem, parse_duration

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
class ServiceLevel:
    """A promised level: `measure` is its dimension (`seconds`, `instant`, `clock`, `percent`, a unit's name).

    `amount` is None for text that is not a number. `civil` marks months and years.
    """

    measure: str
    amount: float | None
    text: str
    civil: bool = False


def service_level_name(property_: str) -> str:
    """Return the service level's name as ODCS writes it; an unknown one as written, in lower case."""
    lower = re.sub(r"[\s_-]", "", property_).lower()
    names = SERVICE_LEVELS.get(_SYNONYMS.get(lower, lower))
    return names[0] if names else lower


def parse_level(property_: str, value: object, unit: str | None) -> ServiceLevel:
    """Return the level of a service level property. Never fails: unparsable values are compared as text."""
    if isinstance(value, (dt.date, dt.datetime)):
        value = value.isoformat()
    text = str(value).strip()
    parsed = _BY_NAME.get(service_level_name(property_), _quantity)(text, unit)
    return parsed or ServiceLevel("text", None, f"{text} {unit or ''}".strip())


def compare_levels(first: ServiceLevel, second: ServiceLevel) -> int | None:
    """Return -1, 0 or 1 if the first is smaller, equal or larger, or None if they are not comparable."""
    if first.measure != second.measure or first.amount is None or second.amount is None:
        return 0 if first == second else None
    slack = _CIVIL_SLACK if first.civil != second.civil else 1e-9
    if abs(first.amount - second.amount) <= slack * max(abs(first.amount), abs(second.amount)):
        return 0
    return -1 if first.amount < second.amount else 1


def _quantity(text: str, unit: str | None) -> ServiceLevel | None:
    text, unit = _WORDS.get(text.lower(), (text, unit))
    match = _NUMBER.fullmatch(text)
    if match is None:
        return parse_length(text.upper()) if unit is None and text.upper().startswith("P") else None
    amount, unit_text = float(match[1]), (match[2] or unit or "").strip()
    if unit_text.lower() in ("%", "percent", "pct"):
        return ServiceLevel("percent", amount, text)
    word = time_unit(unit_text) or ("ms" if unit_text.lower() in ("ms", "milliseconds") else None)
    if word in _CIVIL_SECONDS:
        return ServiceLevel("seconds", amount * _CIVIL_SECONDS[word], text, civil=True)
    if word in _SECONDS:
        return ServiceLevel("seconds", amount * _SECONDS[word], text)
    return ServiceLevel(unit_text.lower(), amount, text)


def parse_length(text: str) -> ServiceLevel | None:
    """Return the duration of a text such as `2h` or `PT2H`, or None if it is not one."""
    duration = parse_duration(text)
    if isinstance(duration, ValueProblem):
        return None
    seconds = duration.months * _CIVIL_SECONDS["mo"] + duration.elapsed.total_seconds()
    return ServiceLevel("seconds", seconds, text, civil=bool(duration.months))


def _instant(text: str, unit: str | None) -> ServiceLevel | None:  # noqa: ARG001 - one shape for the table
    day = parse_date(text)
    if day is None:
        return None
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return ServiceLevel(
            "instant", dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC).timestamp(), text
        )
    return ServiceLevel(
        "instant", (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp(), text
    )


def parse_date(text: str) -> dt.date | None:
    """Return the date at the start of a text, or None."""
    try:
        return dt.date.fromisoformat(text.strip()[:10])
    except ValueError:
        return None


def _clock(text: str, unit: str | None) -> ServiceLevel | None:
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds, offset = match.groups()
    total = int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0)
    if offset and offset.upper() != "Z":
        sign = -1 if offset[0] == "-" else 1
        digits = offset[1:].replace(":", "")
        total -= sign * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)
    # A time without an offset is in the zone that `unit` may name; it is only comparable within that zone.
    return ServiceLevel("clock" if offset else f"clock {unit or ''}".strip() + " local", float(total), text)


_BY_NAME: Mapping[str, Callable[[str, str | None], ServiceLevel | None]] = {
    "timeOfAvailability": _clock,
    "generalAvailability": _instant,
    "endOfSupport": _instant,
    "endOfLife": _instant,
}
