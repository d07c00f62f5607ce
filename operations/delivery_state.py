"""Delivery state in the catalog: after its verdicts, the watcher writes how far each table is complete."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from hashlib import sha256

from dq.contracts.access.data_location import resolve
from dq.contracts.incident import DeliveryState
from dq.contracts.lineage import database_name, table_name
from dq.contracts.outcome import DqError, join_limited, pluralize
from dq.contracts.slo import Slo
from dq.dataquality.complete_through import CompleteThrough, changed_objects, complete_through
from dq.dataquality.delivery import cycle_store
from dq.operations.runtime.context import RuntimeContext
from dq.registry import delivery_state
from dq.registry.catalog import Catalog
from dq.registry.delivery_state import LeasedTable, ObjectKey, Properties, TrackedTable
from dq.registry.table import CHECKED_THROUGH, COMPLETE_THROUGH, STATE
from dq.store.engine import Store

WRITE_SECONDS = 30.0
"""Time of a tick for the catalog; the remaining tables are left to the next tick."""

NO_VALUE = "none"
"""Text of a property without value; the removal of one cannot be confirmed after a lost answer."""

_BATCH, _MAX_FAILURES, _NAMED = 20, 3, 5
_AWS_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE")


@dataclass(slots=True)
class CatalogWrites:
    """Tables that a tick wrote to the catalog, by name, and the errors of failed ones.

    `unregistered` are changed tables that the catalog does not have, or not for this contract. `waiting`:
    some changed tables are left to the next tick.
    """

    written: list[str] = field(default_factory=list)
    unregistered: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    waiting: bool = False

    def as_dict(self) -> dict[str, object]:
        """Return the writes as JSON values."""
        return {
            "written": self.written,
            "unregistered": self.unregistered,
            "failed": [{"table": table, "error": error} for table, error in self.failed.items()],
            "waiting": self.waiting,
        }

    def notes(self) -> list[str]:
        """Return what an operator should know."""
        lines = []
        if self.failed:
            first = next(iter(self.failed.values()))
            count = pluralize(len(self.failed), "table")
            lines.append(
                f"the state of {count} was not written to the catalog, the next tick will retry: {first}"
            )
        if self.unregistered:
            names = join_limited(self.unregistered, _NAMED)
            lines.append(f"not registered in the catalog, so without delivery state: {names}.")
        return lines


def catalog_name(context: RuntimeContext) -> str:
    """Return a name of the catalog of the settings, "" without one. Its state is stored under it."""
    settings, environment = context.settings, context.environment
    if not settings.watch_catalog:
        return ""
    parts = [settings.watch_catalog_role, settings.watch_catalog_id]
    if settings.watch_catalog == "glue":
        parts += [environment.get(name, "") for name in _AWS_VARIABLES]
    if settings.watch_catalog == "iceberg":
        parts += [environment.get(f"PYICEBERG_CATALOG__DEFAULT__{name}", "") for name in ("URI", "WAREHOUSE")]
    digest = sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{settings.watch_catalog}:{digest}"


def properties_of(standing: CompleteThrough) -> Properties:
    """Return the state as properties of a table."""
    return {
        COMPLETE_THROUGH: standing.through.text if standing.through else NO_VALUE,
        CHECKED_THROUGH: standing.checked.text if standing.checked else NO_VALUE,
        STATE: standing.state.value,
    }


def record_changes(context: RuntimeContext, store: Store, slos: Iterable[Slo], server: str | None) -> None:
    """Record which tables the tick may have changed, so that a killed watcher loses none of them."""
    catalog = catalog_name(context)
    if not catalog:
        return
    tables = _tables(context, slos, server)
    with store.read() as tx:
        tracked = delivery_state.tracked_tables(tx, catalog)
        before = delivery_state.stored_marks(tx, catalog)
        changed, marks = changed_objects(tx, before)
        watched = cycle_store.watched_slos(tx, {contract for contract, _ in tracked}).keys()
        changed |= delivery_state.objects_without_state(tx, catalog, DeliveryState.UNWATCHED) - watched
    new = [table for table in tables if tracked.get(table.object_key) != table]
    if new or before != marks or changed:
        with store.write() as tx:
            delivery_state.track(tx, catalog, new)
            delivery_state.record_changes(tx, catalog, changed, marks)


def _tables(context: RuntimeContext, slos: Iterable[Slo], server: str | None) -> list[TrackedTable]:
    reach, tables = context.reach, dict[ObjectKey, TrackedTable]()
    for slo in slos:
        contract, schema_object = slo.contract, slo.object
        try:
            database = database_name(
                contract, resolve(contract, schema_object, slo.server or server, reach).database
            )
        except DqError:
            # The watcher reports that its location is unknown.
            continue
        key = (contract.key, schema_object.name)
        tables[key] = TrackedTable(key, contract.id, (database, table_name(schema_object)))
    return list(tables.values())


OpenCatalog = Callable[[RuntimeContext, Store], Catalog]


def open_watch_catalog(context: RuntimeContext, store: Store) -> Catalog:
    """Open the catalog of the settings. Raises UsageError if one of its settings is missing."""
    # Imported here: Spark's options are not needed for other catalogs.
    from dq.operations.runtime.spark import open_named_catalog

    settings = context.settings
    return open_named_catalog(
        context, store, settings.watch_catalog, settings.watch_catalog_role, settings.watch_catalog_id
    )


def write_states(
    context: RuntimeContext, store: Store, open_catalog: OpenCatalog = open_watch_catalog
) -> CatalogWrites | None:
    """Write the state of all changed tables; None without the setting `watch_catalog`.

    Makes no request for a table whose state is unchanged. Errors of the catalog are in the result.
    """
    name = catalog_name(context)
    if not name:
        return None
    writes, ends_at = CatalogWrites(), time.monotonic() + WRITE_SECONDS
    catalog: Catalog | None = None
    attempted: set[ObjectKey] = set()
    while not writes.waiting and (
        batch := delivery_state.lease(store, name, context.now(), _BATCH, attempted)
    ):
        attempted |= {leased.tracked.object_key for leased in batch}
        for leased in batch:
            if len(writes.failed) >= _MAX_FAILURES or time.monotonic() > ends_at:
                writes.waiting = True
            if writes.waiting:
                with store.write() as tx:
                    delivery_state.release(tx, name, leased, failed=False)
                continue
            try:
                compute = partial(_compute, store, leased.tracked.object_key)
                if leased.properties is not None and leased.properties == compute():
                    _settle(store, name, leased, leased.properties)
                    continue
                catalog = catalog or open_catalog(context, store)
                properties, is_written = delivery_state.write_state(
                    catalog, leased.tracked, compute, _expires_in(delivery_state.LEASE / 2)
                )
            except DqError as error:
                writes.failed[".".join(leased.tracked.table)] = str(error)
                with store.write() as tx:
                    delivery_state.release(tx, name, leased, failed=True)
                continue
            _settle(store, name, leased, properties)
            if is_written:
                writes.written.append(".".join(leased.tracked.table))
            elif properties is None:
                writes.unregistered.append(".".join(leased.tracked.table))
    for note in writes.notes():
        context.note(note)
    return writes


def _expires_in(period: timedelta) -> Callable[[], bool]:
    expires_at = time.monotonic() + period.total_seconds()
    return lambda: time.monotonic() > expires_at


def _compute(store: Store, object_key: ObjectKey) -> Properties:
    with store.read() as tx:
        return properties_of(complete_through(tx, *object_key))


def _settle(store: Store, name: str, leased: LeasedTable, properties: Properties | None) -> None:
    with store.write() as tx:
        delivery_state.settle(tx, name, leased, properties)
