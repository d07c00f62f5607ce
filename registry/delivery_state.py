"""The delivery state of registered tables: known changes, leases of writers, and the write to the catalog.

A write is based on the version of the table that was read before the state was computed. So a writer that
was overtaken by another one fails and computes again, and never writes an older state over a newer one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from dq.registry.catalog import (
    Action,
    ActionKind,
    Catalog,
    ChangedField,
    Impact,
    StalePlan,
    TableChange,
    stale_plan,
)
from dq.registry.table import CONTRACT, DELIVERY_KEYS, MANAGED_BY, OBJECT, STATE, Key
from dq.registry.tables import catalog_delivery, catalog_delivery_mark
from dq.store.engine import Store

LEASE = timedelta(minutes=5)
"""Longer than the requests of one batch: a writer that was killed is replaced after this time."""

_ATTEMPTS = 3

Properties = Mapping[str, str]
ObjectKey = tuple[str, str]
"""Contract key and object name."""


@dataclass(frozen=True, slots=True)
class TrackedTable:
    """The table of an object in a catalog, and the id of its contract."""

    object_key: ObjectKey
    contract_id: str
    table: Key


@dataclass(frozen=True, slots=True)
class LeasedTable:
    """A table whose state may have changed, leased by this writer.

    `properties` are those that the catalog has, None if unknown. `attempt` is the fencing token of the lease,
    `changes` the number of changes that were known when it was leased.
    """

    tracked: TrackedTable
    properties: Properties | None
    attempt: int
    changes: int


def stored_marks(tx: sa.Connection, catalog: str) -> tuple[int, ...] | None:
    """Return the marks of the known changes, None before the first."""
    columns = catalog_delivery_mark.c
    marks = tx.scalar(sa.select(columns.marks).where(columns.catalog == catalog))
    return None if marks is None else tuple(marks)


def tracked_tables(tx: sa.Connection, catalog: str) -> dict[ObjectKey, TrackedTable]:
    """Return the tracked tables of a catalog by object."""
    query = sa.select(catalog_delivery).where(catalog_delivery.c.catalog == catalog)
    return {(row.contract, row.object): _tracked(row) for row in tx.execute(query)}


def _tracked(row: sa.Row) -> TrackedTable:  # type: ignore[type-arg]  # a plain select has no shape to name
    return TrackedTable((row.contract, row.object), row.contract_id, (row.database_name, row.name))


def track(tx: sa.Connection, catalog: str, tables: Iterable[TrackedTable]) -> None:
    """Track new tables, and those that objects have now in place of other ones. Each counts as changed."""
    for tracked in tables:
        contract, object_name = tracked.object_key
        tx.execute(sa.delete(catalog_delivery).where(_is_object(catalog, tracked.object_key)))
        row = {"catalog": catalog, "contract": contract, "object": object_name}
        row |= {"contract_id": tracked.contract_id}
        row |= dict(zip(("database_name", "name"), tracked.table, strict=True))
        tx.execute(sa.insert(catalog_delivery).values(**row, changes=1, settled=0, attempt=0, failures=0))


def record_changes(
    tx: sa.Connection, catalog: str, changed: Collection[ObjectKey], marks: Sequence[int]
) -> None:
    """Record that the state of these objects may have changed, and the marks of the known changes."""
    columns = catalog_delivery.c
    for object_key in sorted(changed):
        tx.execute(
            sa.update(catalog_delivery)
            .where(_is_object(catalog, object_key))
            .values(changes=columns.changes + 1)
        )
    tx.execute(sa.delete(catalog_delivery_mark).where(catalog_delivery_mark.c.catalog == catalog))
    tx.execute(sa.insert(catalog_delivery_mark).values(catalog=catalog, marks=list(marks)))


def objects_without_state(tx: sa.Connection, catalog: str, state: str) -> set[ObjectKey]:
    """Return the objects whose table has another state in the catalog, and no change that is still known."""
    columns = catalog_delivery.c
    query = sa.select(columns.contract, columns.object, columns.properties).where(
        columns.catalog == catalog, columns.changes == columns.settled, columns.properties.is_not(None)
    )
    return {
        (contract, object_name)
        for contract, object_name, properties in tx.execute(query)
        if properties.get(STATE) != state
    }


def lease(
    store: Store, catalog: str, now: datetime, limit: int, excluded: Collection[ObjectKey]
) -> list[LeasedTable]:
    """Lease the next changed tables, those without failures first. `excluded` are not leased again.

    Their stored properties are unknown until the lease is settled: a killed writer may have written others.
    """
    with store.read() as tx:
        if tx.execute(_leasable(catalog, now).limit(1)).first() is None:
            return []
    with store.write() as tx:
        rows = [
            row for row in tx.execute(_leasable(catalog, now)) if (row.contract, row.object) not in excluded
        ][:limit]
        for row in rows:
            tx.execute(
                sa.update(catalog_delivery)
                .where(_is_object(catalog, (row.contract, row.object)))
                .values(lease_until=now + LEASE, attempt=row.attempt + 1, properties=None)
            )
    return [LeasedTable(_tracked(row), row.properties, row.attempt + 1, row.changes) for row in rows]


def _leasable(catalog: str, now: datetime) -> sa.Select[tuple[object, ...]]:
    columns = catalog_delivery.c
    is_free = sa.or_(columns.lease_until.is_(None), columns.lease_until <= now)
    return (
        sa.select(catalog_delivery)
        .where(columns.catalog == catalog, columns.changes > columns.settled, is_free)
        .order_by(columns.failures, columns.contract, columns.object)
    )


def settle(tx: sa.Connection, catalog: str, leased: LeasedTable, properties: Properties | None) -> None:
    """End a lease after success: the catalog has these properties, or None if the table is not registered.

    A writer whose lease has expired does not know what the catalog has now, so the table counts as changed.
    """
    where = _is_object(catalog, leased.tracked.object_key)
    values = {"settled": leased.changes, "failures": 0, "lease_until": None}
    is_held = catalog_delivery.c.attempt == leased.attempt
    statement = sa.update(catalog_delivery).where(where, is_held)
    if tx.execute(statement.values(properties=properties, **values)).rowcount == 0:
        changes = catalog_delivery.c.changes + 1
        tx.execute(sa.update(catalog_delivery).where(where).values(changes=changes, properties=None))


def release(tx: sa.Connection, catalog: str, leased: LeasedTable, *, failed: bool) -> None:
    """End a lease without success, for the next tick. Without a failure, nothing was requested."""
    columns = catalog_delivery.c
    values = {"failures": columns.failures + 1} if failed else {"properties": leased.properties}
    tx.execute(
        sa.update(catalog_delivery)
        .where(_is_object(catalog, leased.tracked.object_key), columns.attempt == leased.attempt)
        .values(lease_until=None, **values)
    )


def _is_object(catalog: str, object_key: ObjectKey) -> sa.ColumnElement[bool]:
    columns = catalog_delivery.c
    return sa.and_(
        columns.catalog == catalog, columns.contract == object_key[0], columns.object == object_key[1]
    )


def write_state(
    catalog: Catalog, tracked: TrackedTable, compute: Callable[[], Properties], is_expired: Callable[[], bool]
) -> tuple[Properties | None, bool]:
    """Write the properties that `compute` returns to the table, unless it has them.

    Returns:
        The properties of the table now, and True if they were written. None for a table that is not
        registered for this object: dq writes to no other.

    Raises:
        StalePlan: Others write the table all the time, or the writer's lease is about to expire.
        DqError: The catalog does not answer, or refuses.
    """
    for _ in range(_ATTEMPTS):
        live = catalog.read(*tracked.table)
        if live is None:
            return None, False
        current = dict(live.spec.parameters)
        owner = (current.get(MANAGED_BY), current.get(CONTRACT), current.get(OBJECT))
        if owner != ("dq", tracked.contract_id, tracked.object_key[1]):
            return None, False
        desired = compute()
        changes = tuple(
            TableChange(ChangedField.PARAMETER, key, current.get(key), desired[key], Impact.METADATA)
            for key in DELIVERY_KEYS
            if current.get(key) != desired[key]
        )
        if not changes:
            return desired, False
        if is_expired():
            break
        after = replace(live.spec, parameters=tuple(sorted({**current, **desired}.items())))
        try:
            catalog.apply(Action(ActionKind.UPDATE, tracked.table, changes, live, after))
        except StalePlan:
            continue
        return desired, True
    raise stale_plan(*tracked.table)
