"""The last cycle up to which an object has no hole, computed from the store. Everything else renders it."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from sqlalchemy import Connection, func, select

from dq.contracts.incident import CycleStatus, DeliveryState
from dq.contracts.slo import Partition
from dq.dataquality import results
from dq.dataquality.delivery import cycle_store, tables
from dq.dataquality.delivery.cycle import CycleRecord, label
from dq.dataquality.delivery.replay import records_as_of
from dq.dataquality.delivery.tables import Key
from dq.dataquality.results import FailedChecks


@dataclass(frozen=True, slots=True)
class DueCycles:
    """The cycles of an object that were due at one instant, in UTC, with all their partitions."""

    due_at: datetime
    partitions: tuple[Partition, ...]

    @property
    def text(self) -> str:
        """The values that all partitions share, e.g. `day=2026-11-20`, or else the due instant."""
        common = set(self.partitions[0]).intersection(*self.partitions[1:]) if self.partitions else set()
        return label(tuple(common)) or self.due_at.strftime("%Y-%m-%dT%H:%M:%SZ")

    def as_dict(self) -> dict[str, object]:
        """Return the cycles as JSON values."""
        return {
            "due_at": self.due_at.isoformat(),
            "partitions": [label(partition) for partition in self.partitions],
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class CompleteThrough:
    """The last cycle up to which an object has no hole, as far as the store knows.

    `through` is that cycle, None if the first cycle is a hole. `checked` is the last cycle before the first
    one that is not evaluated yet. Both are equal exactly in the state `complete`. `hole` is the first hole,
    `reason` what is wrong there. `since` is when the first known cycle was due: nothing is known of earlier
    data.
    """

    contract: str
    object_name: str
    state: DeliveryState
    through: DueCycles | None = None
    checked: DueCycles | None = None
    hole: DueCycles | None = None
    reason: str = ""
    since: datetime | None = None

    def includes(self, due_at: datetime) -> bool:
        """True if there is no hole among the cycles that were due up to an aware instant."""
        return self.through is not None and self.through.due_at >= due_at

    def as_dict(self) -> dict[str, object]:
        """Return the values as JSON values."""
        return {
            "contract": self.contract,
            "object": self.object_name,
            "state": self.state,
            "complete_through": self.through.as_dict() if self.through else None,
            "checked_through": self.checked.as_dict() if self.checked else None,
            "hole": self.hole.as_dict() if self.hole else None,
            "reason": self.reason,
            "since": self.since.isoformat() if self.since else None,
        }


@dataclass(frozen=True, slots=True)
class _Outcome:
    state: DeliveryState
    reason: str = ""
    delivered: bool = False


def complete_through(
    tx: Connection, contract: str, object_name: str, as_of: datetime | None = None
) -> CompleteThrough:
    """Return how far an object is complete, at an aware instant or now. `contract` is the contract's key."""
    key = (contract, object_name)
    watched = cycle_store.watched_slos(tx, [contract]).get(key, ())
    stored = cycle_store.all_cycles(tx, key) if watched else []
    return complete_through_of(tx, {key: records_as_of(tx, stored, as_of)}, as_of)[key]


def complete_through_of(
    tx: Connection,
    cycles: Mapping[tuple[str, str], Sequence[CycleRecord]],
    as_of: datetime | None = None,
) -> dict[tuple[str, str], CompleteThrough]:
    """Return how far each of these objects is complete, by contract key and object.

    `cycles` are all cycles of each object as of that instant, oldest first. Only SLOs that are watched now
    count, and of these not those with `expect: new_data`: that something arrived does not tell which
    partition is complete.
    """
    watched = cycle_store.watched_slos(tx, {contract for contract, _ in cycles})
    counted = {
        key: [record for record in records if record.cycle.key in watched.get(key, ())]
        for key, records in cycles.items()
    }
    withdrawn = {
        contract
        for (contract, _), records in counted.items()
        if any(record.status is CycleStatus.WITHDRAWN for record in records)
    }
    excluded = {
        cycle
        for cycle, excuse in cycle_store.newest_excuses(tx, withdrawn).items()
        if not excuse.undone and (as_of is None or excuse.at <= as_of)
    }
    failing = results.objects_with_failures(
        tx, {key[0] for key, records in counted.items() if records}, as_of
    )
    return {
        key: evaluate(
            *key,
            records,
            results.failed_checks(tx, *key, as_of) if records and key in failing else FailedChecks(),
            excluded,
        )
        if watched.get(key)
        else CompleteThrough(*key, DeliveryState.UNWATCHED)
        for key, records in counted.items()
    }


Marks = tuple[int, ...]
"""Newest ids of the tables of the store from which completeness is computed."""


