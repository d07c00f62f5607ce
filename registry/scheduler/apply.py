"""Carries a plan for EventBridge Scheduler out: idempotent, and resumable after a kill at any point."""

from __future__ import annotations

from dq.contracts.shared.errors import DqError
from dq.registry.action import StepResult
from dq.registry.scheduler.entry import ScheduleEntry, ScheduleTerms
from dq.registry.scheduler.ledger import NotedSchedule, ScheduleNotes
from dq.registry.scheduler.plan import (
    ChangeSchedule,
    MakeSchedule,
    RemoveSchedule,
    SchedulePlan,
    ScheduleStep,
    differences,
)
from dq.registry.scheduler.port import Scheduler


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
        case MakeSchedule(entry, digest):
            notes.note(entry.name, NotedSchedule(entry.contract, entry.promise))
            if not scheduler.create(entry.request(terms)):
                _refuse_other(scheduler, terms, entry)
            _note_written(scheduler, notes, terms, entry, digest)
        case ChangeSchedule(entry, digest):
            notes.note(entry.name, NotedSchedule(entry.contract, entry.promise))
            scheduler.update(entry.request(terms))
            _note_written(scheduler, notes, terms, entry, digest)
        case RemoveSchedule(name):
            there = scheduler.read(terms.group, name)
            if there is not None and there.written.get("Description", "").startswith(terms.mark):
                scheduler.delete(terms.group, name)
            notes.note(name, None)


def _refuse_other(scheduler: Scheduler, terms: ScheduleTerms, entry: ScheduleEntry) -> None:
    """A create that was sent twice finds what it made itself; anything else came in between."""
    there = scheduler.read(terms.group, entry.name)
    if there is None or any(differences(there.written, entry.request(terms))):
        raise DqError(f"The schedule {entry.name} came to be in between, and is another one.", "Run again.")


def _note_written(
    scheduler: Scheduler, notes: ScheduleNotes, terms: ScheduleTerms, entry: ScheduleEntry, digest: str
) -> None:
    there = scheduler.read(terms.group, entry.name)
    if there is None or any(differences(there.written, entry.request(terms))):
        raise DqError(f"The schedule {entry.name} is not as it was written.", "Run again.")
    notes.note(entry.name, NotedSchedule(entry.contract, entry.promise, digest, there.modified))
