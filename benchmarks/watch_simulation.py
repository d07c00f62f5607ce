"""Months of a mesh with a watcher that is down at times, against an oracle that shares no code with it.

Products of many cadences and zones over changes of the clocks; deliveries that are early, in time, late or
never come; watchers that are down for days or tick twice; lakes that vanish and return. Wanted: no false
alarm, no miss that nobody was told of, no wrong end state.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, reset_tzpath

from _report import arguments, finish

from dq.contracts import slo as promise
from dq.contracts.shared.outcome import Breach, Recovery
from dq.contracts.yaml.parse import parse
from dq.dataquality.delivery import ledger
from dq.dataquality.delivery.lake.files import LocalFiles
from dq.dataquality.delivery.sources.probe import DeliveryPlace
from dq.dataquality.delivery.watch import PastMiss, Watched, tick
from dq.store.engine import open_store

# The package's zones, as the product has them.
reset_tzpath(to=[])

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {name}
version: 1.0.0
schema:
  - name: t
    properties:
      - {{name: part, logicalType: string, partitioned: true, partitionKeyPosition: 1}}
slaProperties:
  - id: s
    property: frequency
    value: 1
    unit: d
    element: t
    schedule: "{cron}"
    customProperties:
      - property: delivery
        vendor: dq
        value:
          timezone: {zone}
          grace: {grace}m
          objective: 90%
          partition: {{part: "{{due:%Y%m%d%H%M}}"}}
          evidence: [marker]
"""
ZONES = (
    "UTC", "Europe/Berlin", "Europe/London", "Europe/Lisbon", "America/New_York", "America/Chicago",
    "America/Los_Angeles", "America/Sao_Paulo", "America/Santiago", "America/Havana", "Africa/Cairo",
    "Africa/Casablanca", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Tokyo", "Asia/Beirut", "Australia/Sydney",
    "Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Auckland",
)  # fmt: skip
# Northern clocks go forward in these days, southern ones back.
BEGIN = datetime(2026, 2, 20, tzinfo=UTC)
GIVEN_UP = timedelta(days=14)
LAKES = 3


@dataclass(frozen=True)
class Product:
    """What the oracle knows of a product; `step` is in minutes for those of UTC that run all day."""

    name: str
    zone: str
    grace: int
    hour: int
    minute: int
    step: int = 0
    weekday: int | None = None
    monthday: int | None = None

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
            at = begin.replace(minute=0)
            while at <= end:
                if at > begin:
                    yield at, f"{at:%Y%m%d%H%M}"
                at += timedelta(minutes=self.step)
            return
        day = begin.date() - timedelta(days=1)
        while day <= end.date() + timedelta(days=1):
            if self.weekday in (None, day.weekday()) and self.monthday in (None, day.day):
                civil = datetime.combine(day, time(self.hour, self.minute))
                at = first_at(civil, ZoneInfo(self.zone))
                if begin < at <= end:
                    # The partition has the time that the contract says, also where no clock shows it.
                    yield at, f"{civil:%Y%m%d%H%M}"
            day += timedelta(days=1)


def first_at(civil: datetime, zone: ZoneInfo) -> datetime:
    """The first instant at which a clock of the zone shows this time or a later one."""
    at = civil.replace(tzinfo=zone, fold=0).astimezone(UTC) - timedelta(hours=3)
    while at.astimezone(zone).replace(tzinfo=None) < civil:
        at += timedelta(minutes=1)
    return at


@dataclass
class World:
    """What happens: deliveries by the instant at which they stand there, and what the oracle expects."""

    products: list[Product]
    deliveries: list[tuple[datetime, str, str]] = field(default_factory=list)
    # By product and due instant: the instant of delivery, None for what never comes.
    truth: dict[tuple[str, datetime], datetime | None] = field(default_factory=dict)

    def expected(self, product: Product, due: datetime, end: datetime) -> str:
        """The status at the end of the simulation."""
        came, breach = self.truth[product.name, due], due + timedelta(minutes=product.grace)
        if came is not None and came <= end:
            if came <= due:
                return "on_time"
            return "on_time_in_grace" if came <= breach else "late" if came <= due + GIVEN_UP else "never"
        if end <= breach:
            return "pending"
        return "missing" if end <= due + GIVEN_UP else "never"


