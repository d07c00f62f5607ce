"""Schedules: next due times, conversion to another dialect, and exclusion of deliveries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from dq.alerts.drain import DrainResult
from dq.contracts.outcome import Finding, UsageError, ValueProblem, iso
from dq.contracts.schedule import clock
from dq.contracts.schedule.clock import (
    DstNote,
    DstPolicy,
    DueTime,
    Schedule,
    ScheduleDifference,
    dst_hazards,
    parse,
)
from dq.contracts.schedule.cron import Dialect
from dq.contracts.slo import ChangedDay, Cycle, Slo, changed_days
from dq.dataquality.delivery import cycle_store, replay
from dq.dataquality.delivery.cycle import label
from dq.dataquality.delivery.cycle_store import Excuse
from dq.operations import alerting
from dq.operations.alerting import FROM_CONTRACT
from dq.operations.key_ownership import resolve_key_owners
from dq.operations.registry_files import load, slos
from dq.operations.runtime.context import call_context, runtime_context, to_utc

# Clock changes are compared this far ahead.
_AHEAD = timedelta(days=731)
_MAX_EXCUSED = 10_000
_MOMENT = timedelta(microseconds=1)


def utc(moment: datetime) -> str:
    """Return the instant in UTC and to the second, e.g. 2026-05-01T06:00:00Z."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass(frozen=True, slots=True)
