"""Publishes a delivery: partition, marker, receipt, notices, in this order, each of them once."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Select, delete, func, insert, select, update

from dq.contracts.access.access_policy import is_remote
from dq.contracts.outcome import DqError, Unreadable
from dq.lake.storage import file_system, mend_of, split
from dq.registry.catalog import Catalog, no_table
from dq.registry.publications import DeliveryEvent, Publication, event_id, first_event_id
from dq.registry.publications import write as write_notices
from dq.registry.table import fold_location
from dq.registry.tables import consumer_notice, publication, publication_begun
from dq.store.engine import Store

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


# What was published of a delivery, as rows: its revisions, and when one began that is not done yet.


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of a delivery that was published: consumers were told of it, or are about to be.

    `folder` is where its files lie, None where Hive would put them; `run` is the producer's word, or "".
    """

    id: str
    number: int
    rows: int | None
    previous_rows: int | None
    begun_at: datetime
    folder: str | None = None
    run: str = ""

    @property
    def newest_count(self) -> int | None:
        """Rows of this revision; where it came without a number, of the newest one before that has it."""
        return self.previous_rows if self.rows is None else self.rows

    def event(self, one: Publication) -> DeliveryEvent:
        """What was told of it."""
        told = replace(one, rows=self.rows)
        return DeliveryEvent(self.id, told, self.begun_at, self.number, self.previous_rows)


def newest_revision(tx: Connection, delivery: str) -> Revision | None:
    """The newest revision of a delivery, or None."""
    names = ("id", "revision", "rows", "previous_rows", "begun_at", "folder", "run")
    asked = select(*(publication.c[name] for name in names)).where(publication.c.delivery == delivery)
    row = tx.execute(asked.order_by(publication.c.revision.desc()).limit(1)).one_or_none()
    return None if row is None else Revision(*row)


def knows_run(tx: Connection, delivery: str, run: str) -> bool:
    """Whether this run of the producer has published a revision."""
    here = (publication.c.delivery == delivery) & (publication.c.run == run)
    return tx.execute(select(publication.c.id).where(here).limit(1)).first() is not None


def begin_revision(tx: Connection, delivery: str, now: datetime) -> None:
    """Notes the begin of a first revision, unless a run that was killed has done so."""
    if begun(tx, delivery) is None:
        tx.execute(insert(publication_begun).values(delivery=delivery, at=now))


def begun(tx: Connection, delivery: str) -> datetime | None:
    """When publishing began that is not done yet, or None."""
    asked = select(publication_begun.c.at).where(publication_begun.c.delivery == delivery)
    found: datetime | None = tx.execute(asked).scalar_one_or_none()
    return found


def finish_revision(
    tx: Connection, one: Publication, before: Revision | None, run: str, now: datetime
) -> Revision:
    """Notes a revision after the newest one: the first is of when it began, a later one of now."""
    began = now if before else begun(tx, one.delivery) or now
    number = before.number + 1 if before else 1
    made = Revision(
        event_id(one, number, began) if before else first_event_id(one),
        number,
        one.rows,
        before.newest_count if before else None,
        began,
        one.folder if one.staged else None,
        run,
    )
    tx.execute(
        insert(publication).values(
            id=made.id,
            delivery=one.delivery,
            revision=number,
            rows=made.rows,
            previous_rows=made.previous_rows,
            folder=made.folder,
            run=run,
            begun_at=began,
            published_at=now,
        )
    )
    tx.execute(delete(publication_begun).where(publication_begun.c.delivery == one.delivery))
    return made


# The 0-byte file that says that a folder is complete, on a local disk or in an object store.


def require_folder(folder: str, make: bool = False) -> None:
    """Raises DqError when the folder does not exist: nothing was delivered there. `make`: it may be made.

    `folder` is a local path, a `file:` URL, or a URL that Arrow knows (`s3://`, `hdfs://`, `gs://`).
    Raises MissingTool without pyarrow where that is needed, Unreadable when the place does not answer.
    """
    # Object stores have no folders, and HDFS makes one for the first file in it.
    if make and not is_remote(folder):
        with _explained(folder):
            _local(folder).mkdir(parents=True, exist_ok=True)
    if not make and not folder_is_there(folder):
        raise DqError(
            f"Nothing was delivered: {folder} does not exist.",
            "Write the data first, or check the partition; an empty delivery says --rows 0.",
        )


def folder_is_there(folder: str) -> bool:
    """Whether there is such a folder. Raises MissingTool and Unreadable as `require_folder` does."""
    return _stands(folder, "", Path.is_dir, "Directory")


def write_marker(folder: str, name: str) -> bool:
    """Puts the empty file into the folder; False, and nothing is written, when it is there already.

    Raises as `require_folder` does.
    """
    with _explained(folder):
        if not is_remote(folder):
            try:
                (_local(folder) / name).touch(exist_ok=False)
            except FileExistsError:
                if not (_local(folder) / name).is_file():
                    raise OSError(errno.EEXIST, f"{name} is no file") from None
                return False
            return True
        if _stands(folder, name, Path.is_file, "File"):
            return False
        files, path = _remote(folder)
        files.open_output_stream(f"{path.rstrip('/')}/{name}").close()
        return True


