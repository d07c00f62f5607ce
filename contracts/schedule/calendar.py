"""Time zones from the pinned `tzdata` package, and holiday calendars."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

from dq.contracts.outcome import ValueProblem, nearest

if TYPE_CHECKING:
    from holidays import HolidayBase


# Time zones from the pinned `tzdata` package, never from the machine, and their clock changes.
#
# `zoneinfo` prefers the files of the operating system, which may be years old. Loading the package's file
# directly gives the same result on every machine, without changing the global search path.

_PACKAGE = importlib.import_module("tzdata")
_FILES = Path(_PACKAGE.__path__[0])

TZDATA_VERSION = str(_PACKAGE.IANA_VERSION)
"""Release of the tz database in use, e.g. `2026f`; it is stored with each cycle."""

# Names that look like an offset or a season instead of a place. Some are links to a place since
# tzdata 2024b, but users cannot know which.
_ABBREVIATIONS = {
    "America/New_York": "EST EST5EDT EDT",
    "America/Chicago": "CST CST6CDT CDT",
    "America/Phoenix": "MST",
    "America/Denver": "MST7MDT MDT",
    "America/Los_Angeles": "PST PST8PDT PDT",
    "Pacific/Honolulu": "HST",
    "Europe/Lisbon": "WET",
    "Europe/Paris": "CET CEST MET",
    "Europe/Athens": "EET EEST",
    "Europe/London": "BST",
    "Asia/Kolkata": "IST",
    "Asia/Tokyo": "JST",
    "UTC": "GMT GMT0 GMT+0 GMT-0 Factory",
}
_FIXED = {
    abbreviation: place
    for place, abbreviations in _ABBREVIATIONS.items()
    for abbreviation in abbreviations.split()
}

# No zone changes its clock twice within six days between 1970 and 2100 (a test reads all of them).
_PROBE = timedelta(days=2)


class Transition(NamedTuple):
    """A clock change: from the instant `at` (aware, UTC) on, the zone is `offset_after` ahead of UTC."""

    at: datetime
    offset_before: timedelta
    offset_after: timedelta


@cache
def zone_names() -> frozenset[str]:
    """Return every zone name of the tz database, links included."""
    return frozenset((_FILES / "zones").read_text("utf-8").split())


@cache
def country_of(name: str) -> str:
    """Return the ISO 3166 code of the country of a zone, or "" for UTC and for links."""
    rows = (line.split("\t") for line in (_FILES / "zoneinfo" / "zone.tab").read_text("utf-8").splitlines())
    return next((row[0] for row in rows if len(row) > 2 and row[2] == name), "")


@cache
def parse_zone(name: str) -> ZoneInfo | ValueProblem:
    """Return the zone of an IANA name, or the problem: unknown, or an abbreviation instead of a place."""
    if place := _FIXED.get(name):
        return ValueProblem(
            "ZONE_FIXED",
            f"time zone {name!r} is an abbreviation without defined DST rules.",
            f"Write an IANA name, e.g. {place}, or UTC.",
        )
    if name.startswith("Etc/GMT") and name != "Etc/GMT":
        return ValueProblem(
            "ZONE_FIXED",
            f"time zone {name!r} is a fixed offset with an inverted sign.",
            "Write an IANA name, e.g. Europe/Paris, or UTC.",
        )
    if name not in zone_names():
        return ValueProblem("ZONE_UNKNOWN", f"unknown time zone {name!r}.", _zone_hint(name))
    with (_FILES / "zoneinfo" / name).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def load_zone(name: str) -> ZoneInfo:
    """Return the zone of a name that has been validated; raises ValueError for any other."""
    parsed = parse_zone(name)
    if isinstance(parsed, ValueProblem):
        raise ValueError(str(parsed))
    return parsed


@lru_cache(maxsize=16_384)
def transitions(name: str, year: int) -> tuple[Transition, ...]:
    """Return the changes of the UTC offset after the first instant of a UTC year, up to the first of the
    next.
    """
    tz = load_zone(name)
    start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    offset = offset_at(tz, start)
    changes = []
    while start < end:
        next_at = min(start + _PROBE, end)
        next_offset = offset_at(tz, next_at)
        if next_offset != offset:
            changes.append(Transition(_change(tz, start, next_at, offset), offset, next_offset))
        start, offset = next_at, next_offset
    return tuple(changes)


def offset_at(tz: ZoneInfo, instant: datetime) -> timedelta:
    """Return how far the zone is ahead of UTC at an aware instant."""
    offset = instant.astimezone(tz).utcoffset()
    assert offset is not None
    return offset


def _change(tz: ZoneInfo, low: datetime, high: datetime, offset: timedelta) -> datetime:
    """Return the first whole second in (low, high] at which the offset differs."""
    while high - low > timedelta(seconds=1):
        middle = low + timedelta(seconds=int((high - low).total_seconds()) // 2)
        low, high = (middle, high) if offset_at(tz, middle) == offset else (low, middle)
    return high


def _zone_hint(name: str) -> str:
    generic = "Write an IANA name, e.g. Europe/Paris, or UTC."
    if any(char in "+:0123456789" for char in name):
        return generic  # an offset, which is not similar to a place
    by_lower = {known_name.lower(): known_name for known_name in zone_names()}
    by_city = {lower.rpartition("/")[2]: known_name for lower, known_name in sorted(by_lower.items())}
    normalized = name.strip().lower().replace(" ", "_")
    for table in (by_lower, by_city):
        if matches := difflib.get_close_matches(normalized, table, 1, 0.75):
            return f"Did you mean {table[matches[0]]!r}?"
    return generic


# Public holidays of countries and their subdivisions, from the pinned `holidays` package.
#
# Imported only if a schedule's calendar names holidays: importing the package takes longer than reading a
# contract.


@cache
def holidays_release() -> str:
    """Return the release of the package, e.g. `holidays 0.109`; it is stored with each cycle that uses it."""
    from holidays.version import __version__

    return f"holidays {__version__}"


@cache
def holiday_name_problem(name: str) -> ValueProblem | None:
    """Return the problem of a name such as `DE` or `DE-BY` (ISO 3166 country and subdivision), or None."""
    country, _, subdivision = name.partition("-")
    country_codes = sorted(_countries())
    if country not in country_codes:
        hint = (
            country.upper() if country.upper() in country_codes else nearest(country.upper(), country_codes)
        )
        hint_text = f"Did you mean {hint!r}?" if hint else "Write an ISO 3166 code, e.g. DE or DE-BY."
        return ValueProblem(
            "HOLIDAYS_COUNTRY", f"no public holidays available for country {country!r}.", hint_text
        )
    parts = _holiday_class(country).subdivisions
    if subdivision in parts or "-" not in name:
        return None
    hint = nearest(subdivision, parts)
    subdivisions = ", ".join(parts[:20]) or "none"
    return ValueProblem(
        "HOLIDAYS_SUBDIVISION",
        f"no public holidays available for subdivision {subdivision!r} of {country}.",
        f"Did you mean '{country}-{hint}'?" if hint else f"Available: {subdivisions}.",
    )


@lru_cache(maxsize=4_096)
def public_holidays(name: str, year: int) -> Mapping[date, str]:
    """Return the public holidays of one year by date, named in the country's first language.

    Days observed instead of one on a weekend are included. `name` must have passed `holiday_name_problem`.
    """
    country, _, subdivision = name.partition("-")
    kind = _holiday_class(country)
    # Without a language, the names would depend on the machine's locale.
    holidays_of_year = kind(subdiv=subdivision or None, years=[year], language=kind.default_language)
    return MappingProxyType(
        {day: holidays_of_year[day] for day in sorted(holidays_of_year) if day.year == year}
    )


def _countries() -> frozenset[str]:
    from holidays.registry import EntityLoader

    codes = EntityLoader.get_country_codes(include_aliases=True)
    return frozenset(code for code in codes if len(code) == 2)


def _holiday_class(country: str) -> type[HolidayBase]:
    import holidays

    return getattr(holidays, country)  # type: ignore[no-any-return]  # its names are loaded on demand


# Calendar of a schedule: civil dates that are exceptions to the expression.

_DAY = timedelta(days=1)
FURTHEST_MOVE = 60
"""Maximum number of days that a delivery moves to the next working day."""


class DayEffect(StrEnum):
    """Effect of a free day on a delivery.

    `skip`: there is none. `move`: it is due at the same time of the next working day. `excuse`: it is due,
    and counts neither way.
    """

    SKIP = "skip"
    MOVE = "move"
    EXCUSE = "excuse"


@dataclass(frozen=True, slots=True)
class HolidayCalendar:
    """Civil dates in the schedule's zone, with their effect on deliveries.

    A date of a list has the effect of the list; Saturdays and Sundays (with `weekdays_only`) and the public
    `holidays` (`DE`, `DE-BY`) have that of `free_days`. `valid_until` is the last date that the lists cover.
    It has no effect; a rule warns about it.
    """

    skip: frozenset[date] = frozenset()
    weekdays_only: bool = False
    valid_until: date | None = None
    move: frozenset[date] = frozenset()
    excuse: frozenset[date] = frozenset()
    holidays: tuple[str, ...] = ()
    free_days: DayEffect = DayEffect.SKIP

    @property
    def moves(self) -> bool:
        """True if a delivery can be due on another day than its expression says."""
        has_free_days = self.weekdays_only or self.holidays
        return bool(self.move) or bool(has_free_days and self.free_days is DayEffect.MOVE)

    @property
    def release(self) -> str:
        """Release of the public holidays, or "" if there are none."""
        return holidays_release() if self.holidays else ""

    def effect(self, day: date) -> DayEffect | None:
        """Return the effect on a delivery of this civil date, or None."""
        return _effects(self, day.year).get(day)

    def effects(self, year: int) -> Mapping[date, DayEffect]:
        """Return the effects of all dates of a year that have one."""
        return _effects(self, year)

    def holiday(self, day: date) -> str:
        """Return the public holidays of a date, e.g. `DE-BY: Allerheiligen`, or ""."""
        titles = ((name, public_holidays(name, day.year).get(day)) for name in self.holidays)
        return ", ".join(f"{name}: {title}" for name, title in titles if title)

    def reason(self, day: date) -> str:
        """Return why a date is free, for people."""
        if day in self.skip | self.move | self.excuse:
            return f"{day} is listed"
        return self.holiday(day) or f"{day} is a {day:%A}"

    def is_working_day(self, day: date) -> bool:
        """Return True if a delivery may move to this date."""
        return day.weekday() < 5 and self.effect(day) is None

    def due_on(self, day: date) -> date | None:
        """Return the date on which the delivery of `day` is due, or None if it is skipped."""
        effect = self.effect(day)
        if effect is DayEffect.SKIP:
            return None
        if effect is not DayEffect.MOVE:
            return day
        candidate, special = day, self.effects(day.year)
        for _ in range(FURTHEST_MOVE):
            candidate += _DAY
            if (candidate.month, candidate.day) == (1, 1):
                special = self.effects(candidate.year)
            if candidate.weekday() < 5 and candidate not in special:
                return candidate
        return None

    def moved_to(self, day: date) -> Iterator[date]:
        """Yield the dates that may have moved to this one, latest first."""
        if not self.is_working_day(day):
            return
        for count in range(1, FURTHEST_MOVE + 1):
            earlier = day - _DAY * count
            if self.is_working_day(earlier):
                return
            if self.effect(earlier) is DayEffect.MOVE:
                yield earlier

    def problems(self) -> Iterator[tuple[str, ValueProblem]]:
        """Yield its problems by key."""
        for name in self.holidays:
            if problem := holiday_name_problem(name):
                yield "holidays", problem
                return
        lists = {"skip": self.skip, "move": self.move, "excuse": self.excuse}
        for key, earlier_keys in (("move", ("skip",)), ("excuse", ("skip", "move"))):
            for other in earlier_keys:
                if common := lists[key] & lists[other]:
                    message = f"{min(common)} is also in {other!r}."
                    yield key, ValueProblem("CALENDAR_TWICE", message, "Keep it in one of them.")
        for day in sorted(self.move):
            if day not in self.skip and self.due_on(day) is None:
                message = f"no working day within {FURTHEST_MOVE} days after {day}."
                yield "move", ValueProblem("CALENDAR_FAR", message, "Move it to 'skip'.")


@lru_cache(maxsize=8_192)
def _effects(calendar: HolidayCalendar, year: int) -> Mapping[date, DayEffect]:
    """Return the effects of the dates of a year that have one; the lists take precedence."""
    effects: dict[date, DayEffect] = {}
    if calendar.weekdays_only:
        first = date(year, 1, 1).toordinal()
        saturday = first + (5 - date(year, 1, 1).weekday()) % 7
        last = date(year, 12, 31).toordinal()
        weekends = (
            day
            for saturday_ordinal in range(saturday - 7, last + 1, 7)
            for day in (saturday_ordinal, saturday_ordinal + 1)
        )
        effects |= {date.fromordinal(day): calendar.free_days for day in weekends if first <= day <= last}
    for name in calendar.holidays:
        effects |= dict.fromkeys(public_holidays(name, year), calendar.free_days)
    lists = (
        (calendar.excuse, DayEffect.EXCUSE),
        (calendar.move, DayEffect.MOVE),
        (calendar.skip, DayEffect.SKIP),
    )
    for days, effect in lists:
        effects |= {day: effect for day in days if day.year == year}
    return effects
