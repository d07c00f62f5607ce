"""Contracts of which nothing is due and nothing is open: the watcher need not read them again until then."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, insert, select

from dq.dataquality.delivery.state.tables import resting_contract


@dataclass(frozen=True, slots=True)
class RestingContract:
    """A file as it was understood last; `until` is when the next of its `slos` is due, None for never.

    `content` and `terms` are hashes: of the file, and of all else that its understanding depends on.
    """

    file: str
    content: str
    terms: str
    contract: str
    slos: int
    until: datetime | None


_FIELDS = tuple(one.name for one in fields(RestingContract))


def resting(tx: Connection, terms: str, now: datetime, awake: Collection[str]) -> dict[str, RestingContract]:
    """By file, what rests at `now`, as long as its content is the same; never the contracts `awake`."""
    columns = resting_contract.c
    rows = tx.execute(select(*(columns[name] for name in _FIELDS)).where(columns.terms == terms))
    return {
        one.file: one
        for one in (RestingContract(*row) for row in rows)
        if (one.until is None or now < one.until) and one.contract not in awake
    }


def lay_down(tx: Connection, files: Iterable[RestingContract]) -> None:
    """Keeps what rests now, in the place of what was kept of these files before."""
    rows = [{name: getattr(one, name) for name in _FIELDS} for one in files]
    if rows:
        tx.execute(delete(resting_contract).where(resting_contract.c.file == bindparam("gone")), _gone(rows))
        tx.execute(insert(resting_contract), rows)


def _gone(rows: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    return [{"gone": row["file"]} for row in rows]
