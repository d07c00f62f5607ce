"""From delivery SLOs to EventBridge schedules: desired schedules, plan, execution, and state in the store."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import select

from dq.contracts import slo as promises
from dq.contracts.model import Contract
from dq.contracts.outcome import DqError, Finding, Severity, UsageError, ValueProblem
from dq.contracts.schedule import clock
from dq.contracts.schedule.breach_starts import Start, breach_starts
from dq.contracts.schedule.calendar import DayEffect, HolidayCalendar
from dq.contracts.schedule.clock import Schedule, parse
from dq.contracts.schedule.cron import Dialect
from dq.contracts.slo import Slo
from dq.registry.catalog import StepKind, StepResult
from dq.registry.table import RETIRED
from dq.registry.tables import keep_row, schedule_entry
from dq.store.engine import Store

if TYPE_CHECKING:
    from dq.registry.aws.scheduler import LiveSchedule, Scheduler

# An EventBridge schedule: when it fires, what it starts, and its request to AWS.

# Followed by a dash and the digest, which makes the name unique.
_SLUG = 47
_DIGEST = 12
_DESCRIPTION = 512
_OWN_NAME = re.compile(rf"[0-9a-zA-Z._-]+-[0-9a-f]{{{_DIGEST}}}")
# A start after the watcher's next tick is useless; failed starts go to a dead-letter queue.
_RETRY = {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 10}

# Service in the target's ARN -> the IAM action that starts it, and further required parameters.
TARGETS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "events": (
        "events:PutEvents",
        {"EventBridgeParameters": {"DetailType": "Delivery due", "Source": "dq"}},
    ),
    "lambda": ("lambda:InvokeFunction", {}),
    "sns": ("sns:Publish", {}),
    "sqs": ("sqs:SendMessage", {}),
    "states": ("states:StartExecution", {}),
}


class ScheduleAt(StrEnum):
    """Start of a schedule's target: right after each breach, to evaluate it, or at the due time."""

    BREACH = "breach"
    DUE = "due"


@dataclass(frozen=True, slots=True)
class ScheduleTerms:
    """Settings for all schedules.

    `target`, `role` and `dead_letters` are the ARNs of the started target, of the role that starts it, and of
    the dead-letter queue, or "". A start may be up to `window_minutes` late.
    """

    registry: str
    target: str
    role: str
    group: str
    dead_letters: str = ""
    window_minutes: int = 0

    @property
    def mark(self) -> str:
        """Prefix of the description of each of this registry's schedules."""
        return f"Kept by dq for the registry {json.dumps(self.registry)}: "


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
    """One schedule of an SLO. `promise` names the SLO for people: contract, object and SLO id.

    `contract` is the contract's key, `payload` the target's input as JSON.
    """

    name: str
    contract: str
    promise: str
    expression: str
    timezone: str
    payload: str
    enabled: bool = True

    def request(self, terms: ScheduleTerms) -> dict[str, Any]:
        """Return the complete request of CreateSchedule and UpdateSchedule; AWS resets keys that are
        missing.
        """
        window: dict[str, Any] = {"Mode": "OFF"}
        if terms.window_minutes:
            window = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": terms.window_minutes}
        target = {
            "Arn": terms.target,
            "RoleArn": terms.role,
            "Input": self.payload,
            "RetryPolicy": dict(_RETRY),
            **TARGETS[service_of(terms.target)][1],
        }
        if terms.dead_letters:
            target["DeadLetterConfig"] = {"Arn": terms.dead_letters}
        return {
            "Name": self.name,
            "GroupName": terms.group,
            "Description": f"{terms.mark}{self.promise}"[:_DESCRIPTION],
            "ScheduleExpression": self.expression,
            "ScheduleExpressionTimezone": self.timezone,
            "FlexibleTimeWindow": window,
            "State": "ENABLED" if self.enabled else "DISABLED",
            "ActionAfterCompletion": "NONE",
            "Target": target,
        }

    def digest(self, terms: ScheduleTerms) -> str:
        """Return the digest of the request: 32 hexadecimal digits."""
        request_json = json.dumps(self.request(terms), sort_keys=True)
        return hashlib.sha256(request_json.encode()).hexdigest()[:32]


