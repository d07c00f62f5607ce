"""The history of deliveries as Parquet files, one for each table."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Integer, Table, select
from sqlalchemy.types import Boolean

from dq.contracts.shared.errors import MissingTool, Unreadable
from dq.contracts.shared.install import install_command
from dq.dataquality.delivery.state.tables import cycle, cycle_event, cycle_excuse, cycle_month, receipt
from dq.store.schema import Json, UtcDateTime

if TYPE_CHECKING:
    import pyarrow

TABLES = (cycle, cycle_event, cycle_excuse, cycle_month, receipt)
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
