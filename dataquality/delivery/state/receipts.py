"""Receipts as rows: what publish steps wrote down of their deliveries."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, insert, select

from dq.dataquality.delivery.sources.probe import Receipt
from dq.dataquality.delivery.state.tables import receipt

# Databases bound how many values a statement may have.
AT_ONCE = 500


def receipts(tx: Connection, contract: str, one: str) -> dict[str, Receipt]:
    """The receipts of an object: by partition label, and by `due:<instant>` where they name their cycle."""
    return all_receipts(tx, [contract]).get((contract, one), {})


def all_receipts(tx: Connection, contracts: Collection[str]) -> dict[tuple[str, str], dict[str, Receipt]]:
    """The receipts of all objects of these contracts, by contract and object, each as `receipts` has them."""
    found: dict[tuple[str, str], dict[str, Receipt]] = {}
    columns, names = receipt.c, sorted(contracts)
    for start in range(0, len(names), AT_ONCE):
        here = columns.contract.in_(names[start : start + AT_ONCE])
        # Newest first, so that the first delivery of a partition is what remains.
        for row in tx.execute(select(receipt).where(here).order_by(columns.delivered_at.desc())):
            made = Receipt(row.delivered_at, row.rows)
            of = found.setdefault((row.contract, row.object), {})
            if row.partition:
                of[row.partition] = made
            if row.due_at is not None:
                of[f"due:{row.due_at.isoformat()}"] = made
    return found


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
) -> bool:
    """Writes a receipt once; the same id again changes nothing and gives False."""
    if tx.execute(select(receipt.c.id).where(receipt.c.id == id)).first() is not None:
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
        )
    )
    return True
