"""Months of a mesh with a watcher that is down at times, against an oracle that shares no code with it.

Products of many cadences and zones over changes of the clocks; deliveries that are early, in time, late,
written again, taken away or never come; contracts that are edited, moved, renamed, retired and promised
again; watchers that are down for days, tick twice, or whose clock goes back or ahead for a while; lakes that
vanish or cannot be read. Wanted: no false alarm, no miss that nobody was told of, no wrong end state.

Pauses between ticks are drawn between a quarter and seven quarters of `--pause`. The state lies in the folder
for temporary files: TMPDIR=/dev/shm spares the disk.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import process_time

from _report import arguments, finish
from _watch_oracle import CADENCES, Cycle, Mesh, Product, mesh

from dq.contracts import slo as promise
from dq.contracts.shared.outcome import Breach, Recovery
from dq.contracts.yaml.parse import parse
from dq.dataquality.delivery import ledger
from dq.dataquality.delivery.blindness import PLATFORM
from dq.dataquality.delivery.history import replay
from dq.dataquality.delivery.history.changes import keys
from dq.dataquality.delivery.lake.files import LocalFiles
from dq.dataquality.delivery.sources.lookout import Errand, Lookout, R, Silence
from dq.dataquality.delivery.sources.probe import DeliveryPlace
from dq.dataquality.delivery.state import heartbeat, machine_clock
from dq.dataquality.delivery.state.machine_clock import Uptime
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
          window: {window}
          partition: {{part: "{{due:%Y%m%d%H%M}}"}}
          evidence: [marker]
"""
# Northern clocks go forward in these days, southern ones back.
BEGIN = datetime(2026, 2, 20, tzinfo=UTC)
LAKES = 3
WRONG = (
    "cycles that are none, or lack",
    "wrong end states",
    "false alarms",
    "misses that nobody was told of",
    "told twice",
    "ends that nobody was told of",
    "platform incidents that never end",
    "ticks of a wrong clock that were judged",
    "verdicts that are not derived again",
)


class OneByOne(Lookout):
    """Looks one after another: no storage is silent here, and threads would only take turns."""

    def answers(self, errands: Sequence[Errand[R]]) -> list[R | Silence]:
        return [one.work(one.files) for one in errands]


