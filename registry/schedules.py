"""From delivery promises to schedules of EventBridge: desired, planned, carried out and kept in the store."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import select

from dq.contracts import slo as promises
from dq.contracts.model import Contract
from dq.contracts.outcome import DqError, Finding, Severity, TextFault, UsageError
from dq.contracts.schedule import clock
from dq.contracts.schedule.calendar import DayEffect, FreeDays
from dq.contracts.schedule.clock import Schedule, parse
from dq.contracts.schedule.cron import Dialect
from dq.contracts.slo import Slo
from dq.registry.catalog import StepKind, StepResult
from dq.registry.table import RETIRED
from dq.registry.tables import keep_row, schedule_entry
from dq.store.engine import Store

if TYPE_CHECKING:
    from dq.registry.aws.scheduler import LiveSchedule, Scheduler

# One schedule of EventBridge: when it fires, what it starts there, and how AWS has it written down.

# The rest is a dash and the digest, which alone tells two schedules apart.
_SLUG = 47
_DIGEST = 12
_DESCRIPTION = 512
_OWN_NAME = re.compile(rf"[0-9a-zA-Z._-]+-[0-9a-f]{{{_DIGEST}}}")
# A start that comes later than the next tick of a watcher is of no use, and a queue keeps what failed.
_RETRY = {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 10}

# Service in the target's ARN -> the action of IAM that starts it, and what AWS wants to know beside the ARN.
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


@dataclass(frozen=True, slots=True)
class ScheduleTerms:
    """What an operator decides for all schedules.

    `target` is the ARN of what is started, `role` of the role that starts it, `dead_letters` of the queue
    that keeps what could not be started, or "". A start comes up to `window_minutes` after its time.
    """

    registry: str
    target: str
    role: str
    group: str
    dead_letters: str = ""
    window_minutes: int = 0

    @property
    def mark(self) -> str:
        """With what the description of each of this registry's schedules begins."""
        return f"Kept by dq for the registry {json.dumps(self.registry)}: "


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
    """One schedule that a promise asks for. `promise` names it for people: contract, object and SLO.

    `contract` is the contract's key, `payload` what the target is told, as JSON.
    """

    name: str
    contract: str
    promise: str
    expression: str
    timezone: str
    payload: str
    enabled: bool = True

    def request(self, terms: ScheduleTerms) -> dict[str, Any]:
        """The whole of it as CreateSchedule and UpdateSchedule take it; what an update omits AWS resets."""
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
        """The same for entries that AWS would have written down alike: 32 hexadecimal digits."""
        told = json.dumps(self.request(terms), sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:32]


def entry_name(promise: str, *identity: str) -> str:
    """A name that AWS takes and that stays: of what it is about, and 12 digits of all that identifies it."""
    slug = re.sub(r"[^0-9a-zA-Z._-]+", "-", promise)[:_SLUG].strip("-") or "schedule"
    told = hashlib.sha256("\0".join(identity).encode()).hexdigest()[:_DIGEST]
    return f"{slug}-{told}"


def may_be_ours(name: str) -> bool:
    """Whether a name has the form of `entry_name`; its description alone tells whose it is."""
    return bool(_OWN_NAME.fullmatch(name))


def service_of(target: str) -> str:
    """The service of a target's ARN. Raises UsageError for one that dq cannot have started."""
    parts = target.split(":")
    service = parts[2] if len(parts) > 5 and parts[0] == "arn" else ""
    if service not in TARGETS or (service == "sqs" and target.endswith(".fifo")):
        raise UsageError(
            f"schedule_target {target!r} is nothing that dq can have started.",
            "Write the ARN of a Lambda function, a state machine, a topic, an event bus or a standard queue.",
        )
    return service


# From delivery promises to the schedules that they ask for, and the findings about what AWS cannot say.

UNSAYABLE = "schedule-unsayable"
_LONGEST = 256
SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
"""What EventBridge replaces by the instant at which a schedule was due, in UTC."""


@dataclass(slots=True)
class WantedSchedules:
    """The schedules that promises ask for, by name, and what each was read from.

    `unclear` are the keys of contracts with a promise that AWS cannot keep or nobody can read: what they
    have stays. `understood` are those of all others.
    """

    entries: dict[str, ScheduleEntry] = field(default_factory=dict)
    slos: dict[str, Slo] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    unclear: set[str] = field(default_factory=set)
    understood: set[str] = field(default_factory=set)


