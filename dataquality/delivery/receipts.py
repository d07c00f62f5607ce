"""Receipts as rows: deliveries that a publish step wrote down."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from dq.contracts.schedule.cycle import Partition
from dq.dataquality.delivery.cycle import Receipt, partition_of
from dq.dataquality.delivery.tables import parts, receipt


def receipts(tx: Connection, contract: str, one: str, elsewhere: Collection[str] = ()) -> dict[str, Receipt]:
    """The receipts of an object: by partition label, and by `due:<instant>` where they name their cycle.

    Those of the servers `elsewhere` are left out. One that names no server is an older dq's, and counts.
    """
    return all_receipts(tx, {contract: elsewhere}).get((contract, one), {})


def all_receipts(
    tx: Connection, elsewhere: Mapping[str, Collection[str]]
) -> dict[tuple[str, str], dict[str, Receipt]]:
    """The receipts of all objects of these contracts, by contract and object, each as `receipts` has them.

    `elsewhere` has for each contract the servers whose receipts are left out.
    """
    found: dict[tuple[str, str], dict[str, Receipt]] = {}
    columns, names = receipt.c, sorted(elsewhere)
    for some in parts(names):
        here = columns.contract.in_(some)
        for row in tx.execute(select(receipt).where(here).order_by(columns.delivered_at, columns.revision)):
            if row.server in elsewhere[row.contract]:
                continue
            of = found.setdefault((row.contract, row.object), {})
            cycle = f"due:{row.due_at.isoformat()}" if row.due_at is not None else ""
            for name in filter(None, (row.partition, cycle)):
                first = of.get(name)
                made = Receipt(row.delivered_at, row.rows, row.revision, server=row.server or "")
                of[name] = first.then(made) if first else made
    return found


@dataclass(frozen=True, slots=True)
class RowClaim:
    """The number of rows that a producer gave for a partition, in the receipt of its newest revision.

    `partition` is empty for an object without partitions.
    """

    partition: Partition
    rows: int
    revision: int
    delivered_at: datetime
    server: str


def row_claims(
    tx: Connection, contract: str, object: str, elsewhere: Collection[str], now: datetime
) -> list[RowClaim]:
    """The numbers of rows that stand as of `now`, a partition each.

    A partition that brings several cycles has none: each number is of a part. Neither has one whose newest
    revision came without a number. Those of the servers `elsewhere` are left out.
    """
    columns = receipt.c
    here = (columns.contract == contract) & (columns.object == object) & (columns.delivered_at <= now)
    newest: dict[str, Row[Any]] = {}
    cycles: dict[str, set[datetime | None]] = {}
    for row in tx.execute(select(receipt).where(here).order_by(columns.delivered_at, columns.revision)):
        if row.server not in elsewhere:
            newest[row.partition] = row
            cycles.setdefault(row.partition, set()).add(row.due_at)
    return [
        RowClaim(partition_of(name), row.rows, row.revision, row.delivered_at, row.server or "")
        for name, row in newest.items()
        if row.rows is not None and (not name or len(cycles[name]) == 1)
    ]


def is_written(tx: Connection, id: str) -> bool:
    """Whether the receipt of this id is there."""
    return tx.execute(select(receipt.c.id).where(receipt.c.id == id)).first() is not None


def write_receipt(
    tx: Connection,
    *,
    id: str,
    contract: str,
    object: str,
    partition: str,
    due_at: datetime | None,
    delivered_at: datetime,
    rows: int | None,
    version: str,
    revision: int = 1,
    server: str | None = None,
) -> bool:
    """Writes a receipt once; the same id again changes nothing and gives False."""
    if is_written(tx, id):
        return False
    tx.execute(
        insert(receipt).values(
            id=id,
            contract=contract,
            object=object,
            partition=partition,
            due_at=due_at,
            delivered_at=delivered_at,
            rows=rows,
            contract_version=version,
            revision=revision,
            server=server,
        )
    )
    return True


def write_count(tx: Connection, id: str, rows: int) -> None:
    """Add the number of rows to the receipt of this id."""
    tx.execute(update(receipt).where(receipt.c.id == id).values(rows=rows))
