"""The cycles of many products at once, with a few questions to the store."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, null, select

from dq.dataquality.delivery.cycle import Kept
from dq.dataquality.delivery.cycle_store import cycle_of_row
from dq.dataquality.delivery.tables import cycle, parts

Key = tuple[str, str, str]
_NOT_SHOWN = ("partitions", "claims")


def histories(tx: Connection, contracts: Collection[str]) -> dict[Key, list[Kept]]:
    """Every cycle of these contracts by SLO, oldest first, as `ledger.history` gives it for one; but for what
    no page shows and takes longest to read: its partitions, and what each source said."""
    found: dict[Key, list[Kept]] = {}
    names, columns = sorted(contracts), cycle.c
    shown = [null().label(one.name) if one.name in _NOT_SHOWN else one for one in columns]
    asked = select(*shown).order_by(columns.contract, columns.object, columns.slo, columns.due_at)
    for some in parts(names):
        for row in tx.execute(asked.where(columns.contract.in_(some))):
            found.setdefault((row.contract, row.object, row.slo), []).append(cycle_of_row(row))
    return found
