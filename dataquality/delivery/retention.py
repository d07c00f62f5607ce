"""Export, pruning and integrity check of the delivery history."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Integer, Select, Table, and_, delete, func, insert, select, text, update
from sqlalchemy.types import Boolean

from dq.contracts.incident import CycleStatus
from dq.contracts.install import install_command
from dq.contracts.outcome import MissingTool, ReadError
from dq.dataquality.delivery import early_warning, tables
from dq.store.engine import Store
from dq.store.schema import Json, UtcDateTime

if TYPE_CHECKING:
    import pyarrow


# Export of the delivery history as Parquet files, one for each table.

TABLES = (
    tables.cycle,
    tables.cycle_event,
    tables.cycle_excuse,
    tables.cycle_warning,
    tables.cycle_month,
    tables.receipt,
)
_ROWS = 10_000


def export(tx: Connection, folder: Path) -> dict[str, int]:
    """Write `<table>.parquet` for each table, and return the row counts by table.

    Instants are timestamps in UTC; lists and verdict inputs are JSON texts. Files appear atomically. Raises
    MissingTool without pyarrow, ReadError if the folder cannot be written to.
    """
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingTool(
            "Parquet needs pyarrow, which is not installed.", install_command("lakehouse")
        ) from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return {table.name: _write_table(tx, table, folder, pyarrow) for table in TABLES}
    except OSError as error:
        raise ReadError(f"{folder} is not writable: {error.strerror}.", "Choose another folder.") from error


def _write_table(tx: Connection, table: Table, folder: Path, arrow: Any) -> int:
    schema: pyarrow.Schema = arrow.schema(
        [(column.name, _arrow_type(column.type, arrow)) for column in table.columns]
    )
    part, rows = folder / f".{table.name}.parquet.part", 0
    with arrow.parquet.ParquetWriter(part, schema) as writer:
        for batch in _row_batches(tx, table):
            writer.write_table(arrow.Table.from_pylist(batch, schema=schema))
            rows += len(batch)
    part.replace(folder / f"{table.name}.parquet")
    return rows


def _row_batches(tx: Connection, table: Table) -> Iterator[list[dict[str, object]]]:
    jsons = {column.name for column in table.columns if column.type is Json}
    query = select(table).order_by(*table.primary_key.columns).execution_options(yield_per=_ROWS)
    for rows in tx.execute(query).mappings().partitions(_ROWS):
        yield [_row_as_dict(row, jsons) for row in rows]


def _row_as_dict(row: Any, jsons: Collection[str]) -> dict[str, object]:
    return {
        name: json.dumps(value, ensure_ascii=False) if name in jsons and value is not None else value
        for name, value in row.items()
    }


def _arrow_type(kind: object, arrow: Any) -> pyarrow.DataType:
    if isinstance(kind, UtcDateTime):
        return arrow.timestamp("us", tz="UTC")
    if isinstance(kind, Boolean):
        return arrow.bool_()
    return arrow.int64() if isinstance(kind, Integer) else arrow.string()


# Pruning: old cycles are replaced by monthly counts.

# Cycles that can still change are kept regardless of their age.
_OPEN = (CycleStatus.SCHEDULED, CycleStatus.PENDING, CycleStatus.MISSING)
_MONTH = tuple(tables.cycle_month.c[name] for name in ("contract", "object", "slo", "month", "status"))


@dataclass(frozen=True, slots=True)
class Pruned:
    """Numbers of deleted rows."""

    cycles: int
    receipts: int
    excuses: int


def prune(store: Store, before: datetime, kept_receipts: Select[tuple[str]] | None = None) -> Pruned:
    """Replace cycles that were due before an instant by monthly counts, and delete what belongs to them.

    Each transaction processes some hundred cycles with their counts, so an interruption neither loses a cycle
    nor counts it twice. Open cycles are kept, and so are the receipts whose ids `kept_receipts` selects.
    """
    cycles = 0
    while (pruned := _prune_batch(store, before)) > 0:
        cycles += pruned
    old = tables.receipt.c.delivered_at < before
    if kept_receipts is not None:
        old = old & tables.receipt.c.id.not_in(kept_receipts)
    with store.write() as tx:
        receipts = tx.execute(delete(tables.receipt).where(old)).rowcount
        tx.execute(delete(tables.past_tick).where(tables.past_tick.c.at < before))
        tx.execute(delete(tables.storage_event).where(tables.storage_event.c.recorded_at < before))
        tx.execute(
            delete(tables.cycle_warning).where(
                tables.cycle_warning.c.due_at < before, ~early_warning.is_open()
            )
        )
        excuses = tx.execute(
            delete(tables.cycle_excuse).where(tables.cycle_excuse.c.due_at < before)
        ).rowcount
    return Pruned(cycles, receipts, excuses)


def _prune_batch(store: Store, before: datetime) -> int:
    columns = tables.cycle.c
    old = and_(columns.due_at < before, columns.status.not_in(_OPEN))
    query = select(columns.id, columns.contract, columns.object, columns.slo, columns.due_at, columns.status)
    with store.write() as tx:
        rows = tx.execute(
            query.where(old).order_by(columns.due_at, columns.id).limit(tables.MAX_VALUES)
        ).all()
        if not rows:
            return 0
        _add_to_months(tx, Counter((*row[1:4], f"{row.due_at:%Y-%m}", row.status) for row in rows))
        ids = [row.id for row in rows]
        tx.execute(delete(tables.cycle_event).where(tables.cycle_event.c.cycle_id.in_(ids)))
        tx.execute(delete(tables.cycle_state).where(tables.cycle_state.c.cycle_id.in_(ids)))
        tx.execute(delete(tables.cycle).where(columns.id.in_(ids)))
    return len(rows)


def _add_to_months(tx: Connection, numbers: Mapping[tuple[str, ...], int]) -> None:
    for key, number in numbers.items():
        matches = and_(*(column == value for column, value in zip(_MONTH, key, strict=True)))
        updated = tx.execute(
            update(tables.cycle_month).where(matches).values(cycles=tables.cycle_month.c.cycles + number)
        )
        if updated.rowcount == 0:
            names = [column.name for column in _MONTH]
            tx.execute(insert(tables.cycle_month).values(**dict(zip(names, key, strict=True)), cycles=number))


# Integrity of the stored deliveries.


def integrity_faults(tx: Connection) -> Iterator[str]:
    """Yield a text for each inconsistency in the store."""
    yield from _database_faults(tx)
    columns, events = tables.cycle.c, tables.cycle_event.c
    last_event = select(func.max(events.id).label("id")).group_by(events.cycle_id).subquery()
    cycles_and_changes = select(columns.contract, columns.slo, columns.due_at, columns.status, events.after)
    last_changes = cycles_and_changes.join(tables.cycle_event, events.cycle_id == columns.id).join(
        last_event, last_event.c.id == events.id
    )
    for row in tx.execute(last_changes.where(events.after != columns.status)):
        yield f"{_cycle_name(row)} is {row.status}, and its last change says {row.after}"
    cycles = select(columns.contract, columns.slo, columns.due_at, columns.status)
    without_change = cycles.where(~select(events.id).where(events.cycle_id == columns.id).exists())
    for unchanged_row in tx.execute(without_change.where(columns.status != CycleStatus.PENDING)):
        yield f"{_cycle_name(unchanged_row)} is {unchanged_row.status}, and no change says so"
    watched = cycles.join(tables.watermark, tables.matches_key(tables.cycle, tables.key_of(tables.watermark)))
    beyond = watched.where(columns.due_at > tables.watermark.c.through)
    for early_row in tx.execute(beyond):
        yield f"{_cycle_name(early_row)} was due after the instant up to which it is watched"
    orphan_count = select(func.count()).select_from(tables.cycle_event).where(
        ~select(columns.id).where(columns.id == events.cycle_id).exists()
    )  # fmt: skip
    if orphaned := tx.scalar(orphan_count):
        yield f"{orphaned} changes without a delivery"


def _database_faults(tx: Connection) -> Iterator[str]:
    if tx.dialect.name != "sqlite":
        return
    for (result,) in tx.execute(text("PRAGMA integrity_check(20)")):
        if result != "ok":
            yield f"SQLite: {result}"
    for row in tx.execute(text("PRAGMA foreign_key_check")):
        yield f"SQLite: row {row[1]} of {row[0]} refers to nothing in {row[2]}"


def _cycle_name(row: object) -> str:
    return f"{row.contract}/{row.slo} due {row.due_at:%Y-%m-%d %H:%M}Z"  # type: ignore[attr-defined]
