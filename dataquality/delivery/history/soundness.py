"""Whether what is stored of deliveries agrees with itself."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, func, select, text

from dq.contracts.shared.outcome import CycleStatus
from dq.dataquality.delivery.state.keys import is_of, key_of
from dq.dataquality.delivery.state.tables import cycle, cycle_event, watermark


def faults(tx: Connection) -> Iterator[str]:
    """What is wrong with the store, in words; nothing where all is well."""
    yield from _of_the_database(tx)
    columns, events = cycle.c, cycle_event.c
    last = select(func.max(events.id).label("id")).group_by(events.cycle_id).subquery()
    ends = select(columns.contract, columns.slo, columns.due_at, columns.status, events.after)
    told = ends.join(cycle_event, events.cycle_id == columns.id).join(last, last.c.id == events.id)
    for row in tx.execute(told.where(events.after != columns.status)):
        yield f"{_name(row)} is {row.status}, and its last change says {row.after}"
    unchanged = select(columns.contract, columns.slo, columns.due_at, columns.status)
    lone = unchanged.where(~select(events.id).where(events.cycle_id == columns.id).exists())
    for still in tx.execute(lone.where(columns.status != CycleStatus.PENDING)):
        yield f"{_name(still)} is {still.status}, and no change says so"
    watched = unchanged.join(watermark, is_of(cycle, key_of(watermark)))
    beyond = watched.where(columns.due_at > watermark.c.through)
    for early in tx.execute(beyond):
        yield f"{_name(early)} was due after the instant up to which it is watched"
    orphans = select(func.count()).select_from(cycle_event).where(
        ~select(columns.id).where(columns.id == events.cycle_id).exists()
    )  # fmt: skip
    if lost := tx.scalar(orphans):
        yield f"{lost} changes belong to no delivery"


def _of_the_database(tx: Connection) -> Iterator[str]:
    if tx.dialect.name != "sqlite":
        return
    for (said,) in tx.execute(text("PRAGMA integrity_check(20)")):
        if said != "ok":
            yield f"SQLite: {said}"
    for row in tx.execute(text("PRAGMA foreign_key_check")):
        yield f"SQLite: row {row[1]} of {row[0]} refers to nothing in {row[2]}"


def _name(row: object) -> str:
    return f"{row.contract}/{row.slo} due {row.due_at:%Y-%m-%d %H:%M}Z"  # type: ignore[attr-defined]
