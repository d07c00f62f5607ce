"""Months of a mesh with a watcher that is down at times, against an oracle that shares no code with it.

Products of many cadences and zones over changes of the clocks; deliveries that are early, in time, late,
written again, taken away or never come; contracts that are edited, moved, renamed, retired and promised
again; watchers that are down for days, tick twice, or whose clock goes back or ahead for a while; lakes that
vanish or cannot be read. Wanted: no false alarm, no miss without a message, no wrong end state.

Pauses between ticks are drawn between a quarter and seven quarters of `--pause`. The state lies in the folder
for temporary files: TMPDIR=/dev/shm spares the disk.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from time import process_time

from _report import arguments, finish
from _watch_oracle import Cycle, Mesh, mesh
from _watch_products import CADENCES
from _watching import BEGIN, Watching

from dq.dataquality.delivery import cycle_store, replay
from dq.dataquality.delivery.replay import slo_keys

WRONG = (
    "cycles that are none, or lack",
    "wrong end states",
    "false alarms",
    "misses without a message",
    "told twice",
    "ends without a message",
    "platform incidents that never end",
    "ticks of a wrong clock that were judged",
    "verdicts that are not derived again",
)


class Run:
    """A mesh, its watcher, and what happens to both."""

    def __init__(self, folder: Path, mesh_: Mesh, end: datetime, pause: int) -> None:
        self.mesh, self.draw, self.end, self.pause = mesh_, mesh_.draw, end, pause
        self.watching = Watching(folder, mesh_)
        # Of each hundred ticks, about so many as there are hours between them see something rare.
        self.rare = pause / 15_000
        self.happened: Counter[str] = Counter()
        # The last tick, and the start of the machine at it.
        self.last, self.trusted = BEGIN, ""

    def go(self) -> None:
        """From the first tick to the last."""
        self._tick(BEGIN)
        now, end, day = BEGIN, self.end, 0
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
            if (now - BEGIN).days >= day + 5:
                day = (now - BEGIN).days
                print(f"day {day}: {len(self.mesh.cycles)} cycles, {process_time():.0f} s", flush=True)
        # Held back and settling misses are told once the time for that is over.
        for later in (timedelta(seconds=61), timedelta(minutes=17)):
            self._deliver(end + later)
            self._tick(end + later)

    def _rarely(self, times: float = 1.0) -> bool:
        return self.draw.random() < times * self.rare

    def _tick(self, now: datetime) -> None:
        self.watching.tick(now)
        with self.watching.clocked("oracle"):
            self.mesh.tick(now, self.watching.reachable)
        self.happened["ticks"] += 1
        self.last, self.trusted = now, self.watching.start

    def _deliver(self, now: datetime) -> None:
        with self.watching.clocked("files"):
            for came in self.mesh.pass_to(now):
                self.watching.deliver(*came)

    def _lose(self, now: datetime) -> None:
        lake, unreadable = self.draw.choice(self.watching.lakes), self.draw.random() < 0.5
        if self._rarely(2) and lake not in self.watching.lost:
            until = now + timedelta(hours=self.draw.uniform(1, 30))
            self.watching.lose(lake, until, unreadable=unreadable)
            self.happened["unreadable lakes" if unreadable else "lost lakes"] += 1

    def _clock_is_wrong(self, now: datetime, step: timedelta) -> bool:
        """Lets the clock go wrong for some ticks, less than an hour; whether it is so for the whole pause.

        Who restarts the machine meanwhile leaves nothing to compare the clock with, unless it is behind
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
        for instant in ago:
            judged = self.watching.tick(now - instant, now - instant + wrong)
            self.happened["ticks of a wrong clock that were judged"] += judged
        return self.draw.random() < 0.3

    def _edit(self, now: datetime) -> None:
        """Lets one contract be another one, or promises again what was retired."""
        mesh_, watching = self.mesh, self.watching
        if self._rarely(8 * max(1.0, len(watching.watched) / 200)):
            kind = self.draw.choice(("edit", "edit", "move", "rename", "retire"))
            if kind == "edit":
                watching.edit(mesh_.edit(self.last))
            elif kind == "rename":
                watching.rename(*mesh_.rename(now))
            elif kind == "retire":
                watching.retire(mesh_.retire(now))
            else:
                self._move()
        for product in mesh_.returned(now):
            watching.edit(product)
        self._deliver(now)

    def _move(self) -> None:
        watching = self.watching
        name, lake = self.draw.choice(list(watching.watched)), self.draw.choice(watching.lakes)
        if not {lake, watching.place[watching.home[name]]} & watching.lost.keys():
            watching.move(name, lake)
            self.mesh.edited["moved"] += 1


