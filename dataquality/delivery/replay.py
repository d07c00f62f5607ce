"""Cycles as of an earlier instant, replays, audits against contracts, and excuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, select

from dq.contracts.incident import CycleStatus, IncidentKey
from dq.contracts.schedule.calendar import TZDATA_VERSION
from dq.contracts.slo import Cycle, Slo
from dq.dataquality.delivery import cycle, cycle_store
from dq.dataquality.delivery.budget import budgets, emit_budget_events
from dq.dataquality.delivery.cycle_store import (
    STATE_COLUMNS,
    CycleUpdate,
    EmitEvent,
    Excuse,
    apply_updates,
    claims_from_json,
)
from dq.dataquality.delivery.notify import closing_event, emit_platform_recoveries
from dq.dataquality.delivery.tables import Key, chunks, cycle_event, cycle_state, key_of
from dq.dataquality.delivery.tables import cycle as cycles_table

# Stored changes of cycles, with the inputs of each verdict.


@dataclass(frozen=True, slots=True)
class StatusChange:
    """One change of one cycle. `inputs` is None if it was not a verdict or an older dq wrote it."""

    at: datetime
    before: CycleStatus
    after: CycleStatus
    reason: str
    inputs: cycle.VerdictInputs | None


def slo_keys(tx: Connection) -> list[Key]:
    """Return the keys of all SLOs with cycles, in order."""
    columns = key_of(cycles_table)
    query = select(*columns).distinct().order_by(*columns)
    return [(contract, object_name, slo) for contract, object_name, slo in tx.execute(query)]


def cycles_with_changes(tx: Connection, key: Key) -> Iterator[tuple[cycle.CycleRecord, list[StatusChange]]]:
    """Yield the cycles of an SLO, oldest first, each with its changes."""
    cycles = cycle_store.all_cycles(tx, key)
    changes = changes_of(tx, [record.id for record in cycles])
    for record in cycles:
        yield record, changes.get(record.id, [])


def changes_of(tx: Connection, ids: Iterable[int]) -> dict[int, list[StatusChange]]:
    """Return the changes of cycles by cycle id, in the order in which they were written."""
    changes: dict[int, list[StatusChange]] = {}
    for chunk in chunks(list(ids)):
        query = select(cycle_event).where(cycle_event.c.cycle_id.in_(chunk)).order_by(cycle_event.c.id)
        for row in tx.execute(query):
            changes.setdefault(row.cycle_id, []).append(change_from_row(row))
    return changes


# rows of a plain select have no shape to name
def change_from_row(row: Row) -> StatusChange:  # type: ignore[type-arg]
    """Return a row of `cycle_event` as a StatusChange."""
    return StatusChange(
        row.at,
        CycleStatus(row.before),
        CycleStatus(row.after),
        row.reason,
        cycle_store.inputs_from_json(row.proof) if row.proof is not None else None,
    )


# Cycles as of an earlier instant, from the changes that were stored by then; used by all commands with
# `--as-of`.
#
# Verdicts are not re-evaluated, so that past reports can be reproduced.


def records_as_of(
    tx: Connection, cycles: Sequence[cycle.CycleRecord], instant: datetime | None
) -> list[cycle.CycleRecord]:
    """Return the cycles that were due by an instant, in their state at that instant, in the same order.

    Args:
        tx: A read transaction.
        cycles: Cycles in their current state.
        instant: The instant; None returns the cycles unchanged.
    """
    if instant is None:
        return list(cycles)
    due = [record for record in cycles if record.was_recorded_by(instant)]
    ids = [record.id for record in due]
    states, changes = _states_as_of(tx, ids, instant), changes_of(tx, ids)
    return [
        _record_from_state(record, states[record.id])
        if record.id in states
        else _record_from_changes(record, changes.get(record.id, ()), instant)
        for record in due
    ]


def _states_as_of(tx: Connection, ids: Iterable[int], instant: datetime) -> dict[int, Any]:
    """Return the last row of `cycle_state` up to an instant, by cycle id."""
    states: dict[int, Any] = {}
    for chunk in chunks(list(ids)):
        query = select(cycle_state).where(cycle_state.c.cycle_id.in_(chunk), cycle_state.c.at <= instant)
        for row in tx.execute(query.order_by(cycle_state.c.id)):
            states[row.cycle_id] = row
    return states


def _record_from_state(record: cycle.CycleRecord, state: Any) -> cycle.CycleRecord:
    values = {name: getattr(state, name) for name in STATE_COLUMNS} | {"status": CycleStatus(state.status)}
    excuse = record.excuse if values["status"] is CycleStatus.EXCUSED else ""
    return replace(record, **values, claims=claims_from_json(state.claims), excuse=excuse)


def _record_from_changes(
    record: cycle.CycleRecord, changes: Sequence[StatusChange], instant: datetime
) -> cycle.CycleRecord:
    """Return a cycle as of an instant from its events, if it has no stored state (unchanged, or an older
    dq).
    """
    earlier = [change for change in changes if change.at <= instant]
    first_seen_at = record.first_seen_at if record.first_seen_at and record.first_seen_at <= instant else None
    arriving_since = (
        record.arriving_since if record.arriving_since and record.arriving_since <= instant else None
    )
    rewritten_at = record.anew_at if record.anew_at and record.anew_at <= instant else None
    gone_since = record.gone_since if record.gone_since and record.gone_since <= instant else None
    if len(earlier) == len(changes):
        later = (first_seen_at, arriving_since, rewritten_at, gone_since)
        if later == (record.first_seen_at, record.arriving_since, record.anew_at, record.gone_since):
            return record
        return replace(
            record,
            first_seen_at=first_seen_at,
            arriving_since=arriving_since,
            anew_at=rewritten_at,
            gone_since=gone_since,
        )
    last = earlier[-1] if earlier else None
    inputs = last.inputs if last else None
    evidence = inputs.evidence if inputs else None
    delivered_at = None
    if inputs is not None and last is not None and last.after not in cycle.OPEN:
        delivered_at = cycle.evaluate_inputs(record.cycle, inputs, last.at).delivered_at(record.cycle)
    is_excused = last is not None and last.after is CycleStatus.EXCUSED
    return replace(
        record,
        status=last.after if last else CycleStatus.PENDING,
        reason=last.reason if last else "",
        delivered_at=delivered_at,
        first_seen_at=evidence.first_seen if evidence and delivered_at else None,
        source=evidence.source if evidence and delivered_at else None,
        claims=_claims(record, evidence, delivered_at),
        arriving_since=evidence.arriving if evidence else None,
        anew_at=rewritten_at if delivered_at else None,
        gone_since=gone_since if inputs and inputs.revoked else None,
        excuse=record.excuse if is_excused else "",
    )


def _claims(
    record: cycle.CycleRecord, evidence: cycle.Evidence | None, delivered_at: datetime | None
) -> tuple[cycle.SourceAnswer, ...]:
    if evidence is None or delivered_at is None:
        return ()
    if record.claims and delivered_at == record.delivered_at:
        return record.claims
    # If the cycle was re-evaluated since, only the claim of the deciding source is stored.
    return (cycle.SourceAnswer(evidence.source, evidence.delivered_at, evidence.rows),)


# Replays: verdicts are re-evaluated from their stored inputs, and rows derived from the verdicts.


@dataclass(frozen=True, slots=True)
class ReplayedCycle:
    """A cycle derived from its changes. `differences` are the deviations of the stored row, as texts.

    `is_proven` is True if every change has its inputs. Withdrawals and undone excuses are not verdicts and
    need none.
    """

    record: cycle.CycleRecord
    status: CycleStatus
    delivered_at: datetime | None
    reason: str
    is_proven: bool
    differences: tuple[str, ...] = ()


def replay(tx: Connection, keys: Iterable[Key], as_of: datetime | None = None) -> Iterator[ReplayedCycle]:
    """Replay the cycles of these SLOs from their verdict inputs, oldest first for each SLO.

    With `as_of`, only cycles that were due by then, and only changes stored by then; the last verdict is
    re-evaluated at that instant, so that downtime of the watcher affects only its observations. Without it,
    the results are also compared with the current rows.
    """
    for key in keys:
        for record, changes in cycles_with_changes(tx, key):
            if as_of is None:
                yield _replay(record, changes)
            elif record.cycle.due_at <= as_of:
                yield _evaluate_as_of(record, [change for change in changes if change.at <= as_of], as_of)


def _replay(record: cycle.CycleRecord, changes: Sequence[StatusChange]) -> ReplayedCycle:
    status, differences = CycleStatus.PENDING, list[str]()
    delivered_at, reason = None, ""
    for change in changes:
        prefix = f"at {change.at.isoformat()}"
        if change.before is not status:
            differences.append(f"{prefix} its status was {status}, the change says {change.before}")
        status, delivered_at, reason = change.after, None, change.reason
        if change.inputs is None:
            continue
        verdict = cycle.evaluate_inputs(record.cycle, change.inputs, change.at)
        if verdict.status is not change.after:
            differences.append(f"{prefix} its inputs give {verdict.status}, stored is {change.after}")
        elif verdict.reason != change.reason:
            differences.append(
                f"{prefix} its inputs give the reason {verdict.reason!r}, stored is {change.reason!r}"
            )
        delivered_at = verdict.delivered_at(record.cycle)
    if record.status is not status:
        differences.append(f"its changes give {status}, its row says {record.status}")
    if record.delivered_at != delivered_at and _is_proven(changes):
        differences.append(f"its changes give delivery at {delivered_at}, its row says {record.delivered_at}")
    return ReplayedCycle(record, status, delivered_at, reason, _is_proven(changes), tuple(differences))


def _evaluate_as_of(
    record: cycle.CycleRecord, changes: Sequence[StatusChange], instant: datetime
) -> ReplayedCycle:
    if not changes:
        return ReplayedCycle(record, CycleStatus.PENDING, None, "Not evaluated by then.", is_proven=True)
    last = changes[-1]
    if last.inputs is None:
        return ReplayedCycle(record, last.after, None, last.reason, _is_proven(changes))
    verdict = cycle.evaluate_inputs(record.cycle, last.inputs, instant)
    return ReplayedCycle(
        record, verdict.status, verdict.delivered_at(record.cycle), verdict.reason, _is_proven(changes)
    )


def _is_proven(changes: Iterable[StatusChange]) -> bool:
    exempt = (CycleStatus.WITHDRAWN, CycleStatus.PENDING)
    return all(change.inputs is not None or change.after in exempt for change in changes)


# Audits: cycles are recomputed from their contracts and compared with the rows.

# SLOs by the SHA-256 of their contract's text and their key.
ContractSlos = Mapping[tuple[str, Key], Slo]
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class WrongCycle:
    """A row that deviates from its contract, or a contract's cycle without a row."""

    key: Key
    due_at: datetime
    problem: str


