"""The product under test of the simulation: ticks over real files, and what they told."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import process_time

from _watch_oracle import Mesh
from _watch_products import Product

from dq.contracts import slo as promise
from dq.contracts.incident import Breach, Recovery
from dq.contracts.yaml.parse import parse
from dq.dataquality.delivery import cycle_store, heartbeat
from dq.dataquality.delivery import heartbeat as machine_clock
from dq.dataquality.delivery.cycle import DeliveryPlace, UnnotifiedMiss, WatchTarget
from dq.dataquality.delivery.heartbeat import Uptime
from dq.dataquality.delivery.notify import PLATFORM
from dq.dataquality.delivery.probe_pool import ProbePool, ProbeTask, ProbeTimeout, R
from dq.dataquality.delivery.tick import tick
from dq.lake.storage import LocalFiles
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


class OneByOne(ProbePool):
    """Looks one after another: no storage is silent here, and threads would only take turns."""

    def run(self, tasks: Sequence[ProbeTask[R]]) -> list[R | ProbeTimeout]:
        return [task.probe(task.files) for task in tasks]


class Watching:
    """The product under test: ticks over real files, and what it told."""

    def __init__(self, folder: Path, mesh: Mesh) -> None:
        self.folder, self.lakes = folder, [folder / f"lake{number}" for number in range(LAKES)]
        for lake in self.lakes:
            lake.mkdir()
        # Where a product's data lies: the lake by folder, and the folder by its names.
        self.place = {name: self.lakes[number % LAKES] for number, name in enumerate(mesh.products)}
        self.home = {name: name for name in mesh.products}
        self.store = open_store(f"sqlite:///{folder / 'store.db'}")
        self.watched = {name: self._watched(product) for name, product in mesh.products.items()}
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

    def _watched(self, product: Product) -> WatchTarget:
        # Misses of each cadence are counted over some tens of cycles.
        window = "3d" if product.step else "30d"
        text = CONTRACT.format(
            name=product.name, cron=product.cron, zone=product.zone, grace=product.grace, window=window
        )
        parsed = parse(text.encode(), f"{product.name}.odcs.yaml")
        assert parsed.contract is not None, parsed.findings
        slos, findings = promise.read_slos(parsed.contract)
        assert not findings, findings
        home = self.home[product.name]
        place = DeliveryPlace(str(self.place[home] / home), "parquet", "_SUCCESS")
        return WatchTarget(slos[0], place, LocalFiles())

    def edit(self, product: Product) -> None:
        self.withdrawn.pop(product.name, None)
        self.next_due.pop(product.name, None)
        self.watched[product.name] = self._watched(product)

    def rename(self, before: Product, after: Product) -> None:
        self.home[after.name] = self.home[before.name]
        self.retire(before, "its contract is another one now")
        self.edit(after)

    def retire(self, product: Product, why: str = "its contract is retired") -> None:
        self.withdrawn[product.name] = why
        del self.watched[product.name]
        self.next_due.pop(product.name, None)

    def move(self, name: str, lake: Path) -> None:
        """Moves a product with its data to another lake."""
        home = self.home[name]
        before = self.place[home] / home
        self.place[home] = lake
        if before.exists():
            before.rename(lake / home)
        for watched in self.watched:
            if self.home[watched] == home:
                self.watched[watched] = replace(
                    self.watched[watched], place=DeliveryPlace(str(lake / home), "parquet", "_SUCCESS")
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
    def reachable(self) -> set[str]:
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
            doubted = heartbeat.evaluation_problem(tx, now, is_current=True, uptime=uptime) is not None
        with self.store.write() as tx:
            if doubted:
                machine_clock.record_leap(tx, now, uptime)
                return False
            heartbeat.record_tick(tx, now, uptime)

        def past(_: object, misses: object) -> None:
            assert isinstance(misses, list)
            for target in misses:
                assert isinstance(target, UnnotifiedMiss)
                self.past[target.record.cycle.contract, target.record.cycle.due_at.isoformat()] += 1

        def notify(_: object, event: Breach | Recovery) -> None:
            broken = isinstance(event, Breach)
            if event.key.group == "s":
                events = self.told if broken else self.over
                events[event.key.contract, event.subject] += 1
            elif event.key.contract == PLATFORM:
                (self.platform.add if broken else self.platform.discard)(event.key)

        ended = {(name, "t", "s"): why for name, why in self.withdrawn.items()}
        with self.store.read() as tx:
            awake = cycle_store.open_states(tx, now)
        # As the command does it, what has nothing due and nothing open is not even read.
        resting = {name for name, due in self.next_due.items() if due > now and name not in awake}
        watched = [target for name, target in self.watched.items() if name not in resting]
        tick(
            self.store,
            watched,
            now,
            notify,
            record_unnotified=past,
            probe_pool=self.lookout,
            unchanged_contracts=resting,
            withdrawal_reason=ended.get,
        )
        for target in watched:
            self.next_due[target.slo.key[0]] = next(iter(target.slo.schedule.after(now))).at
        return True