def run(count: int, days: int, pause: int, seed: int) -> dict[str, float]:
    """One simulation; every figure of WRONG should be 0."""
    end = BEGIN + timedelta(days=days)
    with tempfile.TemporaryDirectory() as folder:
        # What is promised a little later is watched too: the last of what is told is told then.
        mesh_ = mesh(count, BEGIN, end + timedelta(hours=1), random.Random(seed))
        done = Run(Path(folder), mesh_, end, pause)
        done.go()
        watching, happened = done.watching, done.happened
        wrong = judged(watching, mesh_, end)
        wrong["platform incidents that never end"] = len(watching.platform)
        wrong["ticks of a wrong clock that were judged"] = happened["ticks of a wrong clock that were judged"]
        kinds = ("back", "a little back", "ahead")
        return {
            "products": count,
            "zones": len({product.zone for product in mesh_.products.values()}),
            "days": days,
            "cycles": len(mesh_.cycles),
            **{name: happened[name] for name in ("ticks", "downtimes", "lost lakes", "unreadable lakes")},
            **{f"clocks that went {kind}": happened[f"clocks that went {kind}"] for kind in kinds},
            **{
                f"contracts {how}": mesh_.edited[how]
                for how in ("edited", "moved", "renamed", "retired", "promised again")
            },
            "deliveries written again": mesh_.redeliveries,
            "deliveries taken away": mesh_.revocations,
            **{f"cycles {status}": number for status, number in sorted(ended(mesh_).items())},
            **{f"CPU seconds, {what}": seconds for what, seconds in watching.seconds.items()},
            **{name: wrong[name] for name in WRONG},
        }


def ended(mesh_: Mesh) -> Counter[str]:
    """Number of cycles by their end."""
    return Counter(cycle.status for cycle in mesh_.cycles.values())


def judged(watching: Watching, mesh_: Mesh, end: datetime) -> Counter[str]:
    """Errors of the watcher, by the oracle."""
    wrong: Counter[str] = Counter()
    cycles: dict[str, dict[datetime, Cycle]] = defaultdict(dict)
    for (name, due), cycle in mesh_.cycles.items():
        if due <= end:
            cycles[name][due] = cycle
    for name, own in cycles.items():
        with watching.store.read() as tx:
            rows = cycle_store.all_cycles(tx, (name, "t", "s"))
        statuses = {row.cycle.due_at: row.status for row in rows if row.cycle.due_at <= end}
        wrong["cycles that are none, or lack"] += len(own.keys() ^ statuses.keys())
        for due, cycle in sorted(own.items()):
            # What breaks after the last tick is told by another one.
            if cycle.breach > end:
                continue
            key = (name, due.isoformat())
            bad = cycle.status in ("late", "missing", "never")
            events = watching.told[key] + watching.past[key]
            false = events > 0 and not (bad or cycle.broken)
            closed = cycle.status in ("late", "never", "withdrawn")
            wrong["wrong end states"] += statuses.get(due) != cycle.status
            wrong["false alarms"] += false
            wrong["told twice"] += events > 1
            wrong["misses without a message"] += bad and events == 0
            wrong["ends without a message"] += closed and watching.told[key] > watching.over[key]
            if statuses.get(due) != cycle.status or false or (bad and not events):
                print(f"{mesh_.products[name]}: {cycle}, found {statuses.get(due)}, heard {events}")
    with watching.store.read() as tx:
        wrong["verdicts that are not derived again"] = sum(
            bool(cycle.differences) or not cycle.is_proven for cycle in replay.replay(tx, slo_keys(tx))
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
