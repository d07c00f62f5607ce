"""The changes of cycles as they were written, with what each verdict rested on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Row, select

from dq.contracts.shared.outcome import CycleStatus
from dq.dataquality.delivery import ledger, proof
from dq.dataquality.delivery.cycle import Grounds, Kept
from dq.dataquality.delivery.state.keys import Key, is_of, key_of
from dq.dataquality.delivery.state.tables import cycle as cycles_table
from dq.dataquality.delivery.state.tables import cycle_event


@dataclass(frozen=True, slots=True)
class StatusChange:
    """One change of one cycle. `grounds` of None: it was no verdict, or an older dq wrote it."""

    at: datetime
    before: CycleStatus
    after: CycleStatus
    reason: str
    grounds: Grounds | None


def keys(tx: Connection) -> list[Key]:
    """Every SLO that has cycles, in order."""
    columns = key_of(cycles_table)
    asked = select(*columns).distinct().order_by(*columns)
    return [(contract, one, slo) for contract, one, slo in tx.execute(asked)]


def with_changes(tx: Connection, key: Key) -> Iterator[tuple[Kept, list[StatusChange]]]:
    """The cycles of an SLO, oldest first, each with its changes in the order in which they were written."""
    joined = select(cycle_event).join(cycles_table, cycle_event.c.cycle_id == cycles_table.c.id)
    joined = joined.where(is_of(cycles_table, key))
    changes: dict[int, list[StatusChange]] = {}
    for row in tx.execute(joined.order_by(cycle_event.c.id)):
        changes.setdefault(row.cycle_id, []).append(change(row))
    for kept in ledger.history(tx, key):
        yield kept, changes.get(kept.id, [])


def of_cycle(tx: Connection, cycle_id: int) -> list[StatusChange]:
    """The changes of one cycle, in the order in which they were written."""
    found = select(cycle_event).where(cycle_event.c.cycle_id == cycle_id).order_by(cycle_event.c.id)
    return [change(row) for row in tx.execute(found)]


def change(row: Row) -> StatusChange:  # type: ignore[type-arg]  # rows of a plain select have no shape to name
    """Return a row of `cycle_event` as values."""
    return StatusChange(
        row.at,
        CycleStatus(row.before),
        CycleStatus(row.after),
        row.reason,
        proof.read(row.proof) if row.proof is not None else None,
    )
