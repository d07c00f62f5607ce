"""The calendar of a schedule: civil dates on which a delivery is not due, public holidays among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from functools import cache, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from dq.contracts.shared.outcome import TextFault
from dq.contracts.shared.wording import nearest

if TYPE_CHECKING:
    from holidays import HolidayBase


# Public holidays of countries and their subdivisions, from the pinned `holidays` package.
#
# Imported by schedules whose calendar names them only: the package takes longer to import than a contract
# takes
# to read.


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
    if not subdivision and "-" not in name:
        return None
    if subdivision in parts:
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
