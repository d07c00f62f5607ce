"""What is missing and stays so, and the contracts that need not be read until something of it is seen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, bindparam, delete, insert, or_, select

from dq.contracts.schedule.cycle import Partition
from dq.contracts.shared.outcome import CycleStatus
from dq.contracts.shared.units import LAKEHOUSE
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import CycleState, DeliveryPlace, Kept, MissingPart, Watched, label
from dq.dataquality.delivery.evidence import asked_for, folder
from dq.dataquality.delivery.probe_pool import Errand, Lookout
from dq.dataquality.delivery.tables import (
    cycle,
    cycle_excuse,
    is_of,
    key_of,
    receipt,
    resting_contract,
    resting_part,
)
from dq.lake.storage import Files

# Parts of missing deliveries, and whether anything of them may be there by now.

_BY_FILES = ("marker", "file")


def path_of(slo: Slo, place: DeliveryPlace, partition: Partition) -> str | None:
    """Where files would show a partition; None where none are asked."""
    by_files = any(name in _BY_FILES for name in asked_for(slo, place))
    return folder(slo, partition, place) if by_files else None


def appeared(
    lookout: Lookout, parts: Sequence[MissingPart], files_of: Callable[[str], Files]
) -> list[MissingPart]:
    """Those of which something may be there now.

    What cannot be read may be there. A storage that is silent shows nothing: it would not to a closer look.
    """
    asked = [
        (part, Errand(part.root, files_of(part.path), _seen(part.path)))
        for part in parts
        if part.root is not None and part.path is not None
    ]
    answers = lookout.answers([errand for _, errand in asked])
    return [part for (part, _), answer in zip(asked, answers, strict=True) if answer is True]


def _seen(path: str) -> Callable[[Files], bool]:
    def work(files: Files) -> bool:
        try:
            return not files.nothing(path)
        except Exception:  # noqa: BLE001  # as with every probe: whoever looks closer says what is wrong
            return True

    return work


# As long as its own path, a receipt and the time alone can move it.
_MAY_REST = (CycleStatus.MISSING, CycleStatus.NEVER)


@dataclass(frozen=True, slots=True)
class CycleRest:
    """What of a cycle is looked for, and when it is judged again whatever is seen; None for never."""

    parts: tuple[MissingPart, ...]
    until: datetime | None


def rest_of(one: Watched, root: str, kept: Kept, now: datetime, settle: timedelta) -> CycleRest | None:
    """How a cycle may rest that was judged at `now`; None for one that has to be judged at every tick.

    It may where a partition's own path shows its delivery. That it cannot be seen moves no miss. `settle` is
    how long after its breach a miss is told.
    """
    cycle, slo = kept.cycle, one.slo
    if kept.status not in _MAY_REST or not cycle.partitions or one.place.format in LAKEHOUSE:
        return None
    if kept.excuse or kept.arriving_since is not None:
        return None
    times = [] if kept.told else [kept.held_until or cycle.breach_at + settle]
    if kept.status is CycleStatus.MISSING and slo.give_up_after:
        times.append(cycle.due_at + slo.give_up_after)
    if any(at <= now for at in times):
        return None
    places = [(partition, path_of(slo, one.place, partition)) for partition in cycle.partitions]
    state = (kept.status, kept.told, kept.held_until)
    parts = (
        MissingPart(kept.id, number, *state, label(partition), root if path else None, path)
        for number, (partition, path) in enumerate(places)
    )
    return CycleRest(tuple(parts), min(times, default=None))


# Contracts of which nothing can be learnt before an instant: the watcher need not read them until then.
#
# Nothing is due, and what is missing stays so as long as nothing of it is seen.


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


def resting_contracts(
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


def save_skipped(tx: Connection, files: Iterable[RestingContract]) -> None:
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
