"""Contracts that need not be read: another file has their key, or nothing new can be seen of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, bindparam, delete, insert, or_, select, update

from dq.contracts.outcome import LAKEHOUSE, CycleStatus
from dq.contracts.slo import Partition, Slo
from dq.dataquality.delivery import tables
from dq.dataquality.delivery.cycle import (
    FILE_SOURCES,
    CycleState,
    DeliveryPlace,
    Kept,
    MissingPart,
    Watched,
    label,
)
from dq.dataquality.delivery.evidence import asked_for, folder
from dq.dataquality.delivery.probe_pool import Errand, Lookout
from dq.lake.storage import Files

# Which file is a contract when several say so: the one that was there first, which the store remembers.
#
# Deliveries, incidents and alerts are filed under a contract's key. Without this memory, a stranger's file
# would take them over by writing down another contract's id.


@dataclass(frozen=True, slots=True)
class Claim:
    """A file that says that it is the contract of a key; `file` is its name within its registry."""

    key: str
    file: str


@dataclass(frozen=True, slots=True)
class Decision:
    """`refused` has the reason for each claim that does not hold, `new` the file of each key to remember."""

    refused: Mapping[Claim, str]
    new: Mapping[str, str]


def decide(
    claims: Iterable[Claim], remembered: Mapping[str, str], may_hold: Callable[[str, str], bool]
) -> Decision:
    """Who holds each key, from the files of this run and those that were first.

    The remembered file keeps its key, whatever the others are called. When it is gone, or has become
    another contract, one single file takes over: it has moved. `may_hold` says of a remembered file that
    is not among the claims whether it still holds the key, or cannot be read. Of several files without a
    remembered one among them, none holds it: nobody knows which was first.
    """
    files: dict[str, dict[str, None]] = {}
    for claim in claims:
        files.setdefault(claim.key, {})[claim.file] = None
    refused: dict[Claim, str] = {}
    new: dict[str, str] = {}
    for key, rivals in files.items():
        first = remembered.get(key)
        if first is not None and (first in rivals or may_hold(key, first)):
            why = f"{first} was the contract {key!r} first, and keeps its deliveries and alerts."
            refused |= {Claim(key, file): why for file in rivals if file != first}
        elif len(rivals) == 1:
            new[key] = next(iter(rivals))
        else:
            why = f"{', '.join(rivals)} are the same contract {key!r}, and nobody knows which was first."
            refused |= {Claim(key, file): why for file in rivals}
    return Decision(refused, new)


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The file that is a contract, the folder of its registry (None: not seen since that is kept), and since
    when it is not the contract any more."""

    file: str
    registry: str | None = None
    gone_since: datetime | None = None


def holders(tx: Connection) -> dict[str, KeyHolder]:
    """Who holds each contract, by its key."""
    rows = tx.execute(select(tables.contract_holder))
    return {row.contract: KeyHolder(row.file, row.registry, row.gone_since) for row in rows}


def remembered(tx: Connection) -> dict[str, str]:
    """The file of each contract by its key."""
    return {key: holder.file for key, holder in holders(tx).items()}


def note(tx: Connection, seen: Mapping[str, KeyHolder]) -> None:
    """Keeps where these contracts are, and since when they are gone."""
    table = tables.contract_holder
    for key, one in seen.items():
        where = update(table).where(table.c.contract == key)
        tx.execute(where.values(registry=one.registry, gone_since=one.gone_since))


def forget(tx: Connection, keys: Collection[str]) -> None:
    """Leaves these keys to whoever is next."""
    tx.execute(delete(tables.contract_holder).where(tables.contract_holder.c.contract.in_(keys)))


def remember(tx: Connection, new: Mapping[str, str], now: datetime) -> None:
    """Keeps the file of each key; `tx` is the transaction in which it was decided."""
    known = remembered(tx)
    table = tables.contract_holder
    added = [{"contract": key, "file": file, "since": now} for key, file in new.items() if key not in known]
    if added:
        tx.execute(insert(table), added)
    for key, file in new.items():
        if known.get(key, file) != file:
            tx.execute(update(table).where(table.c.contract == key).values(file=file, since=now))


# What is missing and stays so, and the contracts that need not be read until something of it is seen.

# Parts of missing deliveries, and whether anything of them may be there by now.


def path_of(slo: Slo, place: DeliveryPlace, partition: Partition) -> str | None:
    """Where files would show a partition; None where none are asked."""
    by_files = any(name in FILE_SOURCES for name in asked_for(slo, place))
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
    columns = tables.resting_contract.c
    rows = tx.execute(select(*(columns[name] for name in _FIELDS)).where(columns.terms == terms)).all()
    missing: dict[str, list[MissingPart]] = {}
    for file, *part in tx.execute(
        select(tables.resting_part.c.file, *(tables.resting_part.c[name] for name in _PART))
    ):
        missing.setdefault(file, []).append(MissingPart(*part))
    laid = [replace(RestingContract(*row), missing=tuple(missing.get(row.file, ()))) for row in rows]
    return {one.file: one for one in laid if one.rests(now, open_cycles.get(one.contract, ()))}


def spoken_of(tx: Connection) -> set[str]:
    """The files of which a missing part has a receipt, or a word that excuses it or takes that back."""
    parts, same = tables.resting_part.c, tables.resting_part.c.cycle_id == tables.cycle.c.id
    there = and_(
        tables.receipt.c.contract == tables.cycle.c.contract, tables.receipt.c.object == tables.cycle.c.object
    )
    meant = or_(tables.receipt.c.partition == parts.label, tables.receipt.c.due_at == tables.cycle.c.due_at)
    excused = and_(
        tables.is_of(tables.cycle_excuse, tables.key_of(tables.cycle)),
        tables.cycle_excuse.c.due_at == tables.cycle.c.due_at,
    )
    asked = select(parts.file).join(tables.cycle, same)
    return {
        *tx.scalars(asked.join(tables.receipt, and_(there, meant)).distinct()),
        *tx.scalars(asked.join(tables.cycle_excuse, excused).distinct()),
    }


def save_skipped(tx: Connection, files: Iterable[RestingContract]) -> None:
    """Keeps what rests now, in the place of what was kept of these files before."""
    laid = list(files)
    if not laid:
        return
    for table in (tables.resting_contract, tables.resting_part):
        gone = delete(table).where(table.c.file == bindparam("gone"))
        tx.execute(gone, [{"gone": one.file} for one in laid])
    tx.execute(
        insert(tables.resting_contract), [{name: getattr(one, name) for name in _FIELDS} for one in laid]
    )
    parts = [
        {"file": one.file, **{name: getattr(part, name) for name in _PART}}
        for one in laid
        for part in one.missing
    ]
    if parts:
        tx.execute(insert(tables.resting_part), parts)
