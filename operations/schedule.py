"""Schedules: what is due next, what another dialect calls it, and deliveries taken out of the count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from dq.alerts.drain import Drained
from dq.contracts.outcome import Finding, TextFault, UsageError, iso
from dq.contracts.schedule import clock
from dq.contracts.schedule.clock import Difference, DstPolicy, Due, Note, Schedule, dst_hazards, parse
from dq.contracts.schedule.cron import Dialect
from dq.contracts.slo import ChangedDay, Cycle, Slo, changed_days
from dq.dataquality.delivery import cycle_store, replay
from dq.dataquality.delivery.cycle import label
from dq.dataquality.delivery.cycle_store import Excuse
from dq.operations import alerting
from dq.operations.alerting import FROM_CONTRACT
from dq.operations.key_ownership import settled
from dq.operations.registry_files import load, slos
from dq.operations.runtime.context import aware, called, here

# Clock changes are compared this far ahead.
_AHEAD = timedelta(days=731)
_MOST_EXCUSED = 10_000
_MOMENT = timedelta(microseconds=1)


def utc(moment: datetime) -> str:
    """The instant in UTC and to the second, such as 2026-05-01T06:00:00Z."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass(frozen=True, slots=True)
class DuesOutcome:
    """The next instants at which a schedule is due; `fault` is what is wrong with the expression, if so.

    Fewer than `count` dues: the schedule ends there.
    """

    expression: str
    timezone: str
    count: int
    schedule: Schedule | None = None
    dues: tuple[Due, ...] = ()
    fault: TextFault | None = None

    @property
    def exit_code(self) -> int:
        """As `dq schedule next` ends: 2 the expression or its zone cannot be understood."""
        return UsageError.exit_code if self.fault is not None else 0

    def as_dict(self) -> dict[str, object]:
        """What `dq schedule next --format json` prints."""
        names = {"expression": self.expression, "timezone": self.timezone}
        if self.schedule is None:
            return {**names, "next_due_utc": [], "finding": _fault_as_dict(self.fault)}
        return {
            **names,
            "dialect": self.schedule.dialect,
            "dst": self.schedule.dst,
            "next_due_utc": [utc(due.at) for due in self.dues],
            "ended": len(self.dues) < self.count,
            "finding": None,
        }


def next_dues(
    expression: str,
    *,
    timezone: str = "UTC",
    after: datetime | None = None,
    count: int = 5,
    dst: DstPolicy | None = None,
    dialect: Dialect = Dialect.UNIX,
) -> DuesOutcome:
    """The next instants at which a schedule is due, as `dq schedule next` prints them.

    `expression` is a cron in this dialect, `timezone` its IANA zone. They are strictly `after` an aware
    instant, by default the present one. `dst` is what a time inside a clock change means, by default what
    cron does. What is wrong with the expression is in the outcome; UsageError is raised for an `after`
    without zone.
    """
    schedule = parse(expression, timezone=timezone, dialect=dialect, dst=dst)
    start = aware("after", after) or here().now()
    if isinstance(schedule, TextFault):
        return DuesOutcome(expression, timezone, count, fault=schedule)
    return DuesOutcome(expression, timezone, count, schedule, tuple(islice(schedule.after(start), count)))


@dataclass(frozen=True, slots=True)
class DeliverySchedule:
    """The next deliveries of one promise; where they are fewer than `count`, the schedule ends.

    `calendar` are the days that the calendar changes until the last of them, `clock_changes` the times within
    two years that a clock change leaves out or repeats.
    """

    slo: Slo
    cycles: tuple[Cycle, ...]
    count: int
    calendar: tuple[ChangedDay, ...]
    clock_changes: tuple[Due, ...]

    def as_dict(self) -> dict[str, object]:
        """One row of what `dq schedule explain --format json` prints."""
        schedule = self.slo.schedule
        return {
            "contract": self.slo.contract.key,
            "object": self.slo.object.name,
            "slo": self.slo.id,
            "schedule": schedule.expression,
            "timezone": schedule.timezone,
            "reading": clock.reading(schedule),
            "cycles": [
                {
                    "due_at": utc(cycle.due_at),
                    "breach_at": utc(cycle.breach_at),
                    "nominal": cycle.nominal.isoformat(),
                    "note": cycle.note,
                    "partitions": [label(partition) for partition in cycle.partitions],
                    "excuse": cycle.excuse or None,
                }
                for cycle in self.cycles
            ],
            "ended": len(self.cycles) < self.count,
            "calendar": [
                {
                    "day": changed.day.isoformat(),
                    "effect": changed.effect,
                    "due_on": iso(changed.due_on),
                    "reason": changed.reason,
                }
                for changed in self.calendar
            ],
            "clock_changes": [hazard(due, schedule) for due in self.clock_changes],
        }


