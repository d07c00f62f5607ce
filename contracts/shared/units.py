"""Values of contracts: durations, formats of data, and values as JSON has them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, get_args

from dq.contracts.shared.outcome import TextFault

# Durations as contracts write them: `45m`, `2h`, `6mo`, or ISO 8601 such as `PT30M`.

SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
"""Units of elapsed time, in seconds; `m` is always minutes, a month is `mo`."""

MONTHS = {"mo": 1, "y": 12}
"""Units of civil time, in months: how long they last depends on where they start."""

_SHORT = re.compile(r"(?:\d+(?:mo|[smhdwy]))+", re.ASCII)
_TERM = re.compile(r"(\d+)(mo|[smhdwy])", re.ASCII)
_ISO = re.compile(
    r"P(?=[\dT])(?:(?P<y>\d+)Y)?(?:(?P<mo>\d+)M)?(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+)S)?)?",
    re.ASCII,
)
_CENTURY = timedelta(days=36_525)
_MEND = "Write a whole number and a unit, such as 45m, 2h, 3d, 1w, 6mo or 1y, or ISO 8601 such as PT30M."


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time in two parts that do not convert into each other: civil months and elapsed time."""

    months: int
    elapsed: timedelta
    text: str

    def timedelta(self) -> timedelta | TextFault:
        """The elapsed time, or a fault when there are months in it, which have no fixed length."""
        if self.months:
            return TextFault(
                "DURATION_CIVIL",
                f"{self.text!r} counts months or years, whose length differs.",
                "Write elapsed time where a deadline is meant: 30d for a month, 365d for a year.",
            )
        return self.elapsed

    def __str__(self) -> str:
        return self.text


def parse_duration(text: str) -> Duration | TextFault:
    """The duration a text means; it is never negative, and zero (`0m`) is allowed."""
    clean = text.strip()
    if len(clean) > 100:
        return TextFault("DURATION_TEXT", f"a text of {len(clean):,} characters is no duration.", _MEND)
    amounts = _amounts(clean)
    if amounts is None:
        return TextFault("DURATION_TEXT", f"{text!r} is no duration.", _nearest(clean))
    months = sum(amount * MONTHS[unit] for unit, amount in amounts if unit in MONTHS)
    seconds = sum(amount * SECONDS[unit] for unit, amount in amounts if unit in SECONDS)
    if months > 1_200 or seconds > _CENTURY.total_seconds():
        return TextFault("DURATION_LONG", f"{text!r} is longer than a century.", _MEND)
    return Duration(months, timedelta(seconds=seconds), clean)


def parse_elapsed(text: str) -> timedelta | TextFault:
    """The elapsed time that a text means; months and years, whose length differs, are a fault."""
    duration = parse_duration(text)
    return duration if isinstance(duration, TextFault) else duration.timedelta()


def _amounts(text: str) -> list[tuple[str, int]] | None:
    if _SHORT.fullmatch(text):
        return [(unit, int(number)) for number, unit in _TERM.findall(text)]
    if iso := _ISO.fullmatch(text):
        return [(unit, int(number)) for unit, number in iso.groupdict().items() if number]
    return None


def _nearest(text: str) -> str:
    """The usual mend, or an exact one for the mistakes people make most."""
    if _SHORT.fullmatch(text.lower().replace(" ", "")):
        return f"Write {text.lower().replace(' ', '')!r}: small letters, no space."
    if text.isdecimal():
        return f"Write the unit too: {text}m for minutes, {text}h for hours, {text}d for days."
    return _MEND


# TABLE: the formats that data can lie in, by the word of a contract.

DataFormat = Literal["parquet", "orc", "avro", "json", "csv", "iceberg", "delta", "hudi"]

FORMATS: tuple[str, ...] = get_args(DataFormat)

LAKEHOUSE = frozenset({"iceberg", "delta", "hudi"})
"""Tables with a log of commits, which say themselves what their columns and partitions are."""


# Values as JSON has them.


def iso(at: date | None) -> str | None:
    """An instant or a day as ISO 8601, or None if there is none."""
    return None if at is None else at.isoformat()