def wanted_schedules(contracts: Iterable[Contract], registry: str) -> WantedSchedules:
    """The schedules of these contracts' promises; those of retired ones stand still."""
    made = WantedSchedules()
    for contract in contracts:
        slos, wrong = promises.read(contract)
        made.findings += wrong
        for slo in slos:
            texts = _expressions(slo.schedule)
            if isinstance(texts, TextFault):
                wrong.append(_finding(slo, texts, Severity.ERROR))
                made.findings.append(wrong[-1])
                continue
            left_out = _left_out(slo.schedule.calendar)
            if left_out is not None:
                made.findings.append(_finding(slo, left_out, Severity.WARNING))
                continue
            for number, text in enumerate(texts, 1):
                entry = _entry(slo, text, registry, number)
                made.entries[entry.name], made.slos[entry.name] = entry, slo
        (made.unclear if wrong else made.understood).add(contract.key)
    return made


def _entry(slo: Slo, expression: str, registry: str, number: int) -> ScheduleEntry:
    contract, one, id_ = slo.key
    told = {
        "contract": slo.contract.id,
        "version": slo.contract.version,
        "object": one,
        "slo": id_,
        "due": SCHEDULED_TIME,
        "grace_seconds": int(slo.grace.total_seconds()),
        "registry": registry,
    }
    promise = "/".join(slo.key)
    name = entry_name(promise.replace("/", "-"), registry, contract, one, id_, str(number))
    payload = json.dumps(told, ensure_ascii=False)
    running = slo.contract.status != RETIRED
    return ScheduleEntry(name, contract, promise, expression, slo.schedule.timezone, payload, running)


def _expressions(schedule: Schedule) -> list[str] | TextFault:
    if schedule.dialect is Dialect.EVENTBRIDGE:
        return [schedule.expression.strip()]
    texts = clock.to_eventbridge(schedule)
    if isinstance(texts, TextFault):
        return replace(texts, message=f"EventBridge cannot say it. {texts.message}")
    if any(len(text) > _LONGEST for text in texts):
        return TextFault(
            "CRON_CONVERT",
            f"EventBridge takes {_LONGEST} characters, and it would be {max(map(len, texts))}.",
            "Promise it in two entries.",
        )
    return texts


def _left_out(calendar: FreeDays | None) -> TextFault | None:
    """Why AWS cannot follow a calendar; one that only excuses lets every delivery be due."""
    if calendar is None:
        return None
    rests = calendar.weekdays_only or calendar.holidays
    if calendar.skip or calendar.moves or (rests and calendar.free_days is not DayEffect.EXCUSE):
        return TextFault(
            "CALENDAR",
            "EventBridge knows no calendar and would start on its free days, so no schedule is made.",
            "'dq watch' judges the promise all the same.",
        )
    return None


def _finding(slo: Slo, fault: TextFault, severity: Severity) -> Finding:
    at, path = slo.sla.at("schedule"), slo.sla.path("schedule")
    return Finding(UNSAYABLE, severity, fault.message, fault.mend, at, path, contract=slo.contract.id)


def as_schedules(entries: Iterable[ScheduleEntry]) -> list[Schedule]:
    """What entries mean, so that it can be held against the promise."""
    read = (parse(one.expression, timezone=one.timezone, dialect=Dialect.EVENTBRIDGE) for one in entries)
    return [one for one in read if isinstance(one, Schedule)]


# Which schedules dq made, kept in the store: only these are removed, and what stands is not read again.


@dataclass(frozen=True, slots=True)
class NotedSchedule:
    """A schedule that dq made, for which contract and promise, what it wrote, and when AWS says that was.

    `digest` is "" from before a write until after it; then nobody knows what stands there.
    """

    contract: str
    promise: str
    digest: str = ""
    modified: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleNotes:
    """The notes of one registry about one group of one account and region."""

    store: Store
    catalog: str
    group: str
    registry: str

    def all(self) -> dict[str, NotedSchedule]:
        """Every schedule that dq made there and has not removed, by name."""
        query = select(schedule_entry).filter_by(**self._here())
        with self.store.read() as connection:
            rows = connection.execute(query).all()
        return {row.name: NotedSchedule(row.contract, row.promise, row.digest, row.modified) for row in rows}

    def note(self, name: str, noted: NotedSchedule | None) -> None:
        """Keeps what dq did under a name; None forgets it."""
        values = None if noted is None else asdict(noted)
        keep_row(self.store, schedule_entry, self._here() | {"name": name}, values)

    def _here(self) -> dict[str, str]:
        return {"catalog": self.catalog, "group_name": self.group, "registry": self.registry}


