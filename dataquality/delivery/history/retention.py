"""History is kept for a while in full, and afterwards as numbers of each month."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Select, and_, delete, insert, select, update

from dq.contracts.shared.outcome import CycleStatus
from dq.dataquality.delivery.state.keys import AT_ONCE
from dq.dataquality.delivery.state.tables import (
    cycle,
    cycle_event,
    cycle_excuse,
    cycle_month,
    cycle_state,
    past_tick,
    receipt,
)
from dq.store.engine import Store

# What can still change stays, whatever its age.
_OPEN = (CycleStatus.SCHEDULED, CycleStatus.PENDING, CycleStatus.MISSING)
_MONTH = tuple(cycle_month.c[name] for name in ("contract", "object", "slo", "month", "status"))


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows are gone."""

    cycles: int
    receipts: int
    excuses: int


def prune(store: Store, before: datetime, lasting: Select[tuple[str]] | None = None) -> Pruned:
    """Rolls cycles that were due before an instant up by month, and removes them with what belongs to them.

    A transaction holds some hundred cycles, with their numbers: whenever it is stopped, none is lost or
    counted twice. Open cycles stay, and so do the receipts whose ids `lasting` selects.
    """
    cycles = 0
    while (some := _some(store, before)) > 0:
        cycles += some
    old = receipt.c.delivered_at < before
    if lasting is not None:
        old = old & receipt.c.id.not_in(lasting)
    with store.write() as tx:
        receipts = tx.execute(delete(receipt).where(old)).rowcount
        tx.execute(delete(past_tick).where(past_tick.c.at < before))
        words = tx.execute(delete(cycle_excuse).where(cycle_excuse.c.due_at < before)).rowcount
    return Pruned(cycles, receipts, words)


def _some(store: Store, before: datetime) -> int:
    columns = cycle.c
    old = and_(columns.due_at < before, columns.status.not_in(_OPEN))
    asked = select(columns.id, columns.contract, columns.object, columns.slo, columns.due_at, columns.status)
    with store.write() as tx:
        rows = tx.execute(asked.where(old).order_by(columns.due_at, columns.id).limit(AT_ONCE)).all()
        if not rows:
            return 0
        _roll_up(tx, Counter((*row[1:4], f"{row.due_at:%Y-%m}", row.status) for row in rows))
        ids = [row.id for row in rows]
        tx.execute(delete(cycle_event).where(cycle_event.c.cycle_id.in_(ids)))
        tx.execute(delete(cycle_state).where(cycle_state.c.cycle_id.in_(ids)))
        tx.execute(delete(cycle).where(columns.id.in_(ids)))
    return len(rows)


def _roll_up(tx: Connection, numbers: Mapping[tuple[str, ...], int]) -> None:
    for key, number in numbers.items():
        same = and_(*(column == value for column, value in zip(_MONTH, key, strict=True)))
        added = tx.execute(update(cycle_month).where(same).values(cycles=cycle_month.c.cycles + number))
        if added.rowcount == 0:
            names = [column.name for column in _MONTH]
            tx.execute(insert(cycle_month).values(**dict(zip(names, key, strict=True)), cycles=number))
