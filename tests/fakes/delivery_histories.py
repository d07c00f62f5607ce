"""Random histories of deliveries in a real store, with watchers that are overtaken and killed.

The oracle knows only what was done: which days were delivered, taken away, excluded, and how they were
checked. It shares nothing with the product. Readers are those of a catalog, and those who ask for the state
as of an earlier instant.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.incident import CycleStatus
from dq.contracts.outcome import DqError, Location, ReadError, Severity
from dq.contracts.schedule.clock import DstNote
from dq.contracts.slo import Cycle
from dq.dataquality import results
from dq.dataquality.complete_through import complete_through
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import CycleRecord, Evidence, VerdictInputs, evaluate_inputs
from dq.dataquality.delivery.cycle_store import CycleUpdate, Excuse
from dq.operations import delivery_state as writer
from dq.operations.runtime.context import RuntimeContext
from dq.operations.runtime.settings import Settings
from dq.registry import delivery_state
from dq.registry.catalog import Action, ActionKind, Catalog, LiveTable
from dq.registry.catalogs.local import Local
from dq.registry.table import COMPLETE_THROUGH, CONTRACT, OBJECT, STATE, TableSpec, marked
from dq.store.engine import Store

FIRST = datetime(2026, 11, 1, 6, tzinfo=UTC)
DAY, GRACE = timedelta(days=1), timedelta(hours=1)
GIVE_UP = 4 * DAY


class Killed(BaseException):
    """A watcher that ends without doing anything further."""


@dataclass
class Day:
    """What was done to the delivery that is due on a day."""

    delivered_at: datetime | None = None
    excluded: bool = False
    fails: bool = False
    unreadable: bool = False
    # Whether the watcher has found out, and what it found.
    verdict: str = "pending"


@dataclass
class Truth:
    """The days that are due, and the table's own checks."""

    days: list[Day] = field(default_factory=list)

    def through(self) -> int:
        """The number of days before the first hole that the watcher knows of."""
        for number, day in enumerate(self.days):
            if day.verdict == "excluded":
                continue
            if day.verdict != "delivered" or day.fails:
                return number
        return len(self.days)


@dataclass
class Interrupted:
    """A catalog that does something else before and after each request: others come in between, it fails."""

    catalog: Catalog
    between: Callable[[str], None]
    truth: Truth
    violations: list[str]
    limits: list[int] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.catalog.id

    def read(self, database: str, name: str) -> LiveTable | None:
        self.between("before read")
        live = self.catalog.read(database, name)
        limit = self.truth.through()
        self.between("after read")
        self.limits.append(max(limit, self.truth.through()))
        return live

    def apply(self, action: Action) -> None:
        # What was true when the state was computed, or has become true since.
        limit = max(self.limits[-1], self.truth.through())
        self.between("before write")
        limit = max(limit, self.truth.through())
        self.catalog.apply(action)
        assert action.after is not None
        seen = days_through(action.after.parameter(COMPLETE_THROUGH))
        if seen > limit:
            self.violations.append(f"wrote {seen} days, {limit} were complete")
        self.between("after write")


def days_through(text: str) -> int:
    """The number of days that a reader of the catalog takes to be complete."""
    if text in ("", "none"):
        return 0
    return (date.fromisoformat(text.removeprefix("day=")) - FIRST.date()).days + 2


@dataclass
class Outcome:
    violations: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1


