"""A mesh of products, what becomes of their deliveries, and what a watcher must say of them.

It shares no code with the product. Zones are those of the package `tzdata`; cron is not read here, but
written from what a product is.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
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
    """What the oracle knows of a product; `step` is in minutes for those that run all day."""

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
        """What its data lies under, whatever it was renamed to."""
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


def delivery(due: datetime, one: Product, draw: random.Random) -> datetime | None:
    """When a cycle's data comes, in whole seconds; None for never."""
    # Who delivers all day would else leave thousands open.
    weights = (88, 6, 5, 0.5, 0.5) if one.step else (80, 8, 7, 2, 3)
    fate = draw.choices(("early", "grace", "late", "days", "never"), weights)[0]
    gap = one.step or 24 * 60
    minutes = {
        "early": -draw.uniform(1, gap * 0.9),
        "grace": draw.uniform(0, one.grace),
        "late": one.grace + draw.uniform(1, gap),
        "days": one.grace + draw.uniform(gap, 10 * 24 * 60),
    }.get(fate)
    # File systems keep what a text of seconds keeps.
    return None if minutes is None else (due + timedelta(minutes=minutes)).replace(microsecond=0)


@dataclass(slots=True)
class Cycle:
    """A promised delivery; `times` are the instants at which its partition was written (True) or taken away
    (False), oldest first. `broken`: it was missing at a tick."""

    product: str
    due: datetime
    breach: datetime
    part: str
    times: list[tuple[datetime, bool]]
    status: str = "pending"
    # What was good is looked at again, and is gone when it is so ten minutes later too.
    look_again: datetime | None = None
    gone_since: datetime | None = None
    broken: bool = False

    def tick(self, now: datetime, *, visible: bool) -> None:
        """What a watcher makes of it that ticks at `now`."""
        there = self._there(now)
        if self.look_again is not None:
            if now >= self.look_again:
                self._again(now, gone=visible and there is None)
        elif visible:
            self._judge(now, there)

    def _there(self, now: datetime) -> datetime | None:
        """The time of the marker that stands there: a storage keeps the last one only."""
        at, written = max((one for one in self.times if one[0] <= now), default=(now, False))
        return at if written else None

    def _judge(self, now: datetime, came: datetime | None) -> None:
        if came is not None:
            self.status = self._of(came)
            if self.good:
                self.look_again = self._next_look(now)
        elif now > self.breach:
            self.status = "missing" if now <= self.due + GIVEN_UP else "never"
            self.broken = True
        else:
            self.status = "pending"

    def _again(self, now: datetime, *, gone: bool) -> None:
        if not gone:
            self.look_again, self.gone_since = self._next_look(now), None
            return
        self.gone_since = self.gone_since or now
        self.look_again = self.gone_since + timedelta(minutes=10)
        if now >= self.look_again:
            self.look_again = None
            self._judge(now, None)

    def _next_look(self, now: datetime) -> datetime | None:
        following = now + max(timedelta(minutes=15), 2 * (now - self.due))
        return following if following <= self.due + timedelta(hours=24) else None

    def _of(self, came: datetime) -> str:
        if came <= self.due:
            return "on_time"
        if came <= self.breach:
            return "on_time_in_grace"
        return "late" if came <= self.due + GIVEN_UP else "never"

    @property
    def good(self) -> bool:
        return self.status in ("on_time", "on_time_in_grace")

    @property
    def open(self) -> bool:
        """Whether a look can still change it."""
        return self.status in ("pending", "missing") or self.look_again is not None