class Watching:
    """The product under test: ticks over real files, and what it told."""

    def __init__(self, folder: Path, made: Mesh) -> None:
        self.folder, self.lakes = folder, [folder / f"lake{number}" for number in range(LAKES)]
        for lake in self.lakes:
            lake.mkdir()
        # Where a product's data lies: the lake by folder, and the folder by its names.
        self.place = {name: self.lakes[number % LAKES] for number, name in enumerate(made.products)}
        self.home = {name: name for name in made.products}
        self.store = open_store(f"sqlite:///{folder / 'store.db'}")
        self.watched = {name: self._watched(one) for name, one in made.products.items()}
        self.withdrawn: dict[str, str] = {}
        # Of those whose contract is as it was at the last tick.
        self.next_due: dict[str, datetime] = {}
        self.lost: dict[Path, datetime] = {}
        self.told: Counter[tuple[str, str]] = Counter()
        self.over: Counter[tuple[str, str]] = Counter()
        self.past: Counter[tuple[str, str]] = Counter()
        self.platform: set[object] = set()
        self.start, self.lookout = "a start", OneByOne()
        self.seconds: Counter[str] = Counter()

    def _watched(self, one: Product) -> Watched:
        # Misses of each cadence are counted over some tens of cycles.
        window = "3d" if one.step else "30d"
        text = CONTRACT.format(name=one.name, cron=one.cron, zone=one.zone, grace=one.grace, window=window)
        parsed = parse(text.encode(), f"{one.name}.odcs.yaml")
        assert parsed.contract is not None, parsed.findings
        slos, findings = promise.read(parsed.contract)
        assert not findings, findings
        home = self.home[one.name]
        place = DeliveryPlace(str(self.place[home] / home), "parquet", "_SUCCESS")
        return Watched(slos[0], place, LocalFiles())

    def edit(self, one: Product) -> None:
        self.withdrawn.pop(one.name, None)
        self.next_due.pop(one.name, None)
        self.watched[one.name] = self._watched(one)

    def rename(self, before: Product, after: Product) -> None:
        self.home[after.name] = self.home[before.name]
        self.retire(before, "its contract is another one now")
        self.edit(after)

    def retire(self, one: Product, why: str = "its contract is retired") -> None:
        self.withdrawn[one.name] = why
        del self.watched[one.name]
        self.next_due.pop(one.name, None)

    def move(self, name: str, lake: Path) -> None:
        """Moves a product with its data to another lake."""
        home = self.home[name]
        before = self.place[home] / home
        self.place[home] = lake
        if before.exists():
            before.rename(lake / home)
        for one in self.watched:
            if self.home[one] == home:
                self.watched[one] = replace(
                    self.watched[one], place=DeliveryPlace(str(lake / home), "parquet", "_SUCCESS")
                )

    def deliver(self, when: datetime, name: str, part: str, written: bool) -> None:
        home = self.home[name]
        lake = self.place[home]
        # A lake that nobody can see is written to all the same.
        folder = str((lake.with_suffix(".gone") if lake in self.lost else lake) / home / f"part={part}")
        if not written:
            shutil.rmtree(folder)
            return
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103  # a third of the time of Path's
        marker = f"{folder}/_SUCCESS"
        os.close(os.open(marker, os.O_CREAT))
        os.utime(marker, (when.timestamp(),) * 2)

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
        return {name for name, home in self.home.items() if self.place[home] not in self.lost}

    @contextmanager
    def clocked(self, what: str) -> Iterator[None]:
        """Counts the processor's seconds of something."""
        begun = process_time()
        yield
        self.seconds[what] += process_time() - begun

    def tick(self, now: datetime, clock: datetime | None = None) -> bool:
        """One tick as the command does it, by a clock that may be wrong; whether it judged."""
        with self.clocked("watcher"):
            return self._tick(clock or now, Uptime(self.start, now - BEGIN))

    def _tick(self, now: datetime, uptime: Uptime) -> bool:
        with self.store.read() as tx:
            doubted = heartbeat.doubt(tx, now, real=True, uptime=uptime) is not None
        with self.store.write() as tx:
            if doubted:
                machine_clock.note_doubt(tx, now, uptime)
                return False
            heartbeat.beat(tx, now, uptime)

        def past(_: object, misses: object) -> None:
            assert isinstance(misses, list)
            for one in misses:
                assert isinstance(one, PastMiss)
                self.past[one.kept.cycle.contract, one.kept.cycle.due_at.isoformat()] += 1

        def tell(_: object, event: Breach | Recovery) -> None:
            broken = isinstance(event, Breach)
            if event.key.group == "s":
                heard = self.told if broken else self.over
                heard[event.key.contract, event.subject] += 1
            elif event.key.contract == PLATFORM:
                (self.platform.add if broken else self.platform.discard)(event.key)

        ended = {(name, "t", "s"): why for name, why in self.withdrawn.items()}
        with self.store.read() as tx:
            awake = ledger.open_states(tx, now)
        # As the command does it, what has nothing due and nothing open is not even read.
        rest = {name for name, due in self.next_due.items() if due > now and name not in awake}
        watched = [one for name, one in self.watched.items() if name not in rest]
        tick(
            self.store, watched, now, tell, past=past, lookout=self.lookout, unread=rest, withdrawn=ended.get
        )
        for one in watched:
            self.next_due[one.slo.key[0]] = next(iter(one.slo.schedule.after(now))).at
        return True