def changed_objects(tx: Connection, since: Marks | None) -> tuple[set[tuple[str, str]], Marks]:
    """Return contract and object of everything that changed since these marks, and the current marks.

    Without marks, and if rows were removed from the store, every object with cycles counts as changed.
    """
    run, excuse, state = results.check_run, tables.cycle_excuse, tables.cycle_state
    marks = tuple(tx.scalar(select(func.max(table.c.id))) or 0 for table in (run, excuse, state))
    if since == marks:
        return set(), marks
    if since is None or len(since) != len(marks) or any(map(operator.lt, marks, since)):
        return {key[:2] for key in cycle_store.known_slos(tx)}, marks
    cycle = tables.cycle.c
    queries = [
        select(run.c.contract, run.c.object).where(run.c.id > since[0]),
        select(excuse.c.contract, excuse.c.object).where(excuse.c.id > since[1]),
        select(cycle.contract, cycle.object).join(state, state.c.cycle_id == cycle.id).where(
            state.c.id > since[2]
        ),
    ]  # fmt: skip
    return {(row[0], row[1]) for query in queries for row in tx.execute(query.distinct())}, marks


def evaluate(
    contract: str,
    object_name: str,
    cycles: Sequence[CycleRecord],
    failed: FailedChecks,
    excluded: Collection[tuple[Key, datetime]] = (),
) -> CompleteThrough:
    """Return how far an object with these cycles, of all its SLOs, is complete. Deterministic.

    A cycle is not a hole if it was delivered, however late, and no check of its data fails, or if it does not
    count (excused). `excluded` are the withdrawn cycles that do not count. Cycles that are due at the same
    instant count together.
    """
    outcomes = _with_later_snapshots(cycles, [_outcome(record, failed, excluded) for record in cycles])
    in_order = sorted(
        zip(cycles, outcomes, strict=True), key=lambda pair: (pair[0].cycle.due_at, pair[0].cycle.slo)
    )
    through = checked = hole = None
    state, reason = DeliveryState.COMPLETE, ""
    for due_at, group in groupby(in_order, key=lambda pair: pair[0].cycle.due_at):
        pairs = list(group)
        if any(outcome.state is DeliveryState.PENDING for _, outcome in pairs):
            break
        partitions = [partition for record, _ in pairs for partition in record.cycle.partitions]
        checked = DueCycles(due_at, tuple(dict.fromkeys(partitions)))
        blocking = next((o for _, o in pairs if o.state is not DeliveryState.COMPLETE), None)
        if hole is None and blocking is not None:
            hole, state, reason = checked, blocking.state, blocking.reason
        if hole is None:
            through = checked
    if checked is None:
        state = DeliveryState.PENDING
    since = in_order[0][0].cycle.due_at if in_order else None
    return CompleteThrough(contract, object_name, state, through, checked, hole, reason, since)


def _outcome(
    record: CycleRecord, failed: FailedChecks, excluded: Collection[tuple[Key, datetime]]
) -> _Outcome:
    status, cycle = record.status, record.cycle
    if status is CycleStatus.EXCUSED:
        return _Outcome(DeliveryState.COMPLETE)
    if status is CycleStatus.WITHDRAWN and (cycle.key, cycle.due_at) in excluded:
        return _Outcome(DeliveryState.COMPLETE)
    if status in (CycleStatus.SCHEDULED, CycleStatus.PENDING):
        return _Outcome(DeliveryState.PENDING)
    if status is CycleStatus.UNKNOWN:
        return _Outcome(DeliveryState.UNKNOWN, record.reason)
    if record.delivered_at is None or status in (CycleStatus.MISSING, CycleStatus.WITHDRAWN):
        return _Outcome(DeliveryState.INCOMPLETE, record.reason)
    written_at = max(record.delivered_at, record.anew_at or record.delivered_at)
    if scope := failed.scope_of(cycle.partitions, written_at):
        return _Outcome(DeliveryState.FAILED, f"Data checks fail: {scope}.")
    return _Outcome(DeliveryState.COMPLETE, delivered=True)


def _with_later_snapshots(cycles: Sequence[CycleRecord], outcomes: Sequence[_Outcome]) -> list[_Outcome]:
    """Return the outcomes, without the holes of tables without partitions before their newest delivery.

    Such a table holds its newest delivery only, which replaces what was missing before.
    """
    newest: dict[Key, datetime] = {}
    for record, outcome in zip(cycles, outcomes, strict=True):
        if outcome.delivered and not record.cycle.partitions:
            key, due_at = record.cycle.key, record.cycle.due_at
            newest[key] = max(newest.get(key, due_at), due_at)
    return [
        _Outcome(DeliveryState.COMPLETE)
        if not record.cycle.partitions
        and (replaced_at := newest.get(record.cycle.key)) is not None
        and record.cycle.due_at < replaced_at
        else outcome
        for record, outcome in zip(cycles, outcomes, strict=True)
    ]
