"""What is long over: written as Parquet, deleted, and whether what is kept is whole."""

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

from dq.contracts.install import install_command
from dq.contracts.outcome import CycleStatus, MissingTool, Unreadable
from dq.dataquality.delivery import tables
from dq.store.engine import Store
from dq.store.schema import Json, UtcDateTime

if TYPE_CHECKING:
    import pyarrow


# The history of deliveries as Parquet files, one for each table.

TABLES = (tables.cycle, tables.cycle_event, tables.cycle_excuse, tables.cycle_month, tables.receipt)
_ROWS = 10_000


def export(tx: Connection, folder: Path) -> dict[str, int]:
    """Writes `<table>.parquet` for each table; how many rows each has.

    Instants are timestamps in UTC, lists and proofs are JSON texts. A file appears when it is whole. Raises
    MissingTool without pyarrow, Unreadable where the folder cannot be written to.
    """
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingTool(
            "Parquet needs pyarrow, which is not installed.", install_command("lakehouse")
        ) from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return {table.name: _written(tx, table, folder, pyarrow) for table in TABLES}
    except OSError as error:
        raise Unreadable(
            f"{folder} cannot be written to: {error.strerror}.", "Name another folder."
        ) from error


def _written(tx: Connection, table: Table, folder: Path, arrow: Any) -> int:
    schema: pyarrow.Schema = arrow.schema(
        [(column.name, _type(column.type, arrow)) for column in table.columns]
    )
    part, rows = folder / f".{table.name}.parquet.part", 0
    with arrow.parquet.ParquetWriter(part, schema) as writer:
        for batch in _batches(tx, table):
            writer.write_table(arrow.Table.from_pylist(batch, schema=schema))
            rows += len(batch)
    part.replace(folder / f"{table.name}.parquet")
    return rows


def _batches(tx: Connection, table: Table) -> Iterator[list[dict[str, object]]]:
    jsons = {column.name for column in table.columns if column.type is Json}
    asked = select(table).order_by(*table.primary_key.columns).execution_options(yield_per=_ROWS)
    for rows in tx.execute(asked).mappings().partitions(_ROWS):
        yield [_plain(row, jsons) for row in rows]


def _plain(row: Any, jsons: Collection[str]) -> dict[str, object]:
    return {
        name: json.dumps(value, ensure_ascii=False) if name in jsons and value is not None else value
        for name, value in row.items()
    }


def _type(kind: object, arrow: Any) -> pyarrow.DataType:
    if isinstance(kind, UtcDateTime):
        return arrow.timestamp("us", tz="UTC")
    if isinstance(kind, Boolean):
        return arrow.bool_()
    return arrow.int64() if isinstance(kind, Integer) else arrow.string()


# History is kept for a while in full, and afterwards as numbers of each month.

# What can still change stays, whatever its age.
_OPEN = (CycleStatus.SCHEDULED, CycleStatus.PENDING, CycleStatus.MISSING)
_MONTH = tuple(tables.cycle_month.c[name] for name in ("contract", "object", "slo", "month", "status"))


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
    old = tables.receipt.c.delivered_at < before
    if lasting is not None:
        old = old & tables.receipt.c.id.not_in(lasting)
    with store.write() as tx:
        receipts = tx.execute(delete(tables.receipt).where(old)).rowcount
        tx.execute(delete(tables.past_tick).where(tables.past_tick.c.at < before))
        words = tx.execute(delete(tables.cycle_excuse).where(tables.cycle_excuse.c.due_at < before)).rowcount
    return Pruned(cycles, receipts, words)


def _some(store: Store, before: datetime) -> int:
    columns = tables.cycle.c
    old = and_(columns.due_at < before, columns.status.not_in(_OPEN))
    asked = select(columns.id, columns.contract, columns.object, columns.slo, columns.due_at, columns.status)
    with store.write() as tx:
        rows = tx.execute(asked.where(old).order_by(columns.due_at, columns.id).limit(tables.AT_ONCE)).all()
        if not rows:
            return 0
        _roll_up(tx, Counter((*row[1:4], f"{row.due_at:%Y-%m}", row.status) for row in rows))
        ids = [row.id for row in rows]
        tx.execute(delete(tables.cycle_event).where(tables.cycle_event.c.cycle_id.in_(ids)))
        tx.execute(delete(tables.cycle_state).where(tables.cycle_state.c.cycle_id.in_(ids)))
        tx.execute(delete(tables.cycle).where(columns.id.in_(ids)))
    return len(rows)


def _roll_up(tx: Connection, numbers: Mapping[tuple[str, ...], int]) -> None:
    for key, number in numbers.items():
        same = and_(*(column == value for column, value in zip(_MONTH, key, strict=True)))
        added = tx.execute(
            update(tables.cycle_month).where(same).values(cycles=tables.cycle_month.c.cycles + number)
        )
        if added.rowcount == 0:
            names = [column.name for column in _MONTH]
            tx.execute(insert(tables.cycle_month).values(**dict(zip(names, key, strict=True)), cycles=number))


# Whether what is stored of deliveries agrees with itself.


def integrity_faults(tx: Connection) -> Iterator[str]:
    """What is wrong with the store, in words; nothing where all is well."""
    yield from _of_the_database(tx)
    columns, events = tables.cycle.c, tables.cycle_event.c
    last = select(func.max(events.id).label("id")).group_by(events.cycle_id).subquery()
    ends = select(columns.contract, columns.slo, columns.due_at, columns.status, events.after)
    told = ends.join(tables.cycle_event, events.cycle_id == columns.id).join(last, last.c.id == events.id)
    for row in tx.execute(told.where(events.after != columns.status)):
        yield f"{_name(row)} is {row.status}, and its last change says {row.after}"
    unchanged = select(columns.contract, columns.slo, columns.due_at, columns.status)
    lone = unchanged.where(~select(events.id).where(events.cycle_id == columns.id).exists())
    for still in tx.execute(lone.where(columns.status != CycleStatus.PENDING)):
        yield f"{_name(still)} is {still.status}, and no change says so"
    watched = unchanged.join(tables.watermark, tables.is_of(tables.cycle, tables.key_of(tables.watermark)))
    beyond = watched.where(columns.due_at > tables.watermark.c.through)
    for early in tx.execute(beyond):
        yield f"{_name(early)} was due after the instant up to which it is watched"
    orphans = select(func.count()).select_from(tables.cycle_event).where(
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
