"""Time zones from the pinned `tzdata` package, never from the machine, and their clock changes.

`zoneinfo` by itself prefers the files of the operating system, which may be years old. Loading the
package's file by hand gives every machine the same answer, without touching any global search path.
"""

from __future__ import annotations

import difflib
import importlib
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from dq.contracts.shared.outcome import TextFault

_PACKAGE = importlib.import_module("tzdata")
_FILES = Path(_PACKAGE.__path__[0])

TZDATA_VERSION = str(_PACKAGE.IANA_VERSION)
"""The release of the tz database in use, such as `2026f`; it is stored with each cycle."""

# Names that read like an offset or a season and not like a place. Some are links to a place since
# tzdata 2024b, but a reader of a promise cannot know which.
_FIXED = {
    "EST": "America/New_York",
    "EST5EDT": "America/New_York",
    "EDT": "America/New_York",
    "CST": "America/Chicago",
    "CST6CDT": "America/Chicago",
    "CDT": "America/Chicago",
    "MST": "America/Phoenix",
    "MST7MDT": "America/Denver",
    "MDT": "America/Denver",
    "PST": "America/Los_Angeles",
    "PST8PDT": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
    "HST": "Pacific/Honolulu",
    "WET": "Europe/Lisbon",
    "CET": "Europe/Paris",
    "CEST": "Europe/Paris",
    "MET": "Europe/Paris",
    "EET": "Europe/Athens",
    "EEST": "Europe/Athens",
    "BST": "Europe/London",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "GMT": "UTC",
    "GMT0": "UTC",
    "GMT+0": "UTC",
    "GMT-0": "UTC",
    "Factory": "UTC",
}

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