def entry_name(promise: str, *identity: str) -> str:
    """Return a stable name that AWS accepts: the SLO's name, and 12 digits of the digest of `identity`."""
    slug = re.sub(r"[^0-9a-zA-Z._-]+", "-", promise)[:_SLUG].strip("-") or "schedule"
    suffix = hashlib.sha256("\0".join(identity).encode()).hexdigest()[:_DIGEST]
    return f"{slug}-{suffix}"


def may_be_managed(name: str) -> bool:
    """Return True if a name has the form of `entry_name`; only the description proves that dq manages it."""
    return bool(_OWN_NAME.fullmatch(name))


def service_of(target: str) -> str:
    """Return the service of a target's ARN. Raises UsageError for a target that schedules cannot start."""
    parts = target.split(":")
    service = parts[2] if len(parts) > 5 and parts[0] == "arn" else ""
    if service not in TARGETS or (service == "sqs" and target.endswith(".fifo")):
        raise UsageError(
            f"schedule_target {target!r} is not a target that EventBridge can start.",
            "Write the ARN of a Lambda function, a state machine, a topic, an event bus or a standard queue.",
        )
    return service


# From delivery SLOs to desired schedules, with findings about schedules that AWS does not support.

UNSUPPORTED_SCHEDULE = "schedule-unsayable"
_LONGEST = 256
SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
"""Placeholder that EventBridge replaces by the instant of a start, in UTC."""


@dataclass(slots=True)
class DesiredSchedules:
    """Schedules of SLOs by name, and the SLO of each.

    `unreadable` are the keys of contracts with an invalid SLO or one that AWS does not support: their
    schedules stay. `readable` are the keys of all others.
    """

    entries: dict[str, ScheduleEntry] = field(default_factory=dict)
    slos: dict[str, Slo] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)
    readable: set[str] = field(default_factory=set)


def desired_schedules(
    contracts: Iterable[Contract], registry: str, at: ScheduleAt, year: int
) -> DesiredSchedules:
    """Return the schedules of these contracts' SLOs; those of retired contracts are disabled.

    `year` is the first one whose clock changes matter.
    """
    desired = DesiredSchedules()
    for contract in contracts:
        slos, findings = promises.read_slos(contract)
        desired.findings += findings
        for slo in slos:
            if at is ScheduleAt.BREACH:
                starts = breach_starts(slo.schedule, slo.grace, year)
            else:
                problem = _calendar_problem(slo.schedule.calendar)
                texts = _expressions(slo.schedule)
                if isinstance(texts, ValueProblem):
                    findings.append(_finding(slo, texts, Severity.ERROR))
                    desired.findings.append(findings[-1])
                    continue
                if problem is not None:
                    desired.findings.append(_finding(slo, problem, Severity.WARNING))
                    continue
                starts = [(text, slo.schedule.timezone) for text in texts]
            for number, start in enumerate(starts, 1):
                entry = _entry(slo, start, registry, number, at)
                desired.entries[entry.name], desired.slos[entry.name] = entry, slo
        (desired.unreadable if findings else desired.readable).add(contract.key)
    return desired


def _entry(slo: Slo, start: Start, registry: str, number: int, at: ScheduleAt) -> ScheduleEntry:
    contract, object_name, id_ = slo.key
    expression, timezone = start
    message = {
        "contract": slo.contract.id,
        "version": slo.contract.version,
        "object": object_name,
        "slo": id_,
        "due" if at is ScheduleAt.DUE else "scheduled_at": SCHEDULED_TIME,
        "grace_seconds": int(slo.grace.total_seconds()),
        "registry": registry,
    }
    promise = "/".join(slo.key)
    name = entry_name(promise.replace("/", "-"), registry, contract, object_name, id_, str(number))
    payload = json.dumps(message, ensure_ascii=False)
    running = slo.contract.status != RETIRED
    return ScheduleEntry(name, contract, promise, expression, timezone, payload, running)