class Run:
    """A mesh, its watcher, and what happens to both."""

    def __init__(self, folder: Path, made: Mesh, end: datetime, pause: int) -> None:
        self.made, self.draw, self.end, self.pause = made, made.draw, end, pause
        self.watching = Watching(folder, made)
        # Of each hundred ticks, about so many as there are hours between them see something rare.
        self.rare = pause / 15_000
        self.happened: Counter[str] = Counter()
        # The last tick, and the start of the machine at it.
        self.last, self.trusted = BEGIN, ""

    def go(self) -> None:
        """From the first tick to the last."""
        self._tick(BEGIN)
        now, end, said = BEGIN, self.end, 0
        while now < end:
            step = timedelta(seconds=round(60 * self.pause * self.draw.uniform(0.25, 1.75)))
            if self._rarely():
                step = timedelta(hours=self.draw.uniform(2, 72))
                self.happened["downtimes"] += 1
                if self.draw.random() < 0.5:
                    self.watching.start = f"start {self.happened['downtimes']}"
            now = min(now + step, end)
            self._deliver(now)
            self.watching.find(now, all_of_them=now == end)
            if now < end:
                self._lose(now)
                if self._clock_is_wrong(now, step):
                    continue
                self._edit(now)
            for _ in range(2 if self.draw.random() < 0.05 else 1):
                self._tick(now)
            if (now - BEGIN).days >= said + 5:
                said = (now - BEGIN).days
                print(f"day {said}: {len(self.made.cycles)} cycles, {process_time():.0f} s", flush=True)
        # Held back and settling misses are told once the time for that is over.
        for later in (timedelta(seconds=61), timedelta(minutes=17)):
            self._deliver(end + later)
            self._tick(end + later)

    def _rarely(self, times: float = 1.0) -> bool:
        return self.draw.random() < times * self.rare

    def _tick(self, now: datetime) -> None:
        self.watching.tick(now)
        with self.watching.clocked("oracle"):
            self.made.tick(now, self.watching.seen)
        self.happened["ticks"] += 1
        self.last, self.trusted = now, self.watching.start

    def _deliver(self, now: datetime) -> None:
        with self.watching.clocked("files"):
            for came in self.made.pass_to(now):
                self.watching.deliver(*came)

    def _lose(self, now: datetime) -> None:
        lake, unreadable = self.draw.choice(self.watching.lakes), self.draw.random() < 0.5
        if self._rarely(2) and lake not in self.watching.lost:
            until = now + timedelta(hours=self.draw.uniform(1, 30))
            self.watching.lose(lake, until, unreadable=unreadable)
            self.happened["unreadable lakes" if unreadable else "lost lakes"] += 1

    def _clock_is_wrong(self, now: datetime, step: timedelta) -> bool:
        """Lets the clock go wrong for some ticks, less than an hour; whether it is so for the whole pause.

        Who starts the machine anew meanwhile leaves nothing to compare the clock with, unless it is behind
        the last tick.
        """
        if not self._rarely(6):
            return False
        kind = self.draw.choice(("back", "a little back", "ahead"))
        if kind != "back" and self.watching.start != self.trusted:
            return False
        wrong = {
            "back": -timedelta(hours=self.draw.uniform(24, 48)) - step,
            "a little back": -timedelta(seconds=self.draw.uniform(61, max(step.total_seconds(), 62))),
            "ahead": timedelta(hours=self.draw.uniform(0.05, 40)),
        }[kind]
        self.happened[f"clocks that went {kind}"] += 1
        room = min(step, timedelta(minutes=55))
        ago = sorted((self.draw.random() * room for _ in range(self.draw.randint(1, 4))), reverse=True)
        for one in ago:
            judged = self.watching.tick(now - one, now - one + wrong)
            self.happened["ticks of a wrong clock that were judged"] += judged
        return self.draw.random() < 0.3

    def _edit(self, now: datetime) -> None:
        """Lets one contract be another one, or promises again what was retired."""
        made, watching = self.made, self.watching
        if self._rarely(8 * max(1.0, len(watching.watched) / 200)):
            kind = self.draw.choice(("edit", "edit", "move", "rename", "retire"))
            if kind == "edit":
                watching.edit(made.edit(self.last))
            elif kind == "rename":
                watching.rename(*made.rename(now))
            elif kind == "retire":
                watching.retire(made.retire(now))
            else:
                self._move()
        for one in made.returned(now):
            watching.edit(one)
        self._deliver(now)

    def _move(self) -> None:
        watching = self.watching
        name, lake = self.draw.choice(list(watching.watched)), self.draw.choice(watching.lakes)
        if not {lake, watching.place[watching.home[name]]} & watching.lost.keys():
            watching.move(name, lake)
            self.made.edited["moved"] += 1


