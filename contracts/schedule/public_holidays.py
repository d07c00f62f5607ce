"""Public holidays of countries and their subdivisions, from the pinned `holidays` package.

Imported by schedules whose calendar names them only: the package takes longer to import than a contract takes
to read.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from dq.contracts.shared.outcome import TextFault
from dq.contracts.shared.wording import nearest

if TYPE_CHECKING:
    from holidays import HolidayBase


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
