"""Contracts that a tick can skip: nothing about them can have changed since they were evaluated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, bindparam, delete, insert, or_, select

from dq.contracts.incident import CycleStatus
from dq.contracts.outcome import LAKEHOUSE, ReadError
from dq.contracts.slo import Partition, Slo
from dq.dataquality.delivery import tables
from dq.dataquality.delivery.cycle import (
    FILE_SOURCES,
    CycleRecord,
    CycleState,
    DeliveryPlace,
    MissingPartition,
    WatchTarget,
    label,
)
from dq.dataquality.delivery.evidence import partition_path, probed_sources
from dq.dataquality.delivery.probe_pool import ProbePool, ProbeTask
from dq.lake.storage import Files

# Missing partitions, and whether anything of them may have appeared.


def expected_path(slo: Slo, place: DeliveryPlace, partition: Partition) -> str | None:
    """Return the path where files of a partition are expected, or None if files are no evidence of it."""
    if not any(name in FILE_SOURCES for name in probed_sources(slo, place)):
        return None
    try:
        return partition_path(slo, partition, place)
    except ReadError:
        # It has no folder in the layout.
        return None


def find_appeared(
    probe_pool: ProbePool, parts: Sequence[MissingPartition], files_of: Callable[[str], Files]
) -> list[MissingPartition]:
    """Return the missing partitions that may exist now.

    Unreadable paths may exist. A storage that does not respond counts as no change: a full check would not
    get an answer either.
    """
    probes = [
        (part, ProbeTask(part.root, files_of(part.path), _existence_probe(part.path)))
        for part in parts
        if part.root is not None and part.path is not None
    ]
    answers = probe_pool.run([task for _, task in probes])
    return [part for (part, _), answer in zip(probes, answers, strict=True) if answer is True]


def _existence_probe(path: str) -> Callable[[Files], bool]:
    def probe(files: Files) -> bool:
        try:
            return not files.nothing(path)
        except Exception:  # noqa: BLE001  # as with every probe: the full check reports the problem
            return True

    return probe


# Statuses that only the cycle's own path, a receipt or the time can change.
_SKIPPABLE = (CycleStatus.MISSING, CycleStatus.NEVER)


@dataclass(frozen=True, slots=True)
class SkipUntil:
    """Partitions of a skipped cycle to probe, and when it must be evaluated again, or None for never."""

    parts: tuple[MissingPartition, ...]
    until: datetime | None


def skip_until(
    target: WatchTarget, root: str, record: CycleRecord, now: datetime, alert_delay: timedelta
) -> SkipUntil | None:
    """Return until when an evaluated cycle can be skipped, or None if it must be evaluated at every tick.

    It can be skipped if each partition's own path shows its delivery. An outage does not change a miss.
    `alert_delay` is the time between the breach and the alert.
    """
    cycle, slo = record.cycle, target.slo
    if record.status not in _SKIPPABLE or not cycle.partitions or target.place.format in LAKEHOUSE:
        return None
    if record.excuse or record.arriving_since is not None:
        return None
    times = [] if record.notified else [record.inhibited_until or cycle.breach_at + alert_delay]
    if record.status is CycleStatus.MISSING and slo.give_up_after:
        times.append(cycle.due_at + slo.give_up_after)
    if any(instant <= now for instant in times):
        return None
    paths = [(partition, expected_path(slo, target.place, partition)) for partition in cycle.partitions]
    state = (record.status, record.notified, record.inhibited_until)
    parts = (
        MissingPartition(record.id, number, *state, label(partition), root if path else None, path)
        for number, (partition, path) in enumerate(paths)
    )
    return SkipUntil(tuple(parts), min(times, default=None))


# Contracts that the watcher need not read before an instant: nothing is due, and none of their missing
# partitions has appeared.


@dataclass(frozen=True, slots=True)
class SkippedContract:
    """A contract file evaluated at `since` that can be skipped until `until` (None: without limit).

    `content` and `terms` are hashes: of the file, and of everything else its evaluation depends on. `slos`
    is the number of its SLOs, and `missing` are their missing partitions.
    """

    file: str
    content: str
    terms: str
    contract: str
    slos: int
    since: datetime | None
    until: datetime | None
    missing: tuple[MissingPartition, ...] = ()

    def can_skip(self, now: datetime, open_cycles: Collection[CycleState]) -> bool:
        """True if nothing can have changed by `now`, given the current open cycles of the contract."""
        if self.until is not None and now >= self.until:
            return False
        # An evaluation as of a later time is not valid now.
        if self.missing and (self.since is None or now < self.since):
            return False
        return {part.state for part in self.missing} == set(open_cycles)


_FIELDS = tuple(attribute.name for attribute in fields(SkippedContract) if attribute.name != "missing")
_PART = tuple(attribute.name for attribute in fields(MissingPartition))


def skipped_contracts(
    tx: Connection, terms: str, now: datetime, open_cycles: Mapping[str, Collection[CycleState]]
) -> dict[str, SkippedContract]:
    """Return the contracts to skip at `now`, by file, if their content is unchanged and no missing partition
    appeared.

    `open_cycles` are the current states of the open cycles, by contract.
    """
    columns = tables.resting_contract.c
    rows = tx.execute(select(*(columns[name] for name in _FIELDS)).where(columns.terms == terms)).all()
    missing: dict[str, list[MissingPartition]] = {}
    for file, *part in tx.execute(
        select(tables.resting_part.c.file, *(tables.resting_part.c[name] for name in _PART))
    ):
        missing.setdefault(file, []).append(MissingPartition(*part))
    stored = [replace(SkippedContract(*row), missing=tuple(missing.get(row.file, ()))) for row in rows]
    return {entry.file: entry for entry in stored if entry.can_skip(now, open_cycles.get(entry.contract, ()))}


def files_with_news(tx: Connection) -> set[str]:
    """Return the files with news about their missing partitions: a receipt, an excuse (or an undone one), or
    an event of the storage since they were evaluated.
    """
    parts, same_cycle = tables.resting_part.c, tables.resting_part.c.cycle_id == tables.cycle.c.id
    same_object = and_(
        tables.receipt.c.contract == tables.cycle.c.contract, tables.receipt.c.object == tables.cycle.c.object
    )
    same_delivery = or_(
        tables.receipt.c.partition == parts.label, tables.receipt.c.due_at == tables.cycle.c.due_at
    )
    same_excuse = and_(
        tables.matches_key(tables.cycle_excuse, tables.key_of(tables.cycle)),
        tables.cycle_excuse.c.due_at == tables.cycle.c.due_at,
    )
    resting, event = tables.resting_contract.c, tables.storage_event.c
    later_event = and_(
        event.contract == tables.cycle.c.contract,
        event.object == tables.cycle.c.object,
        event.recorded_at >= resting.since,
    )
    query = select(parts.file).join(tables.cycle, same_cycle)
    return {
        *tx.scalars(
            query.join(tables.resting_contract, resting.file == parts.file)
            .join(tables.storage_event, later_event)
            .distinct()
        ),
        *tx.scalars(query.join(tables.receipt, and_(same_object, same_delivery)).distinct()),
        *tx.scalars(query.join(tables.cycle_excuse, same_excuse).distinct()),
    }


def save_skipped(tx: Connection, skipped: Iterable[SkippedContract]) -> None:
    """Replace the skip cache entries of these files."""
    contracts = list(skipped)
    if not contracts:
        return
    for table in (tables.resting_contract, tables.resting_part):
        statement = delete(table).where(table.c.file == bindparam("gone"))
        tx.execute(statement, [{"gone": contract.file} for contract in contracts])
    tx.execute(
        insert(tables.resting_contract),
        [{name: getattr(contract, name) for name in _FIELDS} for contract in contracts],
    )
    parts = [
        {"file": contract.file, **{name: getattr(part, name) for name in _PART}}
        for contract in contracts
        for part in contract.missing
    ]
    if parts:
        tx.execute(insert(tables.resting_part), parts)