def run(count: int, days: int, pause: int, seed: int) -> dict[str, float]:
    """One simulation; every figure of WRONG should be 0."""
    end = BEGIN + timedelta(days=days)
    with tempfile.TemporaryDirectory() as folder:
        # What is promised a little later is watched too: the last of what is told is told then.
        made = mesh(count, BEGIN, end + timedelta(hours=1), random.Random(seed))
        done = Run(Path(folder), made, end, pause)
        done.go()
        watching, happened = done.watching, done.happened
        wrong = judged(watching, made, end)
        wrong["platform incidents that never end"] = len(watching.platform)
        wrong["ticks of a wrong clock that were judged"] = happened["ticks of a wrong clock that were judged"]
        kinds = ("back", "a little back", "ahead")
        return {
            "products": count,
            "zones": len({one.zone for one in made.products.values()}),
            "days": days,
            "cycles": len(made.cycles),
            **{name: happened[name] for name in ("ticks", "downtimes", "lost lakes", "unreadable lakes")},
            **{f"clocks that went {kind}": happened[f"clocks that went {kind}"] for kind in kinds},
            **{
                f"contracts {how}": made.edited[how]
                for how in ("edited", "moved", "renamed", "retired", "promised again")
            },
            "deliveries written again": made.redeliveries,
            "deliveries taken away": made.revocations,
            **{f"cycles {status}": number for status, number in sorted(ended(made).items())},
            **{f"CPU seconds, {what}": seconds for what, seconds in watching.seconds.items()},
            **{name: wrong[name] for name in WRONG},
        }


def ended(made: Mesh) -> Counter[str]:
    """How many cycles ended how."""
    return Counter(cycle.status for cycle in made.cycles.values())


def judged(watching: Watching, made: Mesh, end: datetime) -> Counter[str]:
    """What the watcher has got wrong, by the oracle."""
    wrong: Counter[str] = Counter()
    cycles: dict[str, dict[datetime, Cycle]] = defaultdict(dict)
    for (name, due), cycle in made.cycles.items():
        if due <= end:
            cycles[name][due] = cycle
    for name, own in cycles.items():
        with watching.store.read() as tx:
            rows = ledger.history(tx, (name, "t", "s"))
        kept = {row.cycle.due_at: row.status for row in rows if row.cycle.due_at <= end}
        wrong["cycles that are none, or lack"] += len(own.keys() ^ kept.keys())
        for due, cycle in sorted(own.items()):
            # What breaks after the last tick is told by another one.
            if cycle.breach > end:
                continue
            key = (name, due.isoformat())
            bad = cycle.status in ("late", "missing", "never")
            heard = watching.told[key] + watching.past[key]
            false = heard > 0 and not (bad or cycle.broken)
            closed = cycle.status in ("late", "never", "withdrawn")
            wrong["wrong end states"] += kept.get(due) != cycle.status
            wrong["false alarms"] += false
            wrong["told twice"] += heard > 1
            wrong["misses that nobody was told of"] += bad and heard == 0
            wrong["ends that nobody was told of"] += closed and watching.told[key] > watching.over[key]
            if kept.get(due) != cycle.status or false or (bad and not heard):
                print(f"{made.products[name]}: {cycle}, found {kept.get(due)}, heard {heard}")
    with watching.store.read() as tx:
        wrong["verdicts that are not derived again"] = sum(
            bool(one.differences) or not one.proven for one in replay.replay(tx, keys(tx))
        )
    return wrong


def main() -> int:
    args = arguments(
        __doc__ or "",
        products="how many products",
        days="how many days",
        pause="minutes between ticks, about",
        seed="of the draws",
    )
    count = args.products or (12 if args.quick else 2_000)
    days = args.days or (40 if args.quick else 90)
    mix = ", ".join(f"{share:g} % {name}" for name, share in CADENCES.items())
    print(f"{count} products ({mix}), {days} days from {BEGIN:%Y-%m-%d}")
    metrics = run(count, days, args.pause or (240 if args.quick else 90), args.seed or 1)
    return finish(metrics, dict.fromkeys(WRONG, ("<", 1.0)), args)


if __name__ == "__main__":
    sys.exit(main())
