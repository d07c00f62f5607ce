"""How far each promise is watched, where its data lies, and what was told of its budget."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from sqlalchemy import Connection, and_, bindparam, delete, insert, or_, select, update

from dq.dataquality.delivery.state.receipts import AT_ONCE
from dq.dataquality.delivery.state.tables import watermark
from dq.store.schema import UtcDateTime

# Contract, object and SLO.
Key = tuple[str, str, str]
_KEY = ("contract", "object", "slo")


def through(tx: Connection) -> dict[Key, datetime]:
    """For each SLO by key, up to which due instant its cycles have rows."""
    columns = (watermark.c.contract, watermark.c.object, watermark.c.slo, watermark.c.through)
    return {(contract, one, slo): until for contract, one, slo, until in tx.execute(select(*columns))}


def advance(tx: Connection, watched: Collection[Key], unread: Collection[str], until: datetime) -> None:
    """Notes that all that was due up to an instant has rows: of these SLOs, and of all SLOs of the contracts
    `unread`. A contract that is edited afterwards owes nothing for the time before.
    """
    every, columns = set(watched), watermark.c
    behind = columns.through < until
    partly = {key[0] for key in through(tx) if key[0] not in unread and key not in every}
    whole = sorted({key[0] for key in every if key[0] not in partly} | set(unread))
    for start in range(0, len(whole), AT_ONCE):
        here = columns.contract.in_(whole[start : start + AT_ONCE])
        tx.execute(update(watermark).where(here, behind).values(through=until))
    for key in sorted(every):
        if key[0] in partly:
            same = and_(*(columns[name] == value for name, value in zip(_KEY, key, strict=True)))
            tx.execute(update(watermark).where(same, behind).values(through=until))


def ever_delivered(tx: Connection) -> set[Key]:
    """The SLOs that ever had a delivery, by key."""
    columns = (watermark.c.contract, watermark.c.object, watermark.c.slo)
    found = select(*columns).where(watermark.c.delivered_at.is_not(None))
    return {(contract, one, slo) for contract, one, slo in tx.execute(found)}


def note_roots(tx: Connection, found: Mapping[Key, str]) -> None:
    """Keeps where the data of SLOs lies."""
    same = and_(*(watermark.c[name] == bindparam(f"its_{name}") for name in _KEY))
    rows = [
        {**{f"its_{name}": part for name, part in zip(_KEY, key, strict=True)}, "new": root}
        for key, root in found.items()
    ]
    if rows:
        tx.execute(update(watermark).where(same).values(root=bindparam("new")), rows)


def roots(tx: Connection) -> dict[Key, str | None]:
    """Where the data of each SLO lay last, by key."""
    columns = (*(watermark.c[name] for name in _KEY), watermark.c.root)
    return {(contract, one, slo): root for contract, one, slo, root in tx.execute(select(*columns))}


def budgets_told(tx: Connection) -> dict[Key, str]:
    """How far the budgets of SLOs were told to be used, by key; those alone of which anything was told."""
    columns = (*(watermark.c[name] for name in _KEY), watermark.c.budget)
    told = select(*columns).where(watermark.c.budget.is_not(None))
    return {(contract, one, slo): used for contract, one, slo, used in tx.execute(told)}


def note_budget(tx: Connection, key: Key, used: str | None) -> None:
    """Keeps how far an SLO's budget was told to be used."""
    same = and_(*(watermark.c[name] == value for name, value in zip(_KEY, key, strict=True)))
    tx.execute(update(watermark).where(same).values(budget=used))


def unmark(tx: Connection, key: Key) -> None:
    """Lets an SLO begin anew when it is promised again: nothing is due for the time in between."""
    same = and_(*(watermark.c[name] == value for name, value in zip(_KEY, key, strict=True)))
    tx.execute(delete(watermark).where(same))


def move(tx: Connection, keys: Iterable[Key], until: datetime) -> None:
    """Says that every cycle of these SLOs due up to an instant has a row; none goes back."""
    before = through(tx)
    wanted = [key for key in keys if before.get(key, until) <= until]
    new = [dict(zip(_KEY, key, strict=True), through=until) for key in wanted if key not in before]
    if new:
        tx.execute(insert(watermark), new)
    _each(tx, {key: until for key in wanted if key in before}, "through")


def note_deliveries(tx: Connection, newest: Mapping[Key, datetime]) -> None:
    """Keeps deliveries that are newer than those before."""
    _each(tx, newest, "delivered_at")


def _each(tx: Connection, values: Mapping[Key, datetime], column: str) -> None:
    """Sets an instant of each SLO where it is newer than the one there."""
    if not values:
        return
    same = and_(*(watermark.c[name] == bindparam(f"its_{name}") for name in _KEY))
    new = bindparam("new", type_=UtcDateTime())
    older = or_(watermark.c[column].is_(None), watermark.c[column] < new)
    rows = [
        {**{f"its_{name}": part for name, part in zip(_KEY, key, strict=True)}, "new": value}
        for key, value in values.items()
    ]
    tx.execute(update(watermark).where(same, older).values({column: new}), rows)