def world(count: int, days: int, draw: random.Random) -> World:
    """Products, and what becomes of each of their cycles."""
    made = World([product(number, draw) for number in range(count)])
    end = BEGIN + timedelta(days=days)
    for one in made.products:
        for due, part in one.dues(BEGIN, end):
            came = delivery(due, one, draw)
            made.truth[one.name, due] = came
            if came is not None:
                made.deliveries.append((came, one.name, part))
    made.deliveries.sort()
    return made


def product(number: int, draw: random.Random) -> Product:
    name, grace = f"p{number}", draw.choice((0, 10, 30, 90))
    kind = draw.choices(("daily", "weekly", "monthly", "hourly", "dense"), (60, 15, 5, 15, 5))[0]
    if kind in ("hourly", "dense"):
        return Product(name, "UTC", min(grace, 10), 0, 0, step=60 if kind == "hourly" else 15)
    zone, hour, minute = draw.choice(ZONES), draw.choice((0, 1, 2, 3, 6, 12, 23)), draw.randrange(60)
    weekday = draw.randrange(7) if kind == "weekly" else None
    monthday = draw.randint(1, 28) if kind == "monthly" else None
    return Product(name, zone, grace, hour, minute, weekday=weekday, monthday=monthday)


def delivery(due: datetime, one: Product, draw: random.Random) -> datetime | None:
    fate = draw.choices(("early", "grace", "late", "days", "never"), (80, 8, 7, 2, 3))[0]
    gap = one.step or 24 * 60
    minutes = {
        "early": -draw.uniform(1, gap * 0.9),
        "grace": draw.uniform(0, one.grace),
        "late": one.grace + draw.uniform(1, gap),
        "days": one.grace + draw.uniform(gap, 10 * 24 * 60),
    }.get(fate)
    # File systems keep what a text of seconds keeps.
    return None if minutes is None else (due + timedelta(minutes=minutes)).replace(microsecond=0)


class Watching:
    """The product under test: ticks over real files, and what it told."""

    def __init__(self, folder: Path, made: World) -> None:
        self.folder, self.lakes = folder, [folder / f"lake{number}" for number in range(LAKES)]
        for lake in self.lakes:
            lake.mkdir()
        self.place = {one.name: self.lakes[number % LAKES] for number, one in enumerate(made.products)}
        self.store = open_store(f"sqlite:///{folder / 'store.db'}")
        self.watched = [self._watched(one) for one in made.products]
        self.told: Counter[tuple[str, str]] = Counter()
        self.over: Counter[tuple[str, str]] = Counter()
        self.past: Counter[tuple[str, str]] = Counter()

    def _watched(self, one: Product) -> Watched:
        text = CONTRACT.format(name=one.name, cron=one.cron, zone=one.zone, grace=one.grace)
        parsed = parse(text.encode(), f"{one.name}.odcs.yaml")
        assert parsed.contract is not None, parsed.findings
        slos, findings = promise.read(parsed.contract)
        assert not findings, findings
        place = DeliveryPlace(str(self.place[one.name] / one.name), "parquet", "_SUCCESS")
        return Watched(slos[0], place, LocalFiles())

    def deliver(self, when: datetime, name: str, part: str) -> None:
        lake = self.place[name]
        # A lake that nobody can see is written to all the same.
        home = lake if lake.exists() else lake.with_suffix(".gone")
        folder = home / name / f"part={part}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "_SUCCESS").touch()
        os.utime(folder / "_SUCCESS", (when.timestamp(),) * 2)

    def tick(self, now: datetime) -> None:
        def past(_: object, misses: object) -> None:
            assert isinstance(misses, list)
            for one in misses:
                assert isinstance(one, PastMiss)
                self.past[one.kept.cycle.contract, one.kept.cycle.due_at.isoformat()] += 1

        def tell(_: object, event: Breach | Recovery) -> None:
            if event.key.group == "s":
                heard = self.told if isinstance(event, Breach) else self.over
                heard[event.key.contract, event.subject] += 1

        tick(self.store, self.watched, now, tell, past=past)


