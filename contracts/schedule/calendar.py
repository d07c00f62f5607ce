"""Time zones from the pinned `tzdata` package, and the days on which no delivery is due."""

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

from dq.contracts.outcome import TextFault, nearest

if TYPE_CHECKING:
    from holidays import HolidayBase


# Time zones from the pinned `tzdata` package, never from the machine, and their clock changes.
#
# `zoneinfo` by itself prefers the files of the operating system, which may be years old. Loading the
# package's file by hand gives every machine the same answer, without touching any global search path.

_PACKAGE = importlib.import_module("tzdata")
_FILES = Path(_PACKAGE.__path__[0])

TZDATA_VERSION = str(_PACKAGE.IANA_VERSION)
"""The release of the tz database in use, such as `2026f`; it is stored with each cycle."""

# Names that read like an offset or a season and not like a place. Some are links to a place since
# tzdata 2024b, but a reader of a promise cannot know which.
_PLACES = {
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
_FIXED = {abbreviation: place for place, listed in _PLACES.items() for abbreviation in listed.split()}

# No zone changes its clock twice within six days between 1970 and 2100 (a test reads all of them).
_PROBE = timedelta(days=2)


class Transition(NamedTuple):
    """A clock change: from the instant `at` (aware, UTC) on, the zone is `after` ahead of UTC."""

    at: datetime
    before: timedelta
    after: timedelta


@cache
def names() -> frozenset[str]:
    """Every zone name of the tz database, links included."""
    return frozenset((_FILES / "zones").read_text("utf-8").split())


@cache
def zone(name: str) -> ZoneInfo | TextFault:
    """The zone of an IANA name, or the fault of the name: unknown, or an abbreviation instead of a place."""
    if place := _FIXED.get(name):
        return TextFault(
            "ZONE_FIXED",
            f"Time zone {name!r} is an abbreviation and does not say which clock changes it follows.",
            f"Write a place, such as {place}, or UTC.",
        )
    if name.startswith("Etc/GMT") and name != "Etc/GMT":
        return TextFault(
            "ZONE_FIXED",
            f"Time zone {name!r} is a fixed offset whose sign reads the wrong way round.",
            "Write a place, such as Europe/Paris, or UTC.",
        )
    if name not in names():
        return TextFault("ZONE_UNKNOWN", f"Time zone {name!r} is not in the tz database.", _nearest(name))
    with (_FILES / "zoneinfo" / name).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def known(name: str) -> ZoneInfo:
    """The zone of a name that has been checked before; raises ValueError for any other."""
    found = zone(name)
    if isinstance(found, TextFault):
        raise ValueError(str(found))
    return found


@lru_cache(maxsize=16_384)
def transitions(name: str, year: int) -> tuple[Transition, ...]:
    """The changes of the UTC offset after the first instant of a UTC year, up to the first of the next."""
    tz = known(name)
    at, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    before = offset_at(tz, at)
    found = []
    while at < end:
        following = min(at + _PROBE, end)
        after = offset_at(tz, following)
        if after != before:
            found.append(Transition(_change(tz, at, following, before), before, after))
        at, before = following, after
    return tuple(found)


def offset_at(tz: ZoneInfo, instant: datetime) -> timedelta:
    """How far the zone is ahead of UTC at an aware instant."""
    offset = instant.astimezone(tz).utcoffset()
    assert offset is not None
    return offset


def _change(tz: ZoneInfo, low: datetime, high: datetime, before: timedelta) -> datetime:
    """The first whole second in (low, high] at which the offset is not `before`."""
    while high - low > timedelta(seconds=1):
        middle = low + timedelta(seconds=int((high - low).total_seconds()) // 2)
        low, high = (middle, high) if offset_at(tz, middle) == before else (low, middle)
    return high


def _nearest(name: str) -> str:
    generic = "Write an IANA name, such as Europe/Paris, or UTC."
    if any(char in "+:0123456789" for char in name):
        return generic  # an offset, which is near to no place
    by_lower = {known_name.lower(): known_name for known_name in names()}
    by_city = {lower.rpartition("/")[2]: known_name for lower, known_name in sorted(by_lower.items())}
    wanted = name.strip().lower().replace(" ", "_")
    for table in (by_lower, by_city):
        if near := difflib.get_close_matches(wanted, table, 1, 0.75):
            return f"Perhaps {table[near[0]]} was meant."
    return generic


# Public holidays of countries and their subdivisions, from the pinned `holidays` package.
#
# Imported by schedules whose calendar names them only: the package takes longer to import than a contract
# takes to read.


@cache
def release() -> str:
    """The release of the package, such as `holidays 0.109`; it is stored with each cycle that it decided."""
    from holidays.version import __version__

    return f"holidays {__version__}"


@cache
def check(name: str) -> TextFault | None:
    """The fault of a name such as `DE` or `DE-BY` (ISO 3166 country and subdivision), or None."""
    country, _, subdivision = name.partition("-")
    known = sorted(_countries())
    if country not in known:
        hint = country.upper() if country.upper() in known else nearest(country.upper(), known)
        more = f"Did you mean {hint!r}?" if hint else "Write an ISO 3166 code, such as DE or DE-BY."
        return TextFault("HOLIDAYS_COUNTRY", f"No public holidays of {country!r} are known.", more)
    parts = _of(country).subdivisions
    if subdivision in parts or "-" not in name:
        return None
    hint = nearest(subdivision, parts)
    listed = ", ".join(parts[:20]) or "none"
    return TextFault(
        "HOLIDAYS_SUBDIVISION",
        f"No public holidays of the subdivision {subdivision!r} of {country} are known.",
        f"Did you mean '{country}-{hint}'?" if hint else f"Known are: {listed}.",
    )


@lru_cache(maxsize=4_096)
def of_year(name: str, year: int) -> Mapping[date, str]:
    """The public holidays of one year by their dates, named in the country's first language.

    Days that are kept instead of one on a weekend are among them. `name` has passed `check`.
    """
    country, _, subdivision = name.partition("-")
    kind = _of(country)
    # Without a language the names would be those of the machine's settings.
    made = kind(subdiv=subdivision or None, years=[year], language=kind.default_language)
    return MappingProxyType({day: made[day] for day in sorted(made) if day.year == year})


def _countries() -> frozenset[str]:
    from holidays.registry import EntityLoader

    codes = EntityLoader.get_country_codes(include_aliases=True)
    return frozenset(code for code in codes if len(code) == 2)


def _of(country: str) -> type[HolidayBase]:
    import holidays

    return getattr(holidays, country)  # type: ignore[no-any-return]  # its names are loaded on demand


# The calendar of a schedule: civil dates on which a delivery is not due as its expression says.

_DAY = timedelta(days=1)
FURTHEST_MOVE = 60
"""Over how many days a delivery moves at most; a working day must come before."""


class DayEffect(StrEnum):
    """What becomes of a delivery on a free day.

    `skip`: there is none. `move`: it is due at the same time of the next working day. `excuse`: it is due,
    and counts neither way.
    """

    SKIP = "skip"
    MOVE = "move"
    EXCUSE = "excuse"


@dataclass(frozen=True, slots=True)
class FreeDays:
    """Civil dates, in the schedule's zone, with what becomes of a delivery on them.

    A date of a list has the effect of the list; Saturdays and Sundays (with `weekdays_only`) and the public
    `holidays` (`DE`, `DE-BY`) have that of `free_days`. `valid_until` is the last date that the lists were
    made for. It ends nothing by itself; a rule warns of it.
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
        """Whether a delivery can be due on another day than its expression says."""
        rest = self.weekdays_only or self.holidays
        return bool(self.move) or bool(rest and self.free_days is DayEffect.MOVE)

    @property
    def release(self) -> str:
        """What decides besides the contract: the release of the public holidays, or nothing."""
        return release() if self.holidays else ""

    def effect(self, day: date) -> DayEffect | None:
        """What becomes of a delivery that the expression names for this civil date; None: nothing."""
        return _effects(self, day.year).get(day)

    def effects(self, year: int) -> Mapping[date, DayEffect]:
        """The same for all dates of a year of which anything becomes."""
        return _effects(self, year)

    def holiday(self, day: date) -> str:
        """The public holidays of a date, as `DE-BY: Allerheiligen`; the empty text for none."""
        named = ((name, of_year(name, day.year).get(day)) for name in self.holidays)
        return ", ".join(f"{name}: {title}" for name, title in named if title)

    def reason(self, day: date) -> str:
        """Why a date is free, for people."""
        if day in self.skip | self.move | self.excuse:
            return f"{day} is listed"
        return self.holiday(day) or f"{day} is a {day:%A}"

    def working(self, day: date) -> bool:
        """Whether a delivery may move to this date."""
        return day.weekday() < 5 and self.effect(day) is None

    def due_on(self, day: date) -> date | None:
        """The date on which a delivery that the expression names for `day` is due; None: on none."""
        effect = self.effect(day)
        if effect is DayEffect.SKIP:
            return None
        if effect is not DayEffect.MOVE:
            return day
        later, special = day, self.effects(day.year)
        for _ in range(FURTHEST_MOVE):
            later += _DAY
            if (later.month, later.day) == (1, 1):
                special = self.effects(later.year)
            if later.weekday() < 5 and later not in special:
                return later
        return None

    def moved_to(self, day: date) -> Iterator[date]:
        """The dates that may have moved to this one, the latest first."""
        if not self.working(day):
            return
        for count in range(1, FURTHEST_MOVE + 1):
            earlier = day - _DAY * count
            if self.working(earlier):
                return
            if self.effect(earlier) is DayEffect.MOVE:
                yield earlier

    def faults(self) -> Iterator[tuple[str, TextFault]]:
        """What is wrong with it, by the key in which it stands."""
        for name in self.holidays:
            if fault := check(name):
                yield "holidays", fault
                return
        lists = {"skip": self.skip, "move": self.move, "excuse": self.excuse}
        for key, earlier in (("move", ("skip",)), ("excuse", ("skip", "move"))):
            for other in earlier:
                if both := lists[key] & lists[other]:
                    message = f"{min(both)} is in {other!r} too."
                    yield key, TextFault("CALENDAR_TWICE", message, "Leave it in one of them.")
        for day in sorted(self.move):
            if day not in self.skip and self.due_on(day) is None:
                message = f"no working day comes within {FURTHEST_MOVE} days of {day}."
                yield "move", TextFault("CALENDAR_FAR", message, "Write it in 'skip'.")


@lru_cache(maxsize=8_192)
def _effects(calendar: FreeDays, year: int) -> Mapping[date, DayEffect]:
    """What becomes of deliveries on the dates of a year that are not like others; the lists go first."""
    found: dict[date, DayEffect] = {}
    if calendar.weekdays_only:
        first = date(year, 1, 1).toordinal()
        saturday = first + (5 - date(year, 1, 1).weekday()) % 7
        last = date(year, 12, 31).toordinal()
        weekends = (day for one in range(saturday - 7, last + 1, 7) for day in (one, one + 1))
        found |= {date.fromordinal(day): calendar.free_days for day in weekends if first <= day <= last}
    for name in calendar.holidays:
        found |= dict.fromkeys(of_year(name, year), calendar.free_days)
    lists = (
        (calendar.excuse, DayEffect.EXCUSE),
        (calendar.move, DayEffect.MOVE),
        (calendar.skip, DayEffect.SKIP),
    )
    for days, effect in lists:
        found |= {day: effect for day in days if day.year == year}
    return found
