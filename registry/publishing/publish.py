"""Publishes a delivery: partition, marker, receipt, notification, in this order and each exactly once.

What makes a step happen once is that it can be seen to have happened (partition, marker, line in the file)
or that it commits with the journal (receipt). So a kill at any point, and a retry, end in one of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Insert, insert, select

from dq.contracts.shared.errors import DqError
from dq.registry.catalog import Catalog
from dq.registry.publishing.marker import require_folder, write_marker
from dq.registry.publishing.publication import DeliveryEvent, Publication
from dq.registry.tables import publish_step
from dq.store.engine import Store

_BEGUN = "begun"
STEPS = ("partition", "marker", "receipt", "notify")


@dataclass(frozen=True, slots=True)
class Published:
    """The event, and the steps that this run did; none when all had been done before."""

    event: DeliveryEvent
    done: tuple[str, ...]


def publish(
    one: Publication,
    *,
    catalog: Catalog,
    store: Store,
    now: datetime,
    receipt: Callable[[Connection, DeliveryEvent], None],
    notify: Callable[[DeliveryEvent], None],
) -> Published:
    """Does what is still to be done for this delivery, and says what that was.

    `receipt` writes in the open transaction that it is given, so that it commits together with the
    journal. `notify` may be called again after a kill, and must know an event by its id. Raises DqError
    when a step fails; the steps before it stay done, and the next call goes on from there.
    """
    event_id = one.event_id
    begun, done = _journal(store, event_id)
    if not set(STEPS) - done:
        assert begun is not None
        return Published(DeliveryEvent(event_id, one, begun), ())
    if not one.marker:
        # The table's own log holds its partitions and says when they are complete.
        done |= {"partition", "marker"}
    elif catalog.read(one.database, one.table) is None:
        raise DqError(
            f"The catalog has no table {one.database}.{one.table}.", "Register it: dq register --apply."
        )
    event = DeliveryEvent(event_id, one, begun or _begin(store, event_id, now))
    did: list[str] = []
    if "partition" not in done:
        # Asked first, so that no reader is ever sent to a folder that is not there.
        require_folder(one.folder, make=one.rows == 0)
        if one.values:
            catalog.add_partition(one.database, one.table, one.values, one.folder)
        _note(store, event_id, "partition", now, did)
    if "marker" not in done:
        write_marker(one.folder, one.marker)
        _note(store, event_id, "marker", now, did)
    if "receipt" not in done:
        with store.write() as connection:
            # Two processes may get here at once; the second sees that the first has committed.
            if not _noted(connection, event_id, "receipt"):
                receipt(connection, event)
                connection.execute(_row(event_id, "receipt", now))
                did.append("receipt")
    if "notify" not in done:
        notify(event)
        _note(store, event_id, "notify", now, did)
    return Published(event, tuple(did))


def _journal(store: Store, event_id: str) -> tuple[datetime | None, set[str]]:
    """When publishing began, and the steps that are done."""
    query = select(publish_step.c.step, publish_step.c.at).where(publish_step.c.event_id == event_id)
    with store.read() as connection:
        rows = {row.step: row.at for row in connection.execute(query)}
    return rows.pop(_BEGUN, None), set(rows)


def _begin(store: Store, event_id: str, now: datetime) -> datetime:
    """Notes the begin, and gives the one that counts: another process may have been first."""
    with store.write() as connection:
        query = select(publish_step.c.at).where(
            publish_step.c.event_id == event_id, publish_step.c.step == _BEGUN
        )
        first: datetime | None = connection.execute(query).scalar_one_or_none()
        if first is None:
            connection.execute(_row(event_id, _BEGUN, now))
        return first or now


def _note(store: Store, event_id: str, step: str, now: datetime, did: list[str]) -> None:
    with store.write() as connection:
        if not _noted(connection, event_id, step):
            connection.execute(_row(event_id, step, now))
            did.append(step)


def _noted(connection: Connection, event_id: str, step: str) -> bool:
    query = select(publish_step.c.step).where(
        publish_step.c.event_id == event_id, publish_step.c.step == step
    )
    return connection.execute(query).first() is not None


def _row(event_id: str, step: str, now: datetime) -> Insert:
    return insert(publish_step).values(event_id=event_id, step=step, at=now)