def marker_is_there(folder: str, name: str) -> bool:
    """Whether the file is there; nothing is written. Raises as `require_folder` does."""
    return _stands(folder, name, Path.is_file, "File")


def _stands(folder: str, name: str, is_there: Callable[[Path], bool], kind: str) -> bool:
    """Whether the folder, or a file in it, is there, and of the kind that Arrow calls so."""
    with _explained(folder):
        if not is_remote(folder):
            return is_there(_local(folder) / name)
        files, path = _remote(folder)
        found = files.get_file_info(f"{path.rstrip('/')}/{name}" if name else path)
        return bool(found.type.name == kind)


def _local(folder: str) -> Path:
    return Path(re.sub(r"^file:(//)?", "", folder))


def _remote(folder: str) -> tuple[FileSystem, str]:
    root, path = split(folder)
    system, before = file_system(root)
    return system, before + path


@contextmanager
def _explained(folder: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        # Arrow gives ValueError for a scheme that it does not know, OSError for all that a store answers.
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0][:200]
        raise Unreadable(
            f"{folder} cannot be reached or written: {reason}.",
            mend_of(error, "Check that the place exists and that you may write there."),
        ) from error


# Publishes a delivery: partition, marker, receipt, notices, in this order, each of them once.
#
# The journal says what was done, the catalog and the lake say what is: each step looks before it skips. The
# receipt, the notices and the journal's row commit together, and notices are sent afterwards (`tell`). So a
# kill at any point, and a retry, end in one of each; and what somebody removed since is put back.


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
        known = newest_revision(tx, one.delivery)
        old = None if known else newest_revision(tx, one.delivery_before)
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
            # It was published when servers and catalogs were not told apart.
            here = publication.c.delivery == one.delivery_before
            tx.execute(update(publication).where(here).values(delivery=one.delivery))
            known = newest_revision(tx, one.delivery)
            new, lost = wanted(tx, known), known is not None and not receipts.knows(tx, known.id)
    steps = _stand(one, catalog, found, store, now, first=known is None)
    completed = known is not None and known.rows is None and one.rows is not None
    if not new and not lost and not completed:
        assert known is not None
        return Published(known.event(one), tuple(steps), tuple(steps.values()))
    with store.write() as tx:
        # Another process may have been here meanwhile: what is read now stays true until this commits.
        newest = newest_revision(tx, one.delivery)
        new = wanted(tx, newest)
        made = finish_revision(tx, one, newest, run, now) if new or newest is None else newest
        event = made.event(one)
        again = made is newest
        if not receipts.knows(tx, event.id):
            receipts.write(tx, event)
            steps["receipt"] = "the receipt was not in the store"
        elif again and event.publication.rows is None and one.rows is not None:
            tx.execute(update(publication).where(publication.c.id == event.id).values(rows=one.rows))
            event = replace(made, rows=one.rows).event(one)
            receipts.count(tx, event.id, one.rows)
            steps["receipt"] = "the receipt had no number of rows"
        if not again:
            write_notices(tx, event, targets, now)
            steps["notify"] = "consumers were not told"
    return Published(event, tuple(steps), tuple(steps.values()) if again else ())


def _is_new(tx: Connection, one: Publication, known: Revision | None, redelivery: bool, run: str) -> bool:
    if known is None:
        return True
    if one.rows is not None and one.rows != known.newest_count:
        return True
    return redelivery and not (run and knows_run(tx, one.delivery, run))


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
    for server, location in one.other_locations:
        if fold_location(location) == there:
            return DqError(
                f"The catalog has {name} of the server {server!r}, at {there}; "
                f"{one.server!r} has it at {wanted}.",
                f"Publish with --server {server} what lies there. For {one.server!r}, name its own catalog.",
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
            begin_revision(tx, one.delivery, now)
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


# What was published long ago is forgotten, with what consumers were told of it.


@dataclass(frozen=True, slots=True)
class ForgottenPublications:
    """How many rows are gone: of deliveries that were published, and of what consumers were to be told."""

    publications: int
    notices: int


def placed_deliveries() -> Select[tuple[str]]:
    """The ids of the newest revisions that lie in a folder of their own."""
    columns, later = publication.c, publication.alias("later")
    newer = select(later.c.id).where(
        later.c.delivery == columns.delivery, later.c.revision > columns.revision
    )
    return select(columns.id).where(columns.folder.is_not(None), ~newer.exists())


def forget_publications(store: Store, before: datetime) -> ForgottenPublications:
    """Removes deliveries of which the newest revision was published before an instant, and old notices.

    A delivery goes with all its revisions, so that none is counted anew. A notice that no place took in all
    that time goes too. What lies beside its table stays: nothing else says where.
    """
    columns = publication.c
    old = (
        select(columns.delivery)
        .where(columns.delivery.not_in(select(columns.delivery).where(columns.id.in_(placed_deliveries()))))
        .group_by(columns.delivery)
        .having(func.max(columns.published_at) < before)
    )
    with store.write() as tx:
        gone = tx.execute(delete(publication).where(columns.delivery.in_(old))).rowcount
        tx.execute(delete(publication_begun).where(publication_begun.c.at < before))
        told = tx.execute(delete(consumer_notice).where(consumer_notice.c.written_at < before)).rowcount
    return ForgottenPublications(gone, told)