@dataclass
class Mesh:
    """Products, their cycles so far, and the deliveries to come, by the instant at which they stand there."""

    draw: random.Random
    end: datetime
    products: dict[str, Product]
    edited: Counter[str] = field(default_factory=Counter)
    redeliveries: int = 0
    revocations: int = 0
    cycles: dict[tuple[str, datetime], Cycle] = field(default_factory=dict)
    # (instant, product, partition, whether it is written and not taken away)
    coming: list[tuple[datetime, str, str, bool]] = field(default_factory=list)
    open: dict[tuple[str, datetime], Cycle] = field(default_factory=dict)
    # Those that are promised and not due yet, by product.
    ahead: dict[str, deque[Cycle]] = field(default_factory=dict)
    # When each partition is written and taken away, by where it lies.
    times: dict[tuple[str, str], list[tuple[datetime, bool]]] = field(default_factory=dict)
    # Products that are promised no more, and when some are again.
    retired: dict[str, Product] = field(default_factory=dict)
    returning: list[tuple[datetime, str]] = field(default_factory=list)

    def promise(self, one: Product, begin: datetime) -> None:
        """Cycles of a product after `begin`, with their deliveries; a partition that was promised before, by
        another name or before it was retired, comes once."""
        self.ahead[one.name] = deque()
        for due, part in one.dues(begin, self.end):
            times = self.times.get((one.home, part))
            if times is None:
                times = self.times[one.home, part] = self._times(due, one)
                for at, written in times:
                    heapq.heappush(self.coming, (at, one.name, part, written))
            cycle = Cycle(one.name, due, due + timedelta(minutes=one.grace), part, times)
            self.ahead[one.name].append(cycle)
        self.products[one.name] = one

    def _times(self, due: datetime, one: Product) -> list[tuple[datetime, bool]]:
        came = delivery(due, one, self.draw)
        if came is None:
            return []
        fate = self.draw.choices(("kept", "again", "gone", "back"), (90, 5, 3, 2))[0]
        later = came + timedelta(minutes=self.draw.uniform(10, 2 * 24 * 60))
        # What is taken away was there when it was due, or nobody could tell it from what never came.
        away = max(came, due) + timedelta(minutes=self.draw.uniform(1, 16 * 60))
        back = away + timedelta(minutes=self.draw.uniform(30, 3 * 24 * 60))
        self.redeliveries += fate == "again"
        self.revocations += fate in ("gone", "back")
        more = {"again": [(later, True)], "gone": [(away, False)], "back": [(away, False), (back, True)]}
        events = [(came, True), *more.get(fate, [])]
        return [(at.replace(microsecond=0), written) for at, written in events]

    def edit(self, last_tick: datetime) -> Product:
        """Changes the contract of a product: its grace, or its time of day. What was due by the last tick
        stays as it was promised."""
        one = self._any(lambda one: not one.step)
        if self.draw.random() < 0.5:
            changed = replace(one, grace=self.draw.choice((0, 10, 30, 90)))
        else:
            changed = replace(one, hour=self.draw.randrange(24), minute=self.draw.randrange(60))
        self.edited["edited"] += 1
        self.promise(changed, last_tick)
        return changed

    def rename(self, now: datetime) -> tuple[Product, Product]:
        """Gives a product another name, under which it is promised after `now`: before and after."""
        one = self._any()
        other = replace(one, name=f"{one.name}r")
        self._withdraw(one)
        self.edited["renamed"] += 1
        self.promise(other, now)
        return one, other

    def retire(self, now: datetime) -> Product:
        """Promises a product no more; some are promised again after some days."""
        one = self._any()
        self.retired[one.name] = one
        self._withdraw(one)
        self.edited["retired"] += 1
        if self.draw.random() < 0.5:
            self.returning.append((now + timedelta(days=self.draw.uniform(0.2, 5)), one.name))
        return one

    def returned(self, now: datetime) -> list[Product]:
        """The products that are promised again, for what is due after `now`."""
        names = [name for at, name in self.returning if at <= now]
        self.returning = [(at, name) for at, name in self.returning if at > now]
        for name in names:
            self.promise(self.retired.pop(name), now)
            self.edited["promised again"] += 1
        return [self.products[name] for name in names]

    def _any(self, which: Callable[[Product], bool] = lambda _: True) -> Product:
        return self.draw.choice([self.products[name] for name in self.ahead if which(self.products[name])])

    def _withdraw(self, one: Product) -> None:
        """Ends what is open of a product, and what is not due yet."""
        for key, cycle in list(self.open.items()):
            # What was delivered stays delivered.
            if cycle.product == one.name and cycle.look_again is None:
                cycle.status = "withdrawn"
                del self.open[key]
        del self.ahead[one.name]

    def pass_to(self, now: datetime) -> list[tuple[datetime, str, str, bool]]:
        """What was delivered or taken away up to this instant and is new, in order of time."""
        new = []
        while self.coming and self.coming[0][0] <= now:
            new.append(heapq.heappop(self.coming))
        return new

    def tick(self, now: datetime, seen: set[str]) -> None:
        """A watcher looks at the products `seen`."""
        for name, cycles in self.ahead.items():
            while cycles and cycles[0].due <= now:
                cycle = cycles.popleft()
                self.cycles[name, cycle.due] = self.open[name, cycle.due] = cycle
        for key, cycle in list(self.open.items()):
            if cycle.product not in self.ahead:
                continue
            cycle.tick(now, visible=cycle.product in seen)
            if not cycle.open:
                del self.open[key]


def mesh(count: int, begin: datetime, end: datetime, draw: random.Random) -> Mesh:
    """Products and their promises from the first instant on."""
    made = Mesh(draw, end, {})
    for number in range(count):
        made.promise(product(number, draw), begin)
    return made
