"""Excuses as rows: who took which cycles out of the count, and why. Rows are added, never changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select

from dq.dataquality.delivery.state.keys import KEY, Key, parts
from dq.dataquality.delivery.state.tables import cycle_excuse


@dataclass(frozen=True, slots=True)
class Excuse:
    """Somebody's word that a cycle does not count, or (`undone`) that it does after all."""

    key: Key
    due_at: datetime
    at: datetime
    by: str
    reason: str
    undone: bool = False

    @property
    def text(self) -> str:
        """What the cycle's reason says of it."""
        return f"Excused by {self.by}: {self.reason}"


def record(tx: Connection, excuses: Iterable[Excuse]) -> None:
    """Adds them to what was said before."""
    rows = [
        {
            **dict(zip(KEY, excuse.key, strict=True)),
            "due_at": excuse.due_at,
            "at": excuse.at,
            "by": excuse.by,
            "reason": excuse.reason,
            "undone": excuse.undone,
        }
        for excuse in excuses
    ]
    if rows:
        tx.execute(insert(cycle_excuse), rows)


def said(tx: Connection, contracts: Collection[str]) -> dict[tuple[Key, datetime], Excuse]:
    """The newest word of each cycle of these contracts, whatever it says."""
    columns = cycle_excuse.c
    found: dict[tuple[Key, datetime], Excuse] = {}
    for some in parts(sorted(contracts)):
        here = columns.contract.in_(some)
        for row in tx.execute(select(cycle_excuse).where(here).order_by(columns.id)):
            key = (row.contract, row.object, row.slo)
            found[key, row.due_at] = Excuse(key, row.due_at, row.at, row.by, row.reason, row.undone)
    return found


def excused_only(tx: Connection, excuses: Sequence[Excuse]) -> list[Excuse]:
    """Those whose cycle is excused by the newest word on it."""
    newest = said(tx, {excuse.key[0] for excuse in excuses})
    return [
        excuse
        for excuse in excuses
        if (word := newest.get((excuse.key, excuse.due_at))) is not None and not word.undone
    ]
