"""Contracts of which nothing can be learnt before an instant: the watcher need not read them until then.

Nothing is due, and what is missing stays so as long as nothing of it is seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime

from sqlalchemy import Connection, and_, bindparam, delete, insert, or_, select

from dq.dataquality.delivery.cycle import CycleState, MissingPart
from dq.dataquality.delivery.state.keys import is_of, key_of
from dq.dataquality.delivery.state.tables import cycle, cycle_excuse, receipt, resting_contract, resting_part


@dataclass(frozen=True, slots=True)
class RestingContract:
    """A file as it was understood last, at `since`; it is to be judged again at `until`, None for never.

    `content` and `terms` are hashes: of the file, and of all else that its understanding depends on. `slos`
    is the number of its promises, and `missing` what has not come of them.
    """

    file: str
    content: str
    terms: str
    contract: str
    slos: int
    since: datetime | None
    until: datetime | None
    missing: tuple[MissingPart, ...] = ()

    def rests(self, now: datetime, open_cycles: Collection[CycleState]) -> bool:
        """Whether nothing can have become of it by `now`, when these are its open cycles."""
        if self.until is not None and now >= self.until:
            return False
        # What was judged as of a later time stands otherwise now.
        if self.missing and (self.since is None or now < self.since):
            return False
        return {one.state for one in self.missing} == set(open_cycles)


_FIELDS = tuple(one.name for one in fields(RestingContract) if one.name != "missing")
_PART = tuple(one.name for one in fields(MissingPart))


def resting(
    tx: Connection, terms: str, now: datetime, open_cycles: Mapping[str, Collection[CycleState]]
) -> dict[str, RestingContract]:
    """By file, what rests at `now`, as long as its content is the same and nothing of it is seen.

    `open_cycles` are those of every contract, as they stand.
    """
    columns = resting_contract.c
    rows = tx.execute(select(*(columns[name] for name in _FIELDS)).where(columns.terms == terms)).all()
    missing: dict[str, list[MissingPart]] = {}
    for file, *part in tx.execute(select(resting_part.c.file, *(resting_part.c[name] for name in _PART))):
        missing.setdefault(file, []).append(MissingPart(*part))
    laid = [replace(RestingContract(*row), missing=tuple(missing.get(row.file, ()))) for row in rows]
    return {one.file: one for one in laid if one.rests(now, open_cycles.get(one.contract, ()))}


def spoken_of(tx: Connection) -> set[str]:
    """The files of which a missing part has a receipt, or a word that excuses it or takes that back."""
    parts, same = resting_part.c, resting_part.c.cycle_id == cycle.c.id
    there = and_(receipt.c.contract == cycle.c.contract, receipt.c.object == cycle.c.object)
    meant = or_(receipt.c.partition == parts.label, receipt.c.due_at == cycle.c.due_at)
    excused = and_(is_of(cycle_excuse, key_of(cycle)), cycle_excuse.c.due_at == cycle.c.due_at)
    asked = select(parts.file).join(cycle, same)
    return {
        *tx.scalars(asked.join(receipt, and_(there, meant)).distinct()),
        *tx.scalars(asked.join(cycle_excuse, excused).distinct()),
    }


def lay_down(tx: Connection, files: Iterable[RestingContract]) -> None:
    """Keeps what rests now, in the place of what was kept of these files before."""
    laid = list(files)
    if not laid:
        return
    for table in (resting_contract, resting_part):
        gone = delete(table).where(table.c.file == bindparam("gone"))
        tx.execute(gone, [{"gone": one.file} for one in laid])
    tx.execute(insert(resting_contract), [{name: getattr(one, name) for name in _FIELDS} for one in laid])
    parts = [
        {"file": one.file, **{name: getattr(part, name) for name in _PART}}
        for one in laid
        for part in one.missing
    ]
    if parts:
        tx.execute(insert(resting_part), parts)