@dataclass(frozen=True, slots=True)
class DeliveriesOutcome:
    """The next deliveries of each promise of some contracts; `findings` are what could not be read."""

    schedules: tuple[DeliverySchedule, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """As `dq schedule explain` ends: 3 something could not be read."""
        return 3 if self.findings else 0

    def as_list(self) -> list[dict[str, object]]:
        """What `dq schedule explain --format json` prints."""
        return [schedule.as_dict() for schedule in self.schedules]


def next_deliveries(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    after: datetime | None = None,
    count: int = 10,
    folder: Path | str | None = None,
) -> DeliveriesOutcome:
    """The next deliveries that contracts promise, as `dq schedule explain` shows them.

    `count` is how many of each promise, strictly `after` an aware instant, by default the present one.
    `folder` stands for the working folder.

    Raises UsageError for an `after` without zone, and Unreadable for a path without contracts.
    """
    world, places = called(paths, folder)
    start = aware("after", after) or world.now()
    loaded = load(places, world.note)
    promises, wrong = slos(loaded, world.note)
    schedules = tuple(_deliveries(slo, start, count) for slo in promises)
    return DeliveriesOutcome(schedules, (*loaded.findings, *wrong), tuple(world.messages.notes))


def _deliveries(slo: Slo, start: datetime, count: int) -> DeliverySchedule:
    # An endless schedule is asked as far as its next dues only.
    dues = list(islice(slo.schedule.after(start), count))
    cycles = tuple(slo.cycles(start, dues[-1].at)) if dues else ()
    end = cycles[-1].due_at if cycles else start
    changed = tuple(changed_days(slo.schedule, start, end))
    return DeliverySchedule(slo, cycles, count, changed, tuple(dst_hazards(slo.schedule, start)))


def hazard(due: Due, schedule: Schedule) -> str:
    """What a clock change does to a due, in words."""
    if due.note is not Note.GAP:
        return f"{due.nominal:%Y-%m-%d %H:%M} stands on the clock twice; due the first time, {utc(due.at)}"
    became = {
        DstPolicy.VIXIE: f"due at the change, {utc(due.at)}",
        DstPolicy.SKIP: "no delivery that night",
        DstPolicy.SHIFT: "due later by the gap",
    }
    return f"{due.nominal:%Y-%m-%d %H:%M} stands on no clock: {became[schedule.dst]}"


@dataclass(frozen=True, slots=True)
class ConvertOutcome:
    """An expression in another dialect, or the `fault` that keeps it from being said there.

    `targets` are several where one line of that dialect cannot say it. `differences` are the instants within
    two years at which only one side is due.
    """

    expression: str
    timezone: str
    source: Schedule | None = None
    targets: tuple[Schedule, ...] = ()
    differences: tuple[Difference, ...] = ()
    fault: TextFault | None = None

    @property
    def dialects(self) -> tuple[Dialect, Dialect]:
        """The expression's own, and the other."""
        if self.expression.strip().lower().startswith(("cron(", "rate(")):
            return Dialect.EVENTBRIDGE, Dialect.UNIX
        return Dialect.UNIX, Dialect.EVENTBRIDGE

    @property
    def exit_code(self) -> int:
        """As `dq schedule convert` ends: 2 it is no schedule or cannot be said."""
        return UsageError.exit_code if self.fault is not None else 0

    def as_dict(self) -> dict[str, object]:
        """What `dq schedule convert --format json` prints."""
        if self.source is None:
            finding = _fault_as_dict(self.fault)
            return {"expression": self.expression, "converted": [], "finding": finding}
        before, after = self.dialects
        return {
            "expression": self.expression,
            "dialect": before,
            "reading": clock.reading(self.source),
            "to": after,
            "converted": [
                {"text": target.expression, "reading": clock.reading(target)} for target in self.targets
            ],
            "timezone": self.timezone,
            "differences": [
                {"at": utc(row.at), before: row.first is not None, after: row.second is not None}
                for row in self.differences
            ],
            "finding": None,
        }


def convert_schedule(
    expression: str, *, timezone: str = "UTC", after: datetime | None = None
) -> ConvertOutcome:
    """A unix cron for EventBridge, or a `cron(...)` of EventBridge for unix, as `dq schedule convert` does.

    The two are compared for two years `after` an aware instant, by default the present one, in the IANA zone
    `timezone`. What cannot be understood or said is in the outcome; UsageError is raised for an `after`
    without zone.
    """
    start = aware("after", after) or here().now()
    before, there = ConvertOutcome(expression, timezone).dialects
    source = parse(expression, timezone=timezone, dialect=before)
    if isinstance(source, TextFault):
        return ConvertOutcome(expression, timezone, fault=source)
    texts = clock.to_unix(source) if there is Dialect.UNIX else clock.to_eventbridge(source)
    if isinstance(texts, TextFault):
        return ConvertOutcome(expression, timezone, fault=texts)
    read = [parse(text, timezone=timezone, dialect=there) for text in texts]
    targets = [target for target in read if isinstance(target, Schedule)]
    apart = clock.differences([source], targets, start, start + _AHEAD)
    return ConvertOutcome(expression, timezone, source, tuple(targets), tuple(apart))


def _fault_as_dict(fault: TextFault | None) -> dict[str, object] | None:
    return None if fault is None else {"rule": fault.code, "message": fault.message, "mend": fault.mend}


# Excuses: deliveries that do not count.


@dataclass(frozen=True, slots=True)
class ExcuseOutcome:
    """The deliveries that were excused, or count again with `undo`.

    `judged` counts those of them that had a status before. `findings` are contracts that could not be read,
    `drained` is what was sent and what waits, and `alerts` the blocks of the console's channel.
    """

    excuses: tuple[Excuse, ...]
    undo: bool
    judged: int
    drained: Drained
    findings: tuple[Finding, ...] = ()
    alerts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """As `dq cycles exclude` ends: 4 an alert was not delivered, 3 a contract could not be read."""
        return alerting.exit_code(self.drained) or (3 if self.findings else 0)

    def as_list(self) -> list[dict[str, object]]:
        """What `dq cycles exclude --format json` prints."""
        return [
            {
                "contract": excuse.key[0],
                "object": excuse.key[1],
                "slo": excuse.key[2],
                "due_at": excuse.due_at.isoformat(),
                "undone": self.undo,
            }
            for excuse in self.excuses
        ]


def excuse(
    paths: Path | str | Sequence[Path | str],
    *,
    by: str,
    reason: str,
    due: Sequence[datetime] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    slo: str | None = None,
    undo: bool = False,
    channel: str = FROM_CONTRACT,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> ExcuseOutcome:
    """Take deliveries out of the count, before or after they were due, as `dq cycles exclude` does.

    `due` are the due instants of deliveries; `since` and `until` name all that are due from one instant up to
    another. All are aware. `slo` keeps to one service level by its id. With `undo` they count after all.
    `channel` is `contract` for the channels that contracts name, else one such as `console`. `folder` stands
    for the working folder.

    Raises UsageError where nothing is due then or nothing of it is excused, and for an empty `by` or
    `reason`; Unreadable for a path without contracts.
    """
    world, places = called(paths, folder, now)
    at = world.now()
    with closing(world.store()) as store:
        loaded = settled(world, store, load(places, world.note))
        promises, wrong = slos(loaded, world.note)
        who, why = by.strip(), reason.strip()
        if not who or not why:
            raise UsageError("an excuse needs who and why.", "Write --by and --reason.")
        by_key = {promise.key: promise for promise in promises if slo in (None, promise.id)}
        notify = alerting.teller(world, loaded.contracts, channel)
        dues_of = _requested(due, since, until)
        with store.write() as tx:
            requested = [
                Excuse(key, due_at, at, who, why, undo)
                for key, promise in by_key.items()
                for due_at in dues_of(promise, [row.cycle.due_at for row in cycle_store.all_cycles(tx, key)])
            ]
            # Only an excuse can be undone.
            excuses = cycle_store.excused_only(tx, requested) if undo else requested
            turns = replay.excuse(tx, by_key, excuses, at, notify)
        if requested and not excuses:
            raise UsageError(
                "no delivery due then is excused: nothing to undo.",
                "See 'dq status --format json' for what is excused.",
            )
        if not excuses:
            raise UsageError(
                "no delivery is due then.",
                "See 'dq schedule explain', and 'dq status --format json' for the past.",
            )
        drained = alerting.send(world, store, channel)
    said, findings = world.messages, (*loaded.findings, *wrong)
    return ExcuseOutcome(
        tuple(excuses), undo, len(turns), drained, findings, tuple(said.alerts), tuple(said.notes)
    )


def _requested(
    due: Iterable[datetime], since: datetime | None, until: datetime | None
) -> Callable[[Slo, Iterable[datetime]], list[datetime]]:
    """Gives the requested due instants of a promise: of its schedule, and of its past."""
    if (since is None) != (until is None):
        raise UsageError("--from and --to go together.", "Write both.")
    named = {aware("due", moment) or moment for moment in due}
    first, last = aware("since", since), aware("until", until)

    def dues(slo: Slo, past: Iterable[datetime]) -> list[datetime]:
        matching = {at.at for moment in named for at in slo.schedule.between(moment - _MOMENT, moment)}
        if first and last:
            between = slo.schedule.between(first - _MOMENT, last)
            matching |= {at.at for at in islice(between, _MOST_EXCUSED + 1)}
        if len(matching) > _MOST_EXCUSED:
            raise UsageError(
                f"{slo.id} has more than {_MOST_EXCUSED:,} deliveries in that time.",
                "Excuse a shorter time.",
            )
        matching |= {at for at in past if at in named or (first and last and first <= at <= last)}
        return sorted(matching)

    return dues