def _expressions(schedule: Schedule) -> list[str] | ValueProblem:
    if schedule.dialect is Dialect.EVENTBRIDGE:
        return [schedule.expression.strip()]
    texts = clock.to_eventbridge(schedule)
    if isinstance(texts, ValueProblem):
        return replace(texts, message=f"EventBridge cannot express it. {texts.message}")
    if any(len(text) > _LONGEST for text in texts):
        return ValueProblem(
            "CRON_CONVERT",
            f"EventBridge allows {_LONGEST} characters, and this would be {max(map(len, texts))}.",
            "Split it into two entries.",
        )
    return texts


def _calendar_problem(calendar: HolidayCalendar | None) -> ValueProblem | None:
    """Return the problem if AWS cannot follow a calendar, or None. One that only excuses does not matter."""
    if calendar is None:
        return None
    rests = calendar.weekdays_only or calendar.holidays
    if calendar.skip or calendar.moves or (rests and calendar.free_days is not DayEffect.EXCUSE):
        return ValueProblem(
            "CALENDAR",
            "EventBridge has no calendars and would start on free days, so no schedule is created.",
            "'dq watch' still evaluates the SLO.",
        )
    return None


def _finding(slo: Slo, fault: ValueProblem, severity: Severity) -> Finding:
    location, path = slo.sla.locate("schedule"), slo.sla.path("schedule")
    return Finding(
        UNSUPPORTED_SCHEDULE, severity, fault.message, fault.hint, location, path, contract=slo.contract.id
    )


def as_schedules(entries: Iterable[ScheduleEntry]) -> list[Schedule]:
    """Return the entries as schedules, for comparison with the SLO."""
    parsed = (
        parse(entry.expression, timezone=entry.timezone, dialect=Dialect.EVENTBRIDGE) for entry in entries
    )
    return [schedule for schedule in parsed if isinstance(schedule, Schedule)]


# Schedules created by dq, recorded in the store: only these are deleted, and unchanged ones are not read.


@dataclass(frozen=True, slots=True)
class RecordedSchedule:
    """A schedule created by dq: its contract and SLO, the digest of its request, and its modification in AWS.

    `digest` is "" while a write is in progress: the state in AWS is unknown then.
    """

    contract: str
    promise: str
    digest: str = ""
    modified: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """Recorded schedules of one registry in one group of one account and region."""

    store: Store
    catalog: str
    group: str
    registry: str

    def schedules(self) -> dict[str, RecordedSchedule]:
        """Return all recorded schedules by name."""
        query = select(schedule_entry).filter_by(**self._row_key())
        with self.store.read() as connection:
            rows = connection.execute(query).all()
        return {
            row.name: RecordedSchedule(row.contract, row.promise, row.digest, row.modified) for row in rows
        }

    def record(self, name: str, schedule: RecordedSchedule | None) -> None:
        """Record a schedule; None deletes the record."""
        values = None if schedule is None else asdict(schedule)
        keep_row(self.store, schedule_entry, self._row_key() | {"name": name}, values)

    def _row_key(self) -> dict[str, str]:
        return {"catalog": self.catalog, "group_name": self.group, "registry": self.registry}


# Plans the changes that bring EventBridge Scheduler in line with the SLOs. Read-only.

_SHOWN = 80
_OPTIONAL_KEYS = frozenset(
    {"StartDate", "EndDate", "KmsKeyArn", "DeadLetterConfig", "MaximumWindowInMinutes"}
)


@dataclass(frozen=True, slots=True)
class CreateSchedule:
    """Create a missing schedule."""

    kind: ClassVar = StepKind.CREATE_SCHEDULE
    entry: ScheduleEntry
    digest: str

    def __str__(self) -> str:
        entry = self.entry
        return f"+ schedule {entry.name}: {entry.expression} in {entry.timezone} for {entry.promise}"