class Scene:
    """A store with one SLO, a table in a catalog, and what the oracle knows."""

    def __init__(self, store: Store, name: str, draw: random.Random, outcome: Outcome) -> None:
        self.store, self.name, self.draw, self.outcome = store, name, draw, outcome
        self.key, self.table = (name, "orders", "daily"), ("shop", name)
        self.truth, self.now, self.depth = Truth(), FIRST - DAY / 2, 0
        # What was complete at the end of each tick.
        self.complete_at: dict[datetime, int] = {}
        self.catalog = Local(store)
        spec = TableSpec(*self.table, "s3://lake/orders", "parquet", ())
        table = marked(spec, {CONTRACT: name, OBJECT: "orders"})
        self.catalog.apply(Action(ActionKind.CREATE, self.table, after=table))
        with store.write() as tx:
            cycle_store.move_watermarks(tx, [self.key], self.now)
            tracked = delivery_state.TrackedTable(self.key[:2], name, self.table)
            delivery_state.track(tx, writer.catalog_name(self.context()), [tracked])

    def context(self) -> RuntimeContext:
        settings = replace(Settings(), watch_catalog="local", watch_catalog_id=self.name)
        return RuntimeContext({}, Path(), self.now, settings)

    def due(self, number: int) -> datetime:
        return FIRST + number * DAY

    # What happens to the data.

    def change(self) -> None:
        self.now += timedelta(hours=self.draw.choice([1, 5, 12, 24]))
        while self.due(len(self.truth.days)) <= self.now:
            self.truth.days.append(Day())
        for number, day in enumerate(self.truth.days):
            chance = self.draw.random()
            is_new = number >= len(self.truth.days) - 2
            if day.delivered_at is None and chance < (0.5 if is_new else 0.2):
                day.delivered_at, day.unreadable = self.now, False
                self.outcome.count("late arrivals" if self.now > self.due(number) + GRACE else "deliveries")
            elif day.delivered_at is not None and chance < 0.04:
                day.delivered_at = None
                self.outcome.count("removed")
            elif chance > 0.97:
                day.excluded = not day.excluded
                self.excuse(number, day.excluded)
            elif chance > 0.94:
                day.unreadable = not day.unreadable

    def excuse(self, number: int, is_excluded: bool) -> None:
        excuse = Excuse(self.key, self.due(number), self.now, "ann", "move", undone=not is_excluded)
        with self.store.write() as tx:
            cycle_store.record_excuses(tx, [excuse])
        self.outcome.count("exclusions")

    def check(self) -> None:
        """A check of a partition, which fails or passes."""
        if not self.truth.days:
            return
        number = self.draw.randrange(len(self.truth.days))
        fails = self.draw.random() < 0.4
        status = self.draw.choice([Status.FAIL, Status.ERROR]) if fails else Status.PASS
        result = CheckResult(
            "required", "id", "orders", "id", status, Severity.ERROR, "", "", "", Location("x")
        )
        with self.store.write() as tx:
            results.save_run(
                tx, contract=self.name, object="orders", version="1.0.0",
                scope=f"day={self.due(number) - DAY:%F}", results=[result], jobs=1, now=self.now,
            )  # fmt: skip
        self.truth.days[number].fails = fails
        self.outcome.count("checks")

    # What the watcher does, with its own functions.

    def tick(self) -> None:
        """Insert what is due and evaluate all cycles; a kill between transactions leaves a part undone."""
        with self.store.write() as tx:
            slo = SimpleNamespace(key=self.key, contract=SimpleNamespace(version="1.0.0", digest=""))
            cycles = [self.cycle(number) for number in range(len(self.truth.days))]
            cycle_store.insert_cycles(tx, [(slo, cycles)], self.now)  # type: ignore[list-item]
        self.maybe_kill()
        with self.store.read() as tx:
            records = cycle_store.all_cycles(tx, self.key)
        verdicts = [self.verdict(record, self.truth.days[number]) for number, record in enumerate(records)]
        with self.store.write() as tx:
            cycle_store.apply_updates(tx, verdicts, self.now)
        for day, update in zip(self.truth.days, verdicts, strict=False):
            status = update.verdict.status
            if status is CycleStatus.EXCUSED:
                day.verdict = "excluded"
            elif update.delivered_at is not None:
                day.verdict = "delivered"
            else:
                day.verdict = status.value
        self.complete_at[self.now] = self.truth.through()
        self.maybe_kill()
        self.record()

    def maybe_kill(self) -> None:
        if self.draw.random() < 0.04:
            raise Killed

    def record(self) -> None:
        writer.record_changes(self.context(), self.store, (), None)

    def cycle(self, number: int) -> Cycle:
        due_at = self.due(number)
        partitions = ((("day", f"{due_at - DAY:%F}"),),)
        return Cycle(
            *self.key, due_at, due_at + GRACE, due_at.replace(tzinfo=None), DstNote.NORMAL, partitions
        )

    def verdict(self, record: CycleRecord, day: Day) -> CycleUpdate:
        cycle = record.cycle
        evidence = (
            Evidence("marker", day.delivered_at, first_seen=day.delivered_at) if day.delivered_at else None
        )
        if day.unreadable:
            evidence = Evidence("marker", readable=False, problem="no answer")
        inputs = VerdictInputs(evidence, cycle.due_at + GIVE_UP, excused="move" if day.excluded else "")
        return CycleUpdate(record, evaluate_inputs(cycle, inputs, self.now), evidence)

    def write(self, *, calm: bool = False) -> bool:
        """One run of the catalog's writer; True if it ended by itself and everything was written."""
        interrupted = Interrupted(
            self.catalog, (lambda _: None) if calm else self.between, self.truth, self.outcome.violations
        )
        self.depth += 1
        try:
            writes = writer.write_states(self.context(), self.store, lambda *_: interrupted)  # type: ignore[arg-type, return-value]
        except Killed:
            self.outcome.count("kills")
            return False
        finally:
            self.depth -= 1
        assert writes is not None
        self.outcome.count("writes" if writes.written else "runs without a write")
        return not writes.failed and not writes.waiting

    def between(self, moment: str) -> None:
        """What happens between two requests: a kill, an outage, or another watcher comes first."""
        chance = self.draw.random()
        if chance < 0.08:
            raise Killed
        if chance < 0.14 and moment.startswith("before"):
            self.outcome.count("outages")
            raise ReadError("the catalog does not answer.", "Try again.")
        if chance < 0.4 and self.depth < 3:
            # Others go on while this writer hangs; sometimes for longer than its lease.
            self.outcome.count("interleavings")
            if self.draw.random() < 0.5:
                self.now += delivery_state.LEASE
            self.change()
            self.run()

    def run(self) -> None:
        """A tick and the writer after it, in one process: a kill of the first is the end of both."""
        try:
            if self.draw.random() < 0.9:
                self.tick()
        except Killed:
            self.outcome.count("kills")
        else:
            self.write()

    def replay(self) -> None:
        """Ask for the state as of the end of each tick."""
        with self.store.read() as tx:
            for at, expected in self.complete_at.items():
                through = complete_through(tx, *self.key[:2], as_of=at).through
                seen = (through.due_at - FIRST).days + 1 if through else 0
                self.outcome.count("replays")
                if seen != expected:
                    violation = f"as of {at:%F %H:%M}, {seen} days are complete, {expected} were"
                    self.outcome.violations.append(violation)

    def seen(self) -> tuple[int, str]:
        live = self.catalog.read(*self.table)
        assert live is not None
        return days_through(live.spec.parameter(COMPLETE_THROUGH)), live.spec.parameter(STATE)


