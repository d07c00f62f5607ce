"""What EventBridge Scheduler lacks to be as the promises say. Reads, and writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dq.registry.action import StepKind
from dq.registry.scheduler.entry import ScheduleEntry, ScheduleTerms, may_be_ours
from dq.registry.scheduler.ledger import NotedSchedule
from dq.registry.scheduler.port import Scheduler
from dq.registry.scheduler.wanted import WantedSchedules

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
