"""Months of a mesh with a watcher that is down at times, against an oracle that shares no code with it.

Products of many cadences and zones over changes of the clocks; deliveries that are early, in time, late,
written again, taken away or never come; contracts that are edited; watchers that are down for days, tick
twice or go back in time; lakes that vanish or cannot be read. Wanted: no false alarm, no miss that nobody was
told of, no wrong end state.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from _report import arguments, finish
from _watch_oracle import Mesh, Product, mesh

from dq.contracts import slo as promise
from dq.contracts.shared.outcome import Breach, Recovery
from dq.contracts.yaml.parse import parse
from dq.dataquality.delivery import ledger
from dq.dataquality.delivery.history import replay
from dq.dataquality.delivery.history.changes import keys
from dq.dataquality.delivery.lake.files import LocalFiles
from dq.dataquality.delivery.sources.probe import DeliveryPlace
from dq.dataquality.delivery.state import heartbeat
from dq.dataquality.delivery.watch import PastMiss, Watched, tick
from dq.store.engine import open_store

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
# Northern clocks go forward in these days, southern ones back.
BEGIN = datetime(2026, 2, 20, tzinfo=UTC)
LAKES = 3


class Watching:
    """The product under test: ticks over real files, and what it told."""

    def __init__(self, folder: Path, made: Mesh) -> None:
        self.folder, self.lakes = folder, [folder / f"lake{number}" for number in range(LAKES)]
        for lake in self.lakes:
            lake.mkdir()
        self.place = {name: self.lakes[number % LAKES] for number, name in enumerate(made.products)}
        self.store = open_store(f"sqlite:///{folder / 'store.db'}")
        self.watched = {name: self._watched(one) for name, one in made.products.items()}
        self.lost: dict[Path, datetime] = {}
        self.told: Counter[tuple[str, str]] = Counter()
        self.over: Counter[tuple[str, str]] = Counter()
        self.past: Counter[tuple[str, str]] = Counter()
        self.refused = 0

    def _watched(self, one: Product) -> Watched:
        text = CONTRACT.format(name=one.name, cron=one.cron, zone=one.zone, grace=one.grace)
        parsed = parse(text.encode(), f"{one.name}.odcs.yaml")
        assert parsed.contract is not None, parsed.findings
        slos, findings = promise.read(parsed.contract)
        assert not findings, findings
        place = DeliveryPlace(str(self.place[one.name] / one.name), "parquet", "_SUCCESS")
        return Watched(slos[0], place, LocalFiles())

    def edit(self, one: Product) -> None:
        self.watched[one.name] = self._watched(one)

    def deliver(self, when: datetime, name: str, part: str, written: bool) -> None:
        lake = self.place[name]
        # A lake that nobody can see is written to all the same.
        home = lake.with_suffix(".gone") if lake in self.lost else lake
        folder = home / name / f"part={part}"
        if not written:
            shutil.rmtree(folder)
            return
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "_SUCCESS").touch()
        os.utime(folder / "_SUCCESS", (when.timestamp(),) * 2)

    def lose(self, lake: Path, until: datetime, *, unreadable: bool) -> None:
        """Takes a lake away, or puts something in its place that nobody can read."""
        lake.rename(lake.with_suffix(".gone"))
        if unreadable:
            lake.symlink_to(lake)
        self.lost[lake] = until

    def find(self, now: datetime, *, all_of_them: bool) -> None:
        """Brings back the lakes whose time has come."""
        for lake, until in list(self.lost.items()):
            if now >= until or all_of_them:
                lake.unlink(missing_ok=True)
                lake.with_suffix(".gone").rename(lake)
                del self.lost[lake]

    @property
    def seen(self) -> set[str]:
        """The products whose lake can be seen."""
        return {name for name, lake in self.place.items() if lake not in self.lost}

    def tick(self, now: datetime) -> bool:
        """One tick as the command does it; whether it judged."""
        with self.store.read() as tx:
            if heartbeat.doubt(tx, now, real=False) is not None:
                self.refused += 1
                return False
        with self.store.write() as tx:
            heartbeat.beat(tx, now)

        def past(_: object, misses: object) -> None:
            assert isinstance(misses, list)
            for one in misses:
                assert isinstance(one, PastMiss)
                self.past[one.kept.cycle.contract, one.kept.cycle.due_at.isoformat()] += 1

        def tell(_: object, event: Breach | Recovery) -> None:
            if event.key.group == "s":
                heard = self.told if isinstance(event, Breach) else self.over
                heard[event.key.contract, event.subject] += 1

        tick(self.store, list(self.watched.values()), now, tell, past=past)
        return True


def run(count: int, days: int, pause: int, seed: int) -> dict[str, float]:
    """One simulation; every figure but the first ones should be 0."""
    draw = random.Random(seed)
    end, rare = BEGIN + timedelta(days=days), pause / 15_000
    made = mesh(count, BEGIN, end, draw)
    happened: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        watching = Watching(Path(folder), made)
        watching.tick(BEGIN)
        now = last = BEGIN
        while now < end:
            step = timedelta(minutes=pause)
            if draw.random() < rare:
                step = timedelta(hours=draw.uniform(2, 72))
                happened["downtimes"] += 1
            now = min(now + step, end)
            for came in made.pass_to(now):
                watching.deliver(*came)
            watching.find(now, all_of_them=now == end)
            if draw.random() < 2 * rare and now < end:
                lake, unreadable = draw.choice(watching.lakes), draw.random() < 0.5
                until = now + timedelta(hours=draw.uniform(1, 30))
                if lake not in watching.lost:
                    watching.lose(lake, until, unreadable=unreadable)
                    happened["unreadable lakes" if unreadable else "lost lakes"] += 1
            if draw.random() < 4 * rare:
                watching.edit(made.edit(last))
                for came in made.pass_to(now):
                    watching.deliver(*came)
            if draw.random() < 2 * rare:
                # A clock that goes back judges nothing.
                assert not watching.tick(now - timedelta(hours=draw.uniform(24, 48)) - step)
            for _ in range(2 if draw.random() < 0.05 else 1):
                watching.tick(now)
                made.tick(now, watching.seen)
                happened["ticks"] += 1
            last = now
        # Held back and settling misses are told once the time for that is over.
        for later in (timedelta(seconds=61), timedelta(minutes=17)):
            watching.tick(end + later)
            made.tick(end + later, watching.seen)
        names = ("ticks", "downtimes", "lost lakes", "unreadable lakes")
        return {
            **{name: happened[name] for name in names},
            "edited contracts": made.edits,
            "deliveries written again": made.redeliveries,
            "deliveries taken away": made.revocations,
            "clocks that went back": watching.refused,
            **judged(watching, made, end),
        }


def judged(watching: Watching, made: Mesh, end: datetime) -> dict[str, float]:
    """What the watcher has got wrong, by the oracle."""
    wrong: Counter[str] = Counter()
    for name in made.products:
        with watching.store.read() as tx:
            rows = ledger.history(tx, (name, "t", "s"))
        kept = {row.cycle.due_at: row.status for row in rows if row.cycle.due_at <= end}
        dues = {due for product, due in made.cycles if product == name}
        wrong["cycles that are none, or lack"] += len(dues ^ set(kept))
        for due in sorted(dues):
            cycle = made.cycles[name, due]
            # What breaks after the last tick is told by another one.
            if cycle.breach > end:
                continue
            key = (name, due.isoformat())
            bad = cycle.status in ("late", "missing", "never")
            heard = watching.told[key] + watching.past[key]
            wrong["wrong end states"] += kept.get(due) != cycle.status
            wrong["false alarms"] += not bad and heard > 0
            wrong["told twice"] += heard > 1
            if kept.get(due) != cycle.status or (not bad and heard):
                print(f"{made.products[name]}: {cycle}, found {kept.get(due)}")
            wrong["misses that nobody was told of"] += bad and heard == 0
            ended = cycle.status == "late" and watching.told[key] > 0
            wrong["ends that nobody was told of"] += ended and watching.over[key] == 0
    with watching.store.read() as tx:
        wrong["verdicts that are not derived again"] = sum(
            bool(one.differences) or not one.proven for one in replay.replay(tx, keys(tx))
        )
    names = (
        "cycles that are none, or lack",
        "wrong end states",
        "false alarms",
        "misses that nobody was told of",
        "told twice",
        "ends that nobody was told of",
        "verdicts that are not derived again",
    )
    return {"cycles": len(made.cycles), **{name: wrong[name] for name in names}}


def main() -> int:
    args = arguments(
        __doc__ or "",
        products="how many products",
        days="how many days",
        pause="minutes between ticks",
        seed="of the draws",
    )
    count = args.products or (12 if args.quick else 2_000)
    days = args.days or (40 if args.quick else 90)
    metrics = run(count, days, args.pause or (240 if args.quick else 15), args.seed or 1)
    goals = dict.fromkeys(list(metrics)[9:], ("<", 1.0))
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