class DuesOutcome:
    """Next due instants of a schedule; `fault` is the error of the expression, if any.

    Fewer dues than `count` mean that the schedule ends.
    """

    expression: str
    timezone: str
    count: int
    schedule: Schedule | None = None
    dues: tuple[DueTime, ...] = ()
    fault: ValueProblem | None = None

    @property
    def exit_code(self) -> int:
        """Exit code of `dq schedule next`: 2 the expression or its zone cannot be understood."""
        return UsageError.exit_code if self.fault is not None else 0

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq schedule next --format json` as JSON values."""
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
    """Return the next due instants of a schedule, as `dq schedule next` does.

    `expression` is a cron in this dialect, `timezone` its IANA zone. They are strictly `after` an aware
    instant, by default the current time. `dst` is the policy for times in a clock change, by default that of
    cron. Errors of the expression are in the outcome; UsageError is raised for an `after` without zone.
    """
    schedule = parse(expression, timezone=timezone, dialect=dialect, dst=dst)
    start = to_utc("after", after) or runtime_context().now()
    if isinstance(schedule, ValueProblem):
        return DuesOutcome(expression, timezone, count, fault=schedule)
    return DuesOutcome(expression, timezone, count, schedule, tuple(islice(schedule.after(start), count)))


@dataclass(frozen=True, slots=True)
class DeliverySchedule:
    """Next deliveries of one SLO; fewer than `count` mean that the schedule ends.

    `calendar` are the days changed by the calendar until the last of them, `clock_changes` the times within
    two years that a clock change skips or repeats.
    """

    slo: Slo
    cycles: tuple[Cycle, ...]
    count: int
    calendar: tuple[ChangedDay, ...]
    clock_changes: tuple[DueTime, ...]

    def as_dict(self) -> dict[str, object]:
        """Return one row of `dq schedule explain --format json`."""
        schedule = self.slo.schedule
        return {
            "contract": self.slo.contract.key,
            "object": self.slo.object.name,
            "slo": self.slo.id,
            "schedule": schedule.expression,
            "timezone": schedule.timezone,
            "reading": clock.describe_schedule(schedule),
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
    """Next deliveries of each SLO of some contracts; `findings` are read errors."""

    schedules: tuple[DeliverySchedule, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq schedule explain`: 3 something could not be read."""
        return 3 if self.findings else 0

    def as_list(self) -> list[dict[str, object]]:
        """Return the output of `dq schedule explain --format json` as JSON values."""
        return [schedule.as_dict() for schedule in self.schedules]


def next_deliveries(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    after: datetime | None = None,
    count: int = 10,
    folder: Path | str | None = None,
) -> DeliveriesOutcome:
    """Return the next deliveries of the SLOs of contracts, as `dq schedule explain` does.

    `count` is the number per SLO, strictly `after` an aware instant, by default the current time. `folder`
    replaces the working folder.

    Raises UsageError for an `after` without zone, and ReadError for a path without contracts.
    """
    context, places = call_context(paths, folder)
    start = to_utc("after", after) or context.now()
    loaded = load(places, context.note)
    promises, slo_findings = slos(loaded, context.note)
    schedules = tuple(_deliveries(slo, start, count) for slo in promises)
    return DeliveriesOutcome(schedules, (*loaded.findings, *slo_findings), tuple(context.messages.notes))


def _deliveries(slo: Slo, start: datetime, count: int) -> DeliverySchedule:
    # Schedules may be endless, so cycles are only computed up to the last due time.
    dues = list(islice(slo.schedule.after(start), count))
    cycles = tuple(slo.cycles(start, dues[-1].at)) if dues else ()
    end = cycles[-1].due_at if cycles else start
    changed = tuple(changed_days(slo.schedule, start, end))
    return DeliverySchedule(slo, cycles, count, changed, tuple(dst_hazards(slo.schedule, start)))


def hazard(due: DueTime, schedule: Schedule) -> str:
    """Describe the effect of a clock change on a due time."""
    if due.note is not DstNote.GAP:
        return f"{due.nominal:%Y-%m-%d %H:%M} occurs twice; due at the first, {utc(due.at)}"
    effects = {
        DstPolicy.VIXIE: f"due at the change, {utc(due.at)}",
        DstPolicy.SKIP: "no delivery that night",
        DstPolicy.SHIFT: "due later by the length of the gap",
    }
    return f"{due.nominal:%Y-%m-%d %H:%M} does not exist: {effects[schedule.dst]}"


@dataclass(frozen=True, slots=True)
class ConvertOutcome:
    """An expression converted to another dialect, or the `fault` that prevents it.

    There are several `targets` if one line of that dialect cannot express it. `differences` are the instants
    within two years at which only one side is due.
    """

    expression: str
    timezone: str
    source: Schedule | None = None
    targets: tuple[Schedule, ...] = ()
    differences: tuple[ScheduleDifference, ...] = ()
    fault: ValueProblem | None = None

    @property
    def dialects(self) -> tuple[Dialect, Dialect]:
        """Dialects of the expression and of the conversion."""
        if self.expression.strip().lower().startswith(("cron(", "rate(")):
            return Dialect.EVENTBRIDGE, Dialect.UNIX
        return Dialect.UNIX, Dialect.EVENTBRIDGE

    @property
    def exit_code(self) -> int:
        """Exit code of `dq schedule convert`: 2 it is not a schedule or cannot be converted."""
        return UsageError.exit_code if self.fault is not None else 0

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq schedule convert --format json` as JSON values."""
        if self.source is None:
            finding = _fault_as_dict(self.fault)
            return {"expression": self.expression, "converted": [], "finding": finding}
        before, after = self.dialects
        return {
            "expression": self.expression,
            "dialect": before,
            "reading": clock.describe_schedule(self.source),
            "to": after,
            "converted": [
                {"text": target.expression, "reading": clock.describe_schedule(target)}
                for target in self.targets
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
    """Convert a unix cron to EventBridge, or `cron(...)` of EventBridge to unix, as `dq schedule convert`
    does.

    The two are compared for two years `after` an aware instant, by default the current time, in the IANA zone
    `timezone`. Errors of parsing or conversion are in the outcome; UsageError is raised for an `after`
    without zone.
    """
    start = to_utc("after", after) or runtime_context().now()
    before, target_dialect = ConvertOutcome(expression, timezone).dialects
    source = parse(expression, timezone=timezone, dialect=before)
    if isinstance(source, ValueProblem):
        return ConvertOutcome(expression, timezone, fault=source)
    texts = clock.to_unix(source) if target_dialect is Dialect.UNIX else clock.to_eventbridge(source)
    if isinstance(texts, ValueProblem):
        return ConvertOutcome(expression, timezone, fault=texts)
    parsed = [parse(text, timezone=timezone, dialect=target_dialect) for text in texts]
    targets = [target for target in parsed if isinstance(target, Schedule)]
    differences = clock.differences([source], targets, start, start + _AHEAD)
    return ConvertOutcome(expression, timezone, source, tuple(targets), tuple(differences))


def _fault_as_dict(fault: ValueProblem | None) -> dict[str, object] | None:
    return None if fault is None else {"rule": fault.code, "message": fault.message, "hint": fault.hint}


# Exclusion of deliveries from the SLO.


@dataclass(frozen=True, slots=True)
class ExcuseOutcome:
    """Excluded deliveries, or with `undo` those that count again.

    `judged` is the number of those evaluated before. `findings` are contracts that could not be read,
    `drained` has the sent and waiting alerts, and `alerts` the blocks of the console channel.
    """

    excuses: tuple[Excuse, ...]
    undo: bool
    judged: int
    drained: DrainResult
    findings: tuple[Finding, ...] = ()
    alerts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq cycles exclude`: 4 an alert was not delivered, 3 a contract could not be read."""
        return alerting.exit_code(self.drained) or (3 if self.findings else 0)

    def as_list(self) -> list[dict[str, object]]:
        """Return the output of `dq cycles exclude --format json` as JSON values."""
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
    """Exclude deliveries from the SLO, before or after they are due, as `dq cycles exclude` does.

    `due` are due instants; `since` and `until` select all due times of a period, both inclusive. All are
    aware. `slo` selects one service level by its id. With `undo` they count again. `channel` is `contract`
    for the channels of the contracts, or one channel, e.g. `console`. `folder` replaces the working folder.

    Raises UsageError if nothing is due then, or with `undo` nothing is excluded, and for an empty `by` or
    `reason`; ReadError for a path without contracts.
    """
    context, places = call_context(paths, folder, now)
    recorded_at = context.now()
    with closing(context.store()) as store:
        loaded = resolve_key_owners(context, store, load(places, context.note))
        promises, slo_findings = slos(loaded, context.note)
        actor, text = by.strip(), reason.strip()
        if not actor or not text:
            raise UsageError("author and reason are required.", "Pass --by and --reason.")
        by_key = {promise.key: promise for promise in promises if slo in (None, promise.id)}
        notify = alerting.make_notifier(context, loaded.contracts, channel)
        dues_of = _requested_dues(due, since, until)
        with store.write() as tx:
            requested = [
                Excuse(key, due_at, recorded_at, actor, text, undo)
                for key, promise in by_key.items()
                for due_at in dues_of(promise, [row.cycle.due_at for row in cycle_store.all_cycles(tx, key)])
            ]
            # Only excluded deliveries can be undone.
            excuses = cycle_store.filter_excused(tx, requested) if undo else requested
            turns = replay.apply_excuses(tx, by_key, excuses, recorded_at, notify)
        if requested and not excuses:
            raise UsageError(
                "no delivery due at that time is excluded: nothing to undo.",
                "Run 'dq status --format json' to see excluded deliveries.",
            )
        if not excuses:
            raise UsageError(
                "no delivery is due at that time.",
                "Run 'dq schedule explain', or 'dq status --format json' for past deliveries.",
            )
        drained = alerting.send(context, store, channel)
    messages, findings = context.messages, (*loaded.findings, *slo_findings)
    return ExcuseOutcome(
        tuple(excuses), undo, len(turns), drained, findings, tuple(messages.alerts), tuple(messages.notes)
    )


def _requested_dues(
    due: Iterable[datetime], since: datetime | None, until: datetime | None
) -> Callable[[Slo, Iterable[datetime]], list[datetime]]:
    """Return a function from an SLO and its past due instants to the requested due instants."""
    if (since is None) != (until is None):
        raise UsageError("--from and --to must be used together.", "Pass both.")
    requested_dues = {to_utc("due", moment) or moment for moment in due}
    first, last = to_utc("since", since), to_utc("until", until)

    def dues(slo: Slo, past: Iterable[datetime]) -> list[datetime]:
        matching = {
            due_time.at
            for moment in requested_dues
            for due_time in slo.schedule.between(moment - _MOMENT, moment)
        }
        if first and last:
            between = slo.schedule.between(first - _MOMENT, last)
            matching |= {due_time.at for due_time in islice(between, _MAX_EXCUSED + 1)}
        if len(matching) > _MAX_EXCUSED:
            raise UsageError(
                f"{slo.id} has more than {_MAX_EXCUSED:,} deliveries in that time.",
                "Exclude a shorter range.",
            )
        matching |= {
            instant
            for instant in past
            if instant in requested_dues or (first and last and first <= instant <= last)
        }
        return sorted(matching)

    return dues