@dataclass(frozen=True, slots=True)
class UpdateSchedule:
    """Replace a schedule. `changes` have each field with its live and desired value."""

    kind: ClassVar = StepKind.UPDATE_SCHEDULE
    entry: ScheduleEntry
    digest: str
    changes: tuple[str, ...]
    drift: bool

    def __str__(self) -> str:
        suffix = ", changed by someone else" if self.drift else ""
        return f"~ schedule {self.entry.name}{suffix}: {'; '.join(self.changes)}"


@dataclass(frozen=True, slots=True)
class DeleteSchedule:
    """Delete a schedule without an SLO.

    If `orphan`, its contract no longer exists, and it waits for --prune.
    """

    kind: ClassVar = StepKind.DELETE_SCHEDULE
    name: str
    reason: str
    orphan: bool

    def __str__(self) -> str:
        return f"- schedule {self.name}: {self.reason}"


ScheduleStep = CreateSchedule | UpdateSchedule | DeleteSchedule


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """The steps in order, with notes for the reader.

    `foreign` are schedules of others with a desired name. `state_updates` are records to save, or to delete
    if None, without a call to AWS. `managed_count` is the number of live schedules that dq manages.
    """

    steps: tuple[ScheduleStep, ...] = ()
    notes: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    state_updates: tuple[tuple[str, RecordedSchedule | None], ...] = ()
    managed_count: int = 0

    @property
    def orphans(self) -> tuple[DeleteSchedule, ...]:
        return tuple(step for step in self.steps if isinstance(step, DeleteSchedule) and step.orphan)


def plan_schedules(
    scheduler: Scheduler,
    terms: ScheduleTerms,
    desired: DesiredSchedules,
    recorded: Mapping[str, RecordedSchedule],
    *,
    retained: Collection[str] = (),
    pending: Collection[str] = (),
    complete: bool = False,
) -> SchedulePlan:
    """Return the steps in order: create, update, delete.

    Args:
        retained: Keys of contracts not in force whose schedules stay.
        pending: Names of entries whose table is not up to date: their schedules are not created yet.
        complete: The run has loaded the complete registry; only then are there orphans.

    Raises as `Scheduler` does.
    """
    live = scheduler.names(terms.group)
    created: list[CreateSchedule] = []
    updated: list[UpdateSchedule] = []
    notes: list[str] = []
    foreign: list[str] = []
    state_updates: list[tuple[str, RecordedSchedule | None]] = []
    for name, entry in sorted(desired.entries.items()):
        digest, before = entry.digest(terms), recorded.get(name)
        if name not in live:
            if entry.enabled and name in pending:
                notes.append(f"{entry.promise}: no schedule is created until the table matches its contract.")
            elif entry.enabled:
                created.append(CreateSchedule(entry, digest))
            continue
        if before is not None and (before.digest, before.modified) == (digest, live[name]):
            continue
        current = scheduler.read(terms.group, name)
        if current is None:
            continue
        if not current.definition.get("Description", "").startswith(terms.mark):
            foreign.append(f"Schedule {name} in {terms.group} is not managed by dq: it is left unchanged.")
            continue
        changes = tuple(differences(current.definition, entry.request(terms)))
        if changes:
            drift = before is not None and before.digest == digest
            updated.append(UpdateSchedule(entry, digest, changes, drift))
        else:
            state_updates.append(
                (name, RecordedSchedule(entry.contract, entry.promise, digest, current.modified))
            )
    deleted = []
    for name, schedule in sorted(recorded.items()):
        if (
            name in desired.entries
            or schedule.contract in retained
            or schedule.contract in desired.unreadable
        ):
            continue
        if name not in live:
            state_updates.append((name, None))
        elif schedule.contract in desired.readable:
            deleted.append(DeleteSchedule(name, f"{schedule.promise} no longer needs it", orphan=False))
        elif complete:
            reason = f"contract {schedule.contract!r} no longer exists; remove it with --prune"
            deleted.append(DeleteSchedule(name, reason, orphan=True))
    if complete:
        notes += _unrecorded(scheduler, terms, [*live.keys() - recorded.keys() - desired.entries.keys()])
    managed_count = len(live.keys() & (recorded.keys() | desired.entries.keys()))
    return SchedulePlan(
        (*created, *updated, *deleted), tuple(notes), tuple(foreign), tuple(state_updates), managed_count
    )