# What EventBridge Scheduler lacks to be as the promises say. Reads, and writes nothing.

_SHOWN = 80
_LEFT_OUT = frozenset({"StartDate", "EndDate", "KmsKeyArn", "DeadLetterConfig", "MaximumWindowInMinutes"})


@dataclass(frozen=True, slots=True)
class MakeSchedule:
    """Makes a schedule that is not there."""

    kind: ClassVar = StepKind.MAKE_SCHEDULE
    entry: ScheduleEntry
    digest: str

    def __str__(self) -> str:
        one = self.entry
        return f"+ schedule {one.name}: {one.expression} in {one.timezone} for {one.promise}"


@dataclass(frozen=True, slots=True)
class ChangeSchedule:
    """Writes a schedule anew. `changes` name each field with what stands there and what shall."""

    kind: ClassVar = StepKind.CHANGE_SCHEDULE
    entry: ScheduleEntry
    digest: str
    changes: tuple[str, ...]
    drift: bool

    def __str__(self) -> str:
        whose = ", which somebody else changed" if self.drift else ""
        return f"~ schedule {self.entry.name}{whose}: {'; '.join(self.changes)}"


@dataclass(frozen=True, slots=True)
class RemoveSchedule:
    """Removes a schedule that no promise asks for.

    `orphan`: its whole contract is no more, so it waits for --prune.
    """

    kind: ClassVar = StepKind.REMOVE_SCHEDULE
    name: str
    why: str
    orphan: bool

    def __str__(self) -> str:
        return f"- schedule {self.name}: {self.why}"


ScheduleStep = MakeSchedule | ChangeSchedule | RemoveSchedule


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """What would be done, in order, and what a reader has to know beside it.

    `foreign` are schedules of others that have a name of ours. `spent` are notes to be written down, None to
    be forgotten, for which AWS need not be asked. `ours` counts the schedules that dq keeps there.
    """

    steps: tuple[ScheduleStep, ...] = ()
    notes: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    spent: tuple[tuple[str, NotedSchedule | None], ...] = ()
    ours: int = 0

    @property
    def orphans(self) -> tuple[RemoveSchedule, ...]:
        return tuple(step for step in self.steps if isinstance(step, RemoveSchedule) and step.orphan)


def plan_schedules(
    scheduler: Scheduler,
    terms: ScheduleTerms,
    wanted: WantedSchedules,
    noted: Mapping[str, NotedSchedule],
    *,
    held: Collection[str] = (),
    waiting: Collection[str] = (),
    whole: bool = False,
) -> SchedulePlan:
    """The steps in their order: made, changed, removed.

    `held` are keys of contracts that are not in force and keep what they have, `waiting` the names of
    entries whose table is not as its contract says, so that nothing new is made for them. Only a run over
    the `whole` registry, all of it understood, names orphans. Raises as `Scheduler` does.
    """
    live = scheduler.names(terms.group)
    made: list[MakeSchedule] = []
    changed: list[ChangeSchedule] = []
    notes: list[str] = []
    foreign: list[str] = []
    spent: list[tuple[str, NotedSchedule | None]] = []
    for name, entry in sorted(wanted.entries.items()):
        digest, before = entry.digest(terms), noted.get(name)
        if name not in live:
            if entry.enabled and name in waiting:
                notes.append(
                    f"{entry.promise}: no schedule is made before the table is as its contract says."
                )
            elif entry.enabled:
                made.append(MakeSchedule(entry, digest))
            continue
        if before is not None and (before.digest, before.modified) == (digest, live[name]):
            continue
        there = scheduler.read(terms.group, name)
        if there is None:
            continue
        if not there.written.get("Description", "").startswith(terms.mark):
            foreign.append(f"The schedule {name} of {terms.group} is not kept by dq: it is left alone.")
            continue
        changes = tuple(differences(there.written, entry.request(terms)))
        if changes:
            drift = before is not None and before.digest == digest
            changed.append(ChangeSchedule(entry, digest, changes, drift))
        else:
            spent.append((name, NotedSchedule(entry.contract, entry.promise, digest, there.modified)))
    removed = []
    for name, one in sorted(noted.items()):
        if name in wanted.entries or one.contract in held or one.contract in wanted.unclear:
            continue
        if name not in live:
            spent.append((name, None))
        elif one.contract in wanted.understood:
            removed.append(RemoveSchedule(name, f"{one.promise} does not ask for it any more", orphan=False))
        elif whole:
            why = f"contract {one.contract!r} is no more; remove it with --prune"
            removed.append(RemoveSchedule(name, why, orphan=True))
    if whole:
        notes += _forgotten(scheduler, terms, [*live.keys() - noted.keys() - wanted.entries.keys()])
    ours = len(live.keys() & (noted.keys() | wanted.entries.keys()))
    return SchedulePlan((*made, *changed, *removed), tuple(notes), tuple(foreign), tuple(spent), ours)