def play(store: Store, name: str, draw: random.Random) -> Outcome:
    """Play one history, of a contract of its own; the outcome has what a reader must not have seen."""
    outcome = Outcome()
    scene = Scene(store, name, draw, outcome)
    for _ in range(draw.randrange(3, 9)):
        scene.change()
        if draw.random() < 0.3:
            scene.check()
            scene.record()
        scene.run()
        if draw.random() < 0.3:
            # A writer that comes after the lease of killed ones, and that nothing disturbs.
            scene.now += delivery_state.LEASE
            scene.record()
            settle(scene, outcome)
    scene.now += delivery_state.LEASE
    while True:
        try:
            scene.tick()
            break
        except Killed:
            outcome.count("kills")
            scene.now += delivery_state.LEASE
    settle(scene, outcome)
    scene.replay()
    return outcome


def settle(scene: Scene, outcome: Outcome) -> None:
    """What a reader sees once a tick was not disturbed is exactly what the oracle expects."""
    try:
        is_done = scene.write(calm=True)
    except DqError as error:
        outcome.violations.append(str(error))
        return
    seen, state = scene.seen()
    expected = scene.truth.through()
    outcome.count("settled")
    if not is_done or seen != expected:
        outcome.violations.append(f"a reader sees {seen} days ({state}), {expected} are complete")