def _unrecorded(scheduler: Scheduler, terms: ScheduleTerms, names: Collection[str]) -> Iterator[str]:
    """Return notes about schedules with our mark but without a record: a mark alone is not proof."""
    for name in sorted(names):
        if may_be_managed(name) and (current := scheduler.read(terms.group, name)) is not None:
            description = current.definition.get("Description", "")
            if description.startswith(terms.mark):
                promise = description.removeprefix(terms.mark)
                yield (
                    f"schedule {name} of {promise}: the state store has no record that dq created it; "
                    "if it is not needed, remove it manually."
                )


def differences(live: Mapping[str, Any], desired: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Return the differences between a live schedule and its request, field by field.

    Fields that AWS adds by itself are ignored, unless they change what starts when.
    """
    for key in sorted({*desired, *(_OPTIONAL_KEYS & live.keys())}):
        before, after = live.get(key), desired.get(key)
        name = f"{path}{key}"
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from differences(before, after, f"{name}.")
        elif before != after:
            yield f"{name} {_shown(before)} → {_shown(after)}"


def _shown(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


# Executes a plan for EventBridge Scheduler: idempotent, and resumable after a kill at any point.


def apply_schedules(
    scheduler: Scheduler, state: ScheduleState, terms: ScheduleTerms, plan: SchedulePlan, *, prune: bool
) -> list[StepResult[ScheduleStep]]:
    """Execute the steps in order and return one result per step. A failure does not stop the others.

    Orphans are deleted with `prune` only, and have no result without it. A schedule is recorded before it is
    created, and its record deleted after the schedule, so that a kill in between can leave a record without a
    schedule, but never a schedule without a record.
    """
    for name, schedule in plan.state_updates:
        state.record(name, schedule)
    results = []
    for step in plan.steps:
        if isinstance(step, DeleteSchedule) and step.orphan and not prune:
            continue
        try:
            _execute(scheduler, state, terms, step)
        except DqError as error:
            results.append(StepResult(step, error))
        else:
            results.append(StepResult(step))
    return results


def _execute(scheduler: Scheduler, state: ScheduleState, terms: ScheduleTerms, step: ScheduleStep) -> None:
    match step:
        case CreateSchedule(entry, digest) | UpdateSchedule(entry, digest):
            state.record(entry.name, RecordedSchedule(entry.contract, entry.promise))
            request = entry.request(terms)
            if isinstance(step, UpdateSchedule):
                scheduler.update(request)
            # A repeated create finds its own schedule; any other one was created in between.
            elif not scheduler.create(request) and not _read_if_equal(scheduler, terms, entry):
                message = f"A different schedule {entry.name} was created in the meantime."
                raise DqError(message, "Run again.")
            current = _read_if_equal(scheduler, terms, entry)
            if current is None:
                raise DqError(f"Schedule {entry.name} differs from what was written.", "Run again.")
            state.record(
                entry.name, RecordedSchedule(entry.contract, entry.promise, digest, current.modified)
            )
        case DeleteSchedule(name):
            current = scheduler.read(terms.group, name)
            if current is not None and current.definition.get("Description", "").startswith(terms.mark):
                scheduler.delete(terms.group, name)
            state.record(name, None)


def _read_if_equal(scheduler: Scheduler, terms: ScheduleTerms, entry: ScheduleEntry) -> LiveSchedule | None:
    """Return the live schedule of an entry, or None if it differs from the entry."""
    current = scheduler.read(terms.group, entry.name)
    return None if current is None or any(differences(current.definition, entry.request(terms))) else current