@dataclass(frozen=True, slots=True)
class Audit:
    """Result of an audit: the number of correct rows, rows whose contract is unavailable, and wrong
    cycles.
    """

    agreeing: int
    unproven: tuple[cycle.CycleRecord, ...]
    wrong: tuple[WrongCycle, ...]


def audit(
    tx: Connection, keys: Iterable[Key], promises: ContractSlos, as_of: datetime | None = None
) -> Audit:
    """Compare the rows of these SLOs with the cycles of the contracts they were computed from.

    No cycle may be missing between two rows of the same contract text, nor after the last one up to the SLO's
    watermark. With `as_of`, only rows recorded by that instant are compared.
    """
    agreeing, unproven, wrong = 0, list[cycle.CycleRecord](), list[WrongCycle]()
    marks = cycle_store.watched_through(tx)
    for key in keys:
        history = cycle_store.all_cycles(tx, key)
        recorded = [record for record in history if as_of is None or record.was_recorded_by(as_of)]
        later_due = {record.cycle.due_at for record in history} - {record.cycle.due_at for record in recorded}
        runs = [list(run) for _, run in groupby(recorded, lambda record: record.contract_hash)]
        for number, run in enumerate(runs):
            slo = promises.get((run[0].contract_hash, key))
            if slo is None:
                unproven += run
                continue
            end = run[-1].cycle.due_at
            if number == len(runs) - 1 and key in marks and _is_newest_text(promises, slo):
                end = max(end, min(marks[key], as_of or marks[key]))
            faults = [fault for fault in _compare(slo, run, end) if fault.due_at not in later_due]
            wrong += faults
            agreeing += len(run) - len(
                {fault.due_at for fault in faults} & {record.cycle.due_at for record in run}
            )
    return Audit(agreeing, tuple(unproven), tuple(wrong))


