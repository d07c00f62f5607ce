"""How far each promise is watched, where its data lies, and what was told of its budget."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, delete, insert, or_, select, update

from dq.dataquality.delivery.state.keys import KEY, Key, is_of, key_of, parts
from dq.dataquality.delivery.state.tables import watermark
from dq.store.schema import UtcDateTime


def _by_key(tx: Connection, column: str, *where: ColumnElement[bool]) -> dict[Key, Any]:
    asked = select(*key_of(watermark), watermark.c[column]).where(*where)
    return {(row[0], row[1], row[2]): row[3] for row in tx.execute(asked)}


def through(tx: Connection) -> dict[Key, datetime]:
    """For each SLO by key, up to which due instant its cycles have rows."""
    return _by_key(tx, "through")


def advance(tx: Connection, watched: Collection[Key], unread: Collection[str], until: datetime) -> None:
    """Notes that all that was due up to an instant has rows: of these SLOs, and of all SLOs of the contracts
    `unread`. A contract that is edited afterwards owes nothing for the time before.
    """
    every, columns = set(watched), watermark.c
    behind = columns.through < until
    partly = {key[0] for key in through(tx) if key[0] not in unread and key not in every}
    whole = sorted({key[0] for key in every if key[0] not in partly} | set(unread))
    for some in parts(whole):
        tx.execute(update(watermark).where(columns.contract.in_(some), behind).values(through=until))
    for key in sorted(every):
        if key[0] in partly:
            tx.execute(update(watermark).where(is_of(watermark, key), behind).values(through=until))


def ever_delivered(tx: Connection) -> set[Key]:
    """The SLOs that ever had a delivery, by key."""
    return set(_by_key(tx, "delivered_at", watermark.c.delivered_at.is_not(None)))


def note_roots(tx: Connection, found: Mapping[Key, str]) -> None:
    """Keeps where the data of SLOs lies."""
    _set(tx, "root", found)


def roots(tx: Connection) -> dict[Key, str | None]:
    """Where the data of each SLO lay last, by key."""
    return _by_key(tx, "root")


def budgets_told(tx: Connection) -> dict[Key, str]:
    """How far the budgets of SLOs were told to be used, by key; those alone of which anything was told."""
    return _by_key(tx, "budget", watermark.c.budget.is_not(None))


def note_budget(tx: Connection, key: Key, used: str | None) -> None:
    """Keeps how far an SLO's budget was told to be used."""
    tx.execute(update(watermark).where(is_of(watermark, key)).values(budget=used))


def unmark(tx: Connection, key: Key) -> None:
    """Lets an SLO begin anew when it is promised again: nothing is due for the time in between."""
    tx.execute(delete(watermark).where(is_of(watermark, key)))


def move(tx: Connection, keys: Iterable[Key], until: datetime) -> None:
    """Says that every cycle of these SLOs due up to an instant has a row; none goes back."""
    before = through(tx)
    wanted = [key for key in keys if before.get(key, until) <= until]
    new = [dict(zip(KEY, key, strict=True), through=until) for key in wanted if key not in before]
    if new:
        tx.execute(insert(watermark), new)
    _advance(tx, "through", {key: until for key in wanted if key in before})


def note_deliveries(tx: Connection, newest: Mapping[Key, datetime]) -> None:
    """Keeps deliveries that are newer than those before."""
    _advance(tx, "delivered_at", newest)


def _advance(tx: Connection, column: str, values: Mapping[Key, datetime]) -> None:
    """Sets an instant of each SLO where it is newer than the one there."""
    known = watermark.c[column]
    _set(tx, column, values, or_(known.is_(None), known < bindparam("new", type_=UtcDateTime())))


def _set(tx: Connection, column: str, values: Mapping[Key, object], *where: ColumnElement[bool]) -> None:
    names = [f"its_{name}" for name in KEY]
    rows = [{**dict(zip(names, key, strict=True)), "new": value} for key, value in values.items()]
    if rows:
        new = bindparam("new", type_=watermark.c[column].type)
        same = is_of(watermark, list(map(bindparam, names)))
        tx.execute(update(watermark).where(same, *where).values({column: new}), rows)