def run(count: int, days: int, pause: int, seed: int) -> dict[str, float]:
    """One simulation; every figure but the first ones should be 0."""
    draw = random.Random(seed)
    made = world(count, days, draw)
    end, rare = BEGIN + timedelta(days=days), pause / 15_000
    waiting, ticks, downtimes, lost = iter(made.deliveries), 0, 0, 0
    coming = next(waiting, None)
    with tempfile.TemporaryDirectory() as folder:
        watching = Watching(Path(folder), made)
        watching.tick(BEGIN)
        now, back = BEGIN, {}
        while now < end:
            step = timedelta(minutes=pause)
            if draw.random() < rare:
                step, downtimes = timedelta(hours=draw.uniform(2, 72)), downtimes + 1
            now = min(now + step, end)
            while coming is not None and coming[0] <= now:
                watching.deliver(*coming)
                coming = next(waiting, None)
            for lake, until in list(back.items()):
                if now >= until or now == end:
                    lake.with_suffix(".gone").rename(lake)
                    del back[lake]
            if draw.random() < 2 * rare and now < end:
                lake = draw.choice(watching.lakes)
                if lake not in back:
                    lake.rename(lake.with_suffix(".gone"))
                    back[lake], lost = now + timedelta(hours=draw.uniform(1, 30)), lost + 1
            for _ in range(2 if draw.random() < 0.05 else 1):
                watching.tick(now)
                ticks += 1
        # Held back and settling misses are told once the time for that is over.
        watching.tick(end + timedelta(seconds=61))
        watching.tick(end + timedelta(minutes=17))
        return {
            "ticks": ticks,
            "downtimes": downtimes,
            "lost lakes": lost,
            **judged(watching, made, end),
        }


def judged(watching: Watching, made: World, end: datetime) -> dict[str, float]:
    """What the watcher has got wrong, by the oracle."""
    wrong: Counter[str] = Counter()
    cycles = 0
    for one in made.products:
        with watching.store.read() as tx:
            rows = ledger.history(tx, (one.name, "t", "s"))
        kept = {row.cycle.due_at: row.status for row in rows if row.cycle.due_at <= end}
        dues = [due for due, _ in one.dues(BEGIN, end)]
        wrong["cycles that are none, or lack"] += len(set(dues) ^ set(kept))
        for due in dues:
            cycles += 1
            # Deliveries stop at the end, the last ticks come a little later.
            expected = made.expected(one, due, end)
            if expected == "pending":
                continue
            key = (one.name, due.isoformat())
            bad = expected in ("late", "missing", "never")
            heard = watching.told[key] + watching.past[key]
            wrong["wrong end states"] += kept.get(due) != expected
            wrong["false alarms"] += not bad and heard > 0
            wrong["told twice"] += heard > 1
            if kept.get(due) != expected or (not bad and heard):
                came = made.truth[key[0], due]
                print(f"{one}: due {due}, came {came}, expected {expected}, found {kept.get(due)}")
            if bad and heard == 0:
                wrong["misses that nobody was told of"] += 1
            ended = expected == "late" and watching.told[key] > 0
            wrong["ends that nobody was told of"] += ended and watching.over[key] == 0
    names = (
        "cycles that are none, or lack",
        "wrong end states",
        "false alarms",
        "misses that nobody was told of",
        "told twice",
        "ends that nobody was told of",
    )
    return {"cycles": cycles, **{name: wrong[name] for name in names}}


def main() -> int:
    args = arguments(__doc__ or "", products="how many products", days="how many days", seed="of the draws")
    count = args.products or (12 if args.quick else 400)
    days = args.days or (40 if args.quick else 90)
    metrics = run(count, days, 240 if args.quick else 15, args.seed or 1)
    goals = dict.fromkeys(list(metrics)[4:], ("<", 1.0))
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
