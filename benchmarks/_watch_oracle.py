"""A mesh of products, what becomes of their deliveries, and what a watcher must say of them.

It shares no code with the product.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from _watch_products import GIVEN_UP, Product, delivery, product


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
        """Evaluate the cycle as a watcher that ticks at `now`."""
        visible_at = self._visible_at(now)
        if self.look_again is not None:
            if now >= self.look_again:
                self._look_again(now, is_gone=visible and visible_at is None)
        elif visible:
            self._judge(now, visible_at)

    def _visible_at(self, now: datetime) -> datetime | None:
        """The time of the current marker, or None: a storage keeps the last one only."""
        at, written = max((time for time in self.times if time[0] <= now), default=(now, False))
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

    def _look_again(self, now: datetime, *, is_gone: bool) -> None:
        if not is_gone:
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
        """Return True if a look can still change it."""
        return self.status in ("pending", "missing") or self.look_again is not None


@dataclass
class Mesh:
    """Products, their cycles, and the deliveries to come, by the instant at which they are in the lake."""

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

    def promise(self, product: Product, begin: datetime) -> None:
        """Cycles of a product after `begin`, with their deliveries; a partition that was promised before, by
        another name or before it was retired, comes once."""
        self.ahead[product.name] = deque()
        for due, part in product.dues(begin, self.end):
            times = self.times.get((product.home, part))
            if times is None:
                times = self.times[product.home, part] = self._times(due, product)
                for at, written in times:
                    heapq.heappush(self.coming, (at, product.name, part, written))
            cycle = Cycle(product.name, due, due + timedelta(minutes=product.grace), part, times)
            self.ahead[product.name].append(cycle)
        self.products[product.name] = product

    def _times(self, due: datetime, product: Product) -> list[tuple[datetime, bool]]:
        came = delivery(due, product, self.draw)
        if came is None:
            return []
        history = self.draw.choices(("kept", "again", "gone", "back"), (90, 5, 3, 2))[0]
        later = came + timedelta(minutes=self.draw.uniform(10, 2 * 24 * 60))
        # What is taken away was there when it was due, or nobody could tell it from what never came.
        away = max(came, due) + timedelta(minutes=self.draw.uniform(1, 16 * 60))
        back = away + timedelta(minutes=self.draw.uniform(30, 3 * 24 * 60))
        self.redeliveries += history == "again"
        self.revocations += history in ("gone", "back")
        changes = {"again": [(later, True)], "gone": [(away, False)], "back": [(away, False), (back, True)]}
        events = [(came, True), *changes.get(history, [])]
        return [(at.replace(microsecond=0), written) for at, written in events]

    def edit(self, last_tick: datetime) -> Product:
        """Changes the contract of a product: its grace, or its time of day. What was due by the last tick
        stays as it was promised."""
        product = self._any(lambda product: not product.step)
        if self.draw.random() < 0.5:
            changed = replace(product, grace=self.draw.choice((0, 10, 30, 90)))
        else:
            changed = replace(product, hour=self.draw.randrange(24), minute=self.draw.randrange(60))
        self.edited["edited"] += 1
        self.promise(changed, last_tick)
        return changed

    def rename(self, now: datetime) -> tuple[Product, Product]:
        """Gives a product another name, under which it is promised after `now`: before and after."""
        product = self._any()
        other = replace(product, name=f"{product.name}r")
        self._withdraw(product)
        self.edited["renamed"] += 1
        self.promise(other, now)
        return product, other

    def retire(self, now: datetime) -> Product:
        """Withdraw a product; some are promised again after some days."""
        product = self._any()
        self.retired[product.name] = product
        self._withdraw(product)
        self.edited["retired"] += 1
        if self.draw.random() < 0.5:
            self.returning.append((now + timedelta(days=self.draw.uniform(0.2, 5)), product.name))
        return product

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

    def _withdraw(self, product: Product) -> None:
        """Ends what is open of a product, and what is not due yet."""
        for key, cycle in list(self.open.items()):
            # What was delivered stays delivered.
            if cycle.product == product.name and cycle.look_again is None:
                cycle.status = "withdrawn"
                del self.open[key]
        del self.ahead[product.name]

    def pass_to(self, now: datetime) -> list[tuple[datetime, str, str, bool]]:
        """New deliveries and removals up to this instant, in order of time."""
        new = []
        while self.coming and self.coming[0][0] <= now:
            new.append(heapq.heappop(self.coming))
        return new

    def tick(self, now: datetime, reachable: set[str]) -> None:
        """A watcher looks at the products `seen`."""
        for name, cycles in self.ahead.items():
            while cycles and cycles[0].due <= now:
                cycle = cycles.popleft()
                self.cycles[name, cycle.due] = self.open[name, cycle.due] = cycle
        for key, cycle in list(self.open.items()):
            if cycle.product not in self.ahead:
                continue
            cycle.tick(now, visible=cycle.product in reachable)
            if not cycle.open:
                del self.open[key]


def mesh(count: int, begin: datetime, end: datetime, draw: random.Random) -> Mesh:
    """Products and their promises from the first instant on."""
    mesh_ = Mesh(draw, end, {})
    for number in range(count):
        mesh_.promise(product(number, draw), begin)
    return mesh_