def _is_newest_text(promises: ContractSlos, slo: Slo) -> bool:
    """True if no other text of the contract is available, so that its last run of cycles continues."""
    return len({digest for digest, key in promises if key == slo.key}) == 1


def _compare(slo: Slo, run: Sequence[cycle.CycleRecord], end: datetime) -> Iterator[WrongCycle]:
    expected = {
        contract_cycle.due_at: contract_cycle
        for contract_cycle in slo.cycles(run[0].cycle.due_at - _MOMENT, end)
    }
    rows = {record.cycle.due_at: record.cycle for record in run}
    for due in sorted(expected.keys() | rows.keys()):
        if due not in expected:
            yield WrongCycle(slo.key, due, f"the contract has no such cycle{_release_note(rows[due], slo)}")
        elif due not in rows:
            what = "the contract has this cycle, the store has no row; was the SLO withdrawn in between?"
            yield WrongCycle(slo.key, due, what)
        elif differences := "; ".join(_differences(rows[due], expected[due])):
            yield WrongCycle(slo.key, due, f"{differences}{_release_note(rows[due], slo)}")


def _differences(row: Cycle, expected: Cycle) -> Iterator[str]:
    pairs = {
        "breach_at": (row.breach_at, expected.breach_at),
        "nominal": (row.nominal, expected.nominal),
        "note": (row.note, expected.note),
        "partitions": (row.partitions, expected.partitions),
        "excuse": (row.excuse, expected.excuse),
    }
    for name, (stored, computed) in pairs.items():
        if stored != computed:
            yield f"{name} is {_text(stored)}, the contract gives {_text(computed)}"


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _release_note(row: Cycle, slo: Slo) -> str:
    """Return a note if other releases of tzdata or holidays may be the reason of a difference."""
    calendar = slo.schedule.calendar
    pairs = [(f"tzdata {row.tzdata}", f"tzdata {TZDATA_VERSION}")] if row.tzdata != TZDATA_VERSION else []
    current_release = calendar.release if calendar else ""
    pairs += (
        [(row.calendar or "no holidays", current_release or "no holidays")]
        if row.calendar != current_release
        else []
    )
    return "".join(f" (computed with {recorded}, now {current})" for recorded, current in pairs)


