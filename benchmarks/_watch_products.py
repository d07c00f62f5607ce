"""The products of the oracle: when they are due by the calendar, and when they come.

It shares no code with the product under test. Zones are those of the package `tzdata`; cron is not read here,
but written from what a product is.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo, reset_tzpath

# The package's zones, as the product has them.
reset_tzpath(to=[])

# How many of a hundred products deliver how often.
CADENCES = {"every 15 minutes": 1.0, "hourly": 4.0, "daily": 70.0, "weekly": 15.0, "monthly": 10.0}
# Clocks that never change: a quarter of an hour has one name there.
EVEN_ZONES = ("UTC", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Tokyo", "America/Sao_Paulo")
ZONES = (
    "UTC", "Europe/Berlin", "Europe/London", "Europe/Lisbon", "America/New_York", "America/Chicago",
    "America/Los_Angeles", "America/Sao_Paulo", "America/Santiago", "America/Havana", "Africa/Cairo",
    "Africa/Casablanca", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Tokyo", "Asia/Beirut", "Australia/Sydney",
    "Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Auckland",
)  # fmt: skip
GIVEN_UP = timedelta(days=14)
_MINUTE, _QUARTER = timedelta(minutes=1), timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Product:
    """A product as the oracle knows it; `step` is in minutes for those that run all day."""

    name: str
    zone: str
    grace: int
    hour: int
    minute: int
    step: int = 0
    weekday: int | None = None
    monthday: int | None = None

    @property
    def home(self) -> str:
        """The folder of its data, whatever it was renamed to."""
        return self.name.rstrip("r")

    @property
    def cron(self) -> str:
        """The expression that the contract has: 0 is Sunday there."""
        if self.step:
            return f"*/{self.step} * * * *" if self.step < 60 else "0 * * * *"
        weekday = "*" if self.weekday is None else str((self.weekday + 1) % 7)
        return f"{self.minute} {self.hour} {self.monthday or '*'} * {weekday}"

    def dues(self, begin: datetime, end: datetime) -> Iterator[tuple[datetime, str]]:
        """Every due instant after `begin` up to `end`, with the partition that it must bring."""
        if self.step:
            zone = ZoneInfo(self.zone)
            at = begin.replace(minute=0, second=0, microsecond=0)
            while at <= end:
                civil = at.astimezone(zone)
                if at > begin and civil.minute % self.step == 0:
                    yield at, f"{civil:%Y%m%d%H%M}"
                at += _QUARTER
            return
        day = begin.date() - timedelta(days=1)
        while day <= end.date() + timedelta(days=1):
            if self.weekday in (None, day.weekday()) and self.monthday in (None, day.day):
                civil = datetime.combine(day, time(self.hour, self.minute))
                at = first_at(civil, self.zone)
                if begin < at <= end:
                    # The partition has the time that the contract says, also where no clock shows it.
                    yield at, f"{civil:%Y%m%d%H%M}"
            day += timedelta(days=1)


@cache
def first_at(civil: datetime, name: str) -> datetime:
    """The first instant at which a clock of the zone shows this time or a later one."""
    zone = ZoneInfo(name)
    at = civil.replace(tzinfo=zone, fold=0).astimezone(UTC) - timedelta(hours=3)
    while at.astimezone(zone).replace(tzinfo=None) < civil:
        at += _MINUTE
    return at


def product(number: int, draw: random.Random) -> Product:
    """A product of some cadence and zone."""
    name, grace = f"p{number}", draw.choice((0, 10, 30, 90))
    kind = draw.choices(list(CADENCES), list(CADENCES.values()))[0]
    if kind in ("hourly", "every 15 minutes"):
        step = 60 if kind == "hourly" else 15
        return Product(name, draw.choice(EVEN_ZONES), min(grace, 10), 0, 0, step=step)
    zone, hour, minute = draw.choice(ZONES), draw.choice((0, 1, 2, 3, 6, 12, 23)), draw.randrange(60)
    weekday = draw.randrange(7) if kind == "weekly" else None
    monthday = draw.randint(1, 28) if kind == "monthly" else None
    return Product(name, zone, grace, hour, minute, weekday=weekday, monthday=monthday)


def delivery(due: datetime, product: Product, draw: random.Random) -> datetime | None:
    """The instant at which a cycle's data comes, in whole seconds, or None for never."""
    # Who delivers all day would else leave thousands open.
    weights = (88, 6, 5, 0.5, 0.5) if product.step else (80, 8, 7, 2, 3)
    arrival = draw.choices(("early", "grace", "late", "days", "never"), weights)[0]
    gap = product.step or 24 * 60
    minutes = {
        "early": -draw.uniform(1, gap * 0.9),
        "grace": draw.uniform(0, product.grace),
        "late": product.grace + draw.uniform(1, gap),
        "days": product.grace + draw.uniform(gap, 10 * 24 * 60),
    }.get(arrival)
    # File systems keep what a text of seconds keeps.
    return None if minutes is None else (due + timedelta(minutes=minutes)).replace(microsecond=0)
