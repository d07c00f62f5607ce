"""Publishes a delivery: partition, marker, receipt, notices, in this order, each of them once.

The journal says what was done, the catalog and the lake say what is: each step looks before it skips. The
receipt, the notices and the journal's row commit together, and notices are sent afterwards (`tell`). So a
kill at any point, and a retry, end in one of each; and what somebody removed since is put back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from dq.contracts.shared.errors import DqError
from dq.registry.catalog import Catalog, no_table
from dq.registry.publishing import journal, notices
from dq.registry.publishing.journal import Revision
from dq.registry.publishing.marker import folder_is_there, marker_is_there, require_folder, write_marker
from dq.registry.publishing.publication import DeliveryEvent, Publication
from dq.registry.table import fold_location
from dq.store.engine import Store


@dataclass(frozen=True, slots=True)
class ReceiptBook:
    """Where receipts are kept: whether that of an event is there, and how it is written.

    All get an open transaction; what is written commits with the journal. `count` adds the number of rows to
    a receipt that has none.
    """

    knows: Callable[[Connection, str], bool]
    write: Callable[[Connection, DeliveryEvent], None]
    count: Callable[[Connection, str, int], None]


@dataclass(frozen=True, slots=True)
class Published:
    """The event, and the steps that this run did; none when all stands as it was published before.

    `mended` says of a revision that was published before what was not there any more, a sentence each.
    """

    event: DeliveryEvent
    done: tuple[str, ...]
    mended: tuple[str, ...] = ()


def publish(
    one: Publication,
    *,
    catalog: Catalog,
    store: Store,
    now: datetime,
    receipts: ReceiptBook,
    targets: Sequence[str] = (),
    redelivery: bool = False,
    run: str = "",
) -> Published:
    """Does what is still to be done for this delivery, and says what that was.

    A delivery that was published before is one of the same contract in one major, object, partition, cycle,
    server and catalog. It gets a new revision where `rows` are given and are others than the newest number
    known of it, and with `redelivery`: each time, or once for each `run`, a word of the producer's scheduler.
    `targets` are told of each revision: the notices wait in the store until `tell` has sent them.

    Raises DqError when a step fails; the steps before it stay done, and the next call goes on from there.
    """

    def wanted(tx: Connection, known: Revision | None) -> bool:
        return _is_new(tx, one, known, redelivery, run)

    with store.read() as tx:
        known = journal.newest(tx, one.delivery)
        old = None if known else journal.newest(tx, one.delivery_before)
        new, lost = wanted(tx, known), known is not None and not receipts.knows(tx, known.id)
    if known is not None and known.folder and not new and not one.staged:
        # Its files are still where they were staged; what lies below the table is older.
        one = replace(one, folder=known.folder)
        if one.marker and not folder_is_there(one.folder):
            raise DqError(
                f"{one.folder}, where this delivery was published, does not exist any more.",
                "Stage it anew and publish that; if it was written below the table by now, say --redelivery.",
            )
    found = _look(one, catalog)
    if old is not None and found.anything:
        with store.write() as tx:
            known = journal.adopt(tx, one)
            new, lost = wanted(tx, known), known is not None and not receipts.knows(tx, known.id)
    steps = _stand(one, catalog, found, store, now, first=known is None)
    completed = known is not None and known.rows is None and one.rows is not None
    if not new and not lost and not completed:
        assert known is not None
        return Published(known.event(one), tuple(steps), tuple(steps.values()))
    with store.write() as tx:
        # Another process may have been here meanwhile: what is read now stays true until this commits.
        newest = journal.newest(tx, one.delivery)
        new = wanted(tx, newest)
        made = journal.finish(tx, one, newest, run, now) if new or newest is None else newest
        event = made.event(one)
        again = made is newest
        if not receipts.knows(tx, event.id):
            receipts.write(tx, event)
            steps["receipt"] = "the receipt was not in the store"
        elif again and event.publication.rows is None and one.rows is not None:
            made = journal.count(tx, made, one.rows)
            event = made.event(one)
            receipts.count(tx, event.id, one.rows)
            steps["receipt"] = "the receipt had no number of rows"
        if not again:
            notices.write(tx, event, targets, now)
            steps["notify"] = "consumers were not told"
    return Published(event, tuple(steps), tuple(steps.values()) if again else ())


def _is_new(tx: Connection, one: Publication, known: Revision | None, redelivery: bool, run: str) -> bool:
    if known is None:
        return True
    if one.rows is not None and one.rows != known.newest_count:
        return True
    return redelivery and not (run and journal.knows_run(tx, one.delivery, run))


@dataclass(frozen=True, slots=True)
class _Found:
    """Where the catalog has the partition, "" for nowhere; whether the marker stands in the folder."""

    place: str
    marker: bool
    anything: bool


def _look(one: Publication, catalog: Catalog) -> _Found:
    """How it stands. Raises DqError where the catalog's table is not the contract's."""
    if not one.marker:
        # The table's own log holds its partitions and says when they are complete.
        return _Found("", marker=True, anything=True)
    live = catalog.read(one.database, one.table)
    if live is None:
        raise no_table(one.database, one.table)
    name = f"{one.database}.{one.table}"
    keys = [column.name for column in live.spec.partitions]
    if keys != [key for key, _ in one.values]:
        raise DqError(
            f"The catalog has {name} by the keys {', '.join(keys) or 'none'}, and the contract has others.",
            "Register the change: dq register --apply.",
        )
    there, wanted = fold_location(live.spec.location), fold_location(one.table_location)
    if wanted and there and there != wanted:
        raise _at_another_place(one, name, there, wanted)
    place = (catalog.place_of(one.database, one.table, one.values) or "") if one.values else ""
    marker = marker_is_there(one.folder, one.marker)
    return _Found(place, marker, anything=marker or place == fold_location(one.folder))


def _at_another_place(one: Publication, name: str, there: str, wanted: str) -> DqError:
    """The catalog's table is another server's, or the contract's moved."""
    owner = next((server for server, at in one.other_locations if fold_location(at) == there), None)
    if owner is not None:
        return DqError(
            f"The catalog has {name} of the server {owner!r}, at {there}; {one.server!r} has it at {wanted}.",
            f"Publish with --server {owner} what lies there. For {one.server!r}, name its own catalog.",
        )
    return DqError(
        f"The catalog has {name} at {there}, and the contract's server {one.server!r} at {wanted}.",
        "If the table moved, register that first: dq register --apply.",
    )


def _stand(
    one: Publication, catalog: Catalog, found: _Found, store: Store, now: datetime, *, first: bool
) -> dict[str, str]:
    """Puts partition and marker where they are missing; each step done, and what of an old one was gone."""
    steps: dict[str, str] = {}
    if not one.marker:
        return steps
    # Asked before anything else, so that no reader is ever sent to a folder that is not there, and nothing
    # counts as begun before it is.
    require_folder(one.folder, make=one.rows == 0)
    if first:
        with store.write() as tx:
            journal.begin(tx, one.delivery, now)
    if one.values and not found.place:
        # False where another process was faster.
        if catalog.add_partition(one.database, one.table, one.values, one.folder):
            steps["partition"] = "the partition was not in the catalog"
    elif one.values and found.place != fold_location(one.folder):
        catalog.move_partition(one.database, one.table, one.values, one.folder)
        steps["partition"] = f"the catalog had the partition at {found.place}"
    if not found.marker and write_marker(one.folder, one.marker):
        steps["marker"] = f"{one.marker} was not there"
    return steps
