"""Object events of S3 as evidence of deliveries: an object is that of a marker, of data, or of neither."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dq.contracts.access.access_policy import is_remote
from dq.contracts.access.data_location import is_lake, resolve
from dq.contracts.incident import CycleStatus
from dq.contracts.layout import Layout
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import DqError
from dq.contracts.slo import NOT_IN_FORCE, Partition, read_slos
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import label
from dq.dataquality.delivery.cycle_store import StorageEvent, record_storage_events
from dq.lake.storage import is_data_name, split
from dq.operations.registry_files import delivery_place
from dq.operations.runtime.context import RuntimeContext
from dq.store.engine import Store


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """An object of a bucket that was created or removed at an instant. `size` is None if unknown."""

    bucket: str
    key: str
    at: datetime
    size: int | None = None
    is_removal: bool = False


@dataclass(frozen=True, slots=True)
class EventTable:
    """A table on one server whose SLOs have events as evidence.

    `contract` is the contract's key. `columns` are the lower-case partition columns of each SLO.
    """

    contract: str
    object: str
    server: str
    marker: str
    layout: Layout
    columns: frozenset[frozenset[str]]


Tables = Mapping[str, Sequence[EventTable]]
"""Tables by their folder, e.g. `s3://lake/orders`."""


def event_tables(context: RuntimeContext, contracts: Iterable[Contract]) -> Tables:
    """Return the tables in S3 of contracts in force, without those whose location is not allowed."""
    tables: dict[str, list[EventTable]] = defaultdict(list)
    reach = context.reach
    for contract in contracts:
        if contract.status in NOT_IN_FORCE:
            continue
        by_object: dict[str, tuple[SchemaObject, set[frozenset[str]]]] = {}
        for slo in read_slos(contract)[0]:
            # New data of any partition is found by its files.
            if "event" in slo.delivery.evidence and not slo.expects_new_data:
                columns = frozenset(column.lower() for column in slo.partition)
                by_object.setdefault(slo.object.name, (slo.object, set()))[1].add(columns)
        for schema_object, columns_of_slos in by_object.values():
            for server in filter(is_lake, contract.servers):
                try:
                    location = resolve(contract, schema_object, server.server, reach)
                except DqError:
                    # `dq watch` reports it.
                    continue
                if not is_remote(location.path):
                    continue
                place = delivery_place(location, contract, schema_object)
                tables["".join(split(place.path)).rstrip("/")].append(
                    EventTable(
                        contract.key,
                        schema_object.name,
                        server.server,
                        place.marker,
                        place.layout,
                        frozenset(columns_of_slos),
                    )
                )
    return tables


def storage_events(tables: Tables, event: ObjectEvent) -> Iterator[StorageEvent]:
    """Yield what an object event says about partitions: nothing if it is not directly in their folder, or is
    neither marker nor data.
    """
    folder, _, name = event.key.rpartition("/")
    if not name:
        return
    steps = folder.split("/") if folder else []
    for depth in range(len(steps), -1, -1):
        path = "/".join((f"s3://{event.bucket}", *steps[:depth]))
        for table in tables.get(path, ()):
            is_marker = name == table.marker
            is_empty = event.size == 0 and not event.is_removal
            if not is_marker and (is_empty or not is_data_name(name)):
                continue
            partition = _partition(table, "/".join(steps[depth:]))
            if partition is not None:
                yield StorageEvent(
                    table.contract,
                    table.object,
                    table.server,
                    label(partition),
                    is_marker,
                    event.at,
                    event.is_removal,
                )


def _partition(table: EventTable, folder: str) -> Partition | None:
    """Return the partition of a folder below the table, or None if no SLO expects such a one."""
    partition = table.layout.partition_of(folder) if folder else ()
    if partition is None or frozenset(column.lower() for column, _ in partition) not in table.columns:
        return None
    # Values that no database stores as text: an escaped NUL, half a character.
    return partition if all(text.isprintable() for pair in partition for text in pair) else None


# Cycles whose status an event may change.
_WAITING = (CycleStatus.PENDING, CycleStatus.MISSING, CycleStatus.UNKNOWN, CycleStatus.NEVER)


@dataclass(frozen=True, slots=True)
class RecordedEvents:
    """Numbers of object events with and without a partition, and contracts (by key) with a cycle that waits
    for one of these partitions.
    """

    recorded: int
    ignored: int
    waiting: tuple[str, ...]


def record_object_events(
    context: RuntimeContext, store: Store, tables: Tables, events: Iterable[ObjectEvent]
) -> RecordedEvents:
    """Record object events in one transaction. Recording an event again changes nothing."""
    by_event = [list(storage_events(tables, event)) for event in events]
    recorded = [stored for stored_events in by_event for stored in stored_events]
    now = context.now()
    if recorded:
        with store.write() as tx:
            record_storage_events(tx, recorded, now)
    changed = {(event.contract, event.object, event.partition) for event in recorded}
    layouts = {(table.contract, table.object): table.layout for group in tables.values() for table in group}
    waiting: dict[str, None] = {}
    with store.read() as tx:
        open_cycles = cycle_store.open_cycles(tx, now, {contract for contract, _, _ in changed})
    for (contract, object_name, _), records in open_cycles.items():
        layout = layouts.get((contract, object_name))
        for record in records:
            names = {_label(layout, partition) for partition in record.cycle.partitions or ((),)}
            if record.status in _WAITING and any((contract, object_name, name) in changed for name in names):
                waiting[contract] = None
    ignored = sum(not stored_events for stored_events in by_event)
    return RecordedEvents(len(by_event) - ignored, ignored, tuple(waiting))


def _label(layout: Layout | None, partition: Partition) -> str:
    try:
        return label(layout.normalized(partition) if layout else partition)
    except ValueError:
        # It has no folder in the layout.
        return label(partition)