# Excuses, and their consequences for rows, incidents and budgets.


def apply_excuses(
    tx: Connection, slos: Mapping[Key, Slo], excuses: Sequence[Excuse], now: datetime, emit: EmitEvent
) -> list[cycle.CycleTransition]:
    """Store excuses and update their cycles, as far as they have rows.

    A cycle that is not due yet is excused when it is due. Withdrawn cycles stay withdrawn. An open incident
    ends as excused. A cycle that counts again is evaluated immediately if its delivery is known, otherwise by
    the next tick.
    """
    cycle_store.record_excuses(tx, excuses)
    transitions: list[cycle.CycleTransition] = []
    rows = {(key, record.cycle.due_at): record for key in slos for record in cycle_store.all_cycles(tx, key)}
    for excuse in excuses:
        record = rows.get((excuse.key, excuse.due_at))
        if record is None or record.status is CycleStatus.WITHDRAWN:
            continue
        if excuse.undone:
            transitions += _count_again(tx, record, excuse, now)
        elif record.status is not CycleStatus.EXCUSED:
            transitions += _excuse_cycle(tx, record, excuse, now, emit)
    changed_slos = [
        slos[key] for key in dict.fromkeys(transition.record.cycle.key for transition in transitions)
    ]
    emit_budget_events(tx, changed_slos, budgets(tx, changed_slos, now), now, emit)
    emit_platform_recoveries(tx, transitions, now, emit)
    return transitions


def _excuse_cycle(
    tx: Connection, record: cycle.CycleRecord, excuse: Excuse, now: datetime, emit: EmitEvent
) -> list[cycle.CycleTransition]:
    verdict = cycle.evaluate_inputs(record.cycle, cycle.VerdictInputs(excused=excuse.text), now)
    # `notified` is cleared: if the cycle counts again and is still missing, a new alert is sent.
    if not apply_updates(tx, [CycleUpdate(record, verdict)], now):
        return []
    if record.notified and record.status in (CycleStatus.MISSING, CycleStatus.UNKNOWN, CycleStatus.NEVER):
        emit(tx, closing_event(IncidentKey(*record.cycle.key), record, verdict, now))
    return [cycle.CycleTransition(record, verdict.status, verdict.reason)]


def _count_again(
    tx: Connection, record: cycle.CycleRecord, excuse: Excuse, now: datetime
) -> list[cycle.CycleTransition]:
    if record.status is not CycleStatus.EXCUSED:
        return []
    changes = changes_of(tx, [record.id]).get(record.id, [])
    inputs = [change.inputs for change in changes if change.inputs and not change.inputs.excused]
    verdict = cycle.evaluate_inputs(record.cycle, inputs[-1], now) if inputs else None
    if verdict is None or verdict.lateness is None:
        # No evidence was collected while it was excused, so the next tick evaluates it.
        verdict = cycle.CycleVerdict(
            CycleStatus.PENDING, None, f"Counted again by {excuse.by}: {excuse.reason}"
        )
    evidence = verdict.inputs.evidence if verdict.inputs else None
    updated = apply_updates(tx, [CycleUpdate(record, verdict, evidence)], now)
    return [cycle.CycleTransition(record, verdict.status, verdict.reason)] if updated else []