def _forgotten(scheduler: Scheduler, terms: ScheduleTerms, names: Collection[str]) -> Iterator[str]:
    """What carries our mark and this store does not remember: a mark alone is no proof."""
    for name in sorted(names):
        if may_be_ours(name) and (there := scheduler.read(terms.group, name)) is not None:
            told = there.written.get("Description", "")
            if told.startswith(terms.mark):
                promise = told.removeprefix(terms.mark)
                yield (
                    f"schedule {name} of {promise}: this store does not remember that dq made it; "
                    "if it is not needed, remove it by hand."
                )


def differences(live: Mapping[str, Any], wanted: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """What of a live schedule is not as it was to be written, field by field.

    Members that AWS may add by itself say nothing; those that change what starts when are ours to leave out.
    """
    for key in sorted({*wanted, *(_LEFT_OUT & live.keys())}):
        before, after = live.get(key), wanted.get(key)
        name = f"{path}{key}"
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from differences(before, after, f"{name}.")
        elif before != after:
            yield f"{name} {_shown(before)} → {_shown(after)}"


def _shown(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


# Carries a plan for EventBridge Scheduler out: idempotent, and resumable after a kill at any point.


def apply_schedules(
    scheduler: Scheduler, notes: ScheduleNotes, terms: ScheduleTerms, plan: SchedulePlan, *, prune: bool
) -> list[StepResult[ScheduleStep]]:
    """One result per step, in order; one that fails stops no other. Orphans go with `prune` only, and have
    no result without it.

    A schedule is noted before it is made and forgotten after it was removed, so that a kill in between
    leaves a note without a schedule, and never a schedule without a note.
    """
    for name, noted in plan.spent:
        notes.note(name, noted)
    results = []
    for step in plan.steps:
        if isinstance(step, RemoveSchedule) and step.orphan and not prune:
            continue
        try:
            _carry_out(scheduler, notes, terms, step)
        except DqError as error:
            results.append(StepResult(step, error))
        else:
            results.append(StepResult(step))
    return results


def _carry_out(scheduler: Scheduler, notes: ScheduleNotes, terms: ScheduleTerms, step: ScheduleStep) -> None:
    match step:
        case MakeSchedule(entry, digest) | ChangeSchedule(entry, digest):
            notes.note(entry.name, NotedSchedule(entry.contract, entry.promise))
            request = entry.request(terms)
            if isinstance(step, ChangeSchedule):
                scheduler.update(request)
            # A create that was sent twice finds what it made itself; anything else came in between.
            elif not scheduler.create(request) and not _as_written(scheduler, terms, entry):
                message = f"The schedule {entry.name} came to be in between, and is another one."
                raise DqError(message, "Run again.")
            there = _as_written(scheduler, terms, entry)
            if there is None:
                raise DqError(f"The schedule {entry.name} is not as it was written.", "Run again.")
            notes.note(entry.name, NotedSchedule(entry.contract, entry.promise, digest, there.modified))
        case RemoveSchedule(name):
            there = scheduler.read(terms.group, name)
            if there is not None and there.written.get("Description", "").startswith(terms.mark):
                scheduler.delete(terms.group, name)
            notes.note(name, None)


def _as_written(scheduler: Scheduler, terms: ScheduleTerms, entry: ScheduleEntry) -> LiveSchedule | None:
    """The schedule of an entry, if it is as that says."""
    there = scheduler.read(terms.group, entry.name)
    return None if there is None or any(differences(there.written, entry.request(terms))) else there
