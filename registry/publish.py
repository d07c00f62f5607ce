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

from sqlalchemy import Connection, delete, func, insert, select, update

from dq.contracts.access.access_policy import is_remote
from dq.contracts.check_result import GroupCounts
from dq.contracts.outcome import DqError, ReadError
from dq.lake.storage import ArrowFiles, file_system, hint_for, split
from dq.registry.catalog import Catalog, no_table
from dq.registry.publications import DeliveryEvent, Publication, event_id, first_event_id
from dq.registry.publications import write as write_notices
from dq.registry.table import fold_location
from dq.registry.tables import consumer_notice, publication_begun, publication_revision, staged_deliveries
from dq.store.engine import Store

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


# Publications as rows: revisions of deliveries, and the start of unfinished ones.


@dataclass(frozen=True, slots=True)
class Revision:
    """One published revision of a delivery: consumers have been or will be notified.

    `folder` holds its files, or is None for the folder that the layout names; `run` is the producer's run, or
    "".
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
        """Row count of this revision, or else of the newest earlier one that has it."""
        return self.previous_rows if self.rows is None else self.rows

    def event(self, publication: Publication) -> DeliveryEvent:
        """Return the event of this revision."""
        published = replace(publication, rows=self.rows)
        return DeliveryEvent(self.id, published, self.begun_at, self.number, self.previous_rows)


def newest_revision(tx: Connection, delivery: str) -> Revision | None:
    """Return the newest revision of a delivery, or None."""
    names = ("id", "revision", "rows", "previous_rows", "begun_at", "folder", "run")
    query = select(*(publication_revision.c[name] for name in names)).where(
        publication_revision.c.delivery == delivery
    )
    row = tx.execute(query.order_by(publication_revision.c.revision.desc()).limit(1)).one_or_none()
    return None if row is None else Revision(*row)


def published_folders(tx: Connection) -> dict[str, str]:
    """Return the folders of the deliveries whose newest revision lies outside of its table, by delivery."""
    columns = publication_revision.c
    query = select(columns.delivery, columns.folder).where(columns.id.in_(staged_deliveries()))
    return {row.delivery: row.folder for row in tx.execute(query)}


def knows_run(tx: Connection, delivery: str, run: str) -> bool:
    """Return True if this run of the producer has published a revision."""
    matches = (publication_revision.c.delivery == delivery) & (publication_revision.c.run == run)
    return tx.execute(select(publication_revision.c.id).where(matches).limit(1)).first() is not None


def begin_revision(tx: Connection, delivery: str, now: datetime) -> None:
    """Record the start of a first revision, unless a killed run has recorded it."""
    if revision_begun_at(tx, delivery) is None:
        tx.execute(insert(publication_begun).values(delivery=delivery, at=now))


def revision_begun_at(tx: Connection, delivery: str) -> datetime | None:
    """Return the start of an unfinished publication, or None."""
    query = select(publication_begun.c.at).where(publication_begun.c.delivery == delivery)
    begun_at: datetime | None = tx.execute(query).scalar_one_or_none()
    return begun_at


def finish_revision(
    tx: Connection, publication: Publication, before: Revision | None, run: str, now: datetime
) -> Revision:
    """Record the next revision. The first has the instant of its start, later ones have `now`."""
    begun_at = now if before else revision_begun_at(tx, publication.delivery) or now
    number = before.number + 1 if before else 1
    revision = Revision(
        event_id(publication, number, begun_at) if before else first_event_id(publication),
        number,
        publication.rows,
        before.newest_count if before else None,
        begun_at,
        publication.folder if publication.staged else None,
        run,
    )
    tx.execute(
        insert(publication_revision).values(
            id=revision.id,
            delivery=publication.delivery,
            revision=number,
            rows=revision.rows,
            previous_rows=revision.previous_rows,
            folder=revision.folder,
            run=run,
            begun_at=begun_at,
            published_at=now,
        )
    )
    tx.execute(delete(publication_begun).where(publication_begun.c.delivery == publication.delivery))
    return revision


# The empty marker file of a complete folder, on a local disk or in an object store.


def require_folder(folder: str, make: bool = False) -> None:
    """Raise DqError if the folder does not exist, because nothing was delivered. With `make`, create it.

    `folder` is a local path, a `file:` URL, or a URL that Arrow supports (`s3://`, `hdfs://`, `gs://`).
    Raises MissingTool if pyarrow is needed and missing, ReadError when the storage does not answer.
    """
    # Object stores have no folders, and HDFS creates one with the first file in it.
    if make and not is_remote(folder):
        with _explained(folder):
            _local(folder).mkdir(parents=True, exist_ok=True)
    if not make and not folder_exists(folder):
        raise DqError(
            f"Nothing was delivered: {folder} does not exist.",
            "Write the data first, or check the partition; for an empty delivery, pass --rows 0.",
        )


def folder_exists(folder: str) -> bool:
    """Return True if the folder exists. Raises MissingTool and ReadError as `require_folder` does."""
    with _explained(folder):
        return ArrowFiles().is_folder(folder.rstrip("/")) if is_remote(folder) else _local(folder).is_dir()


def write_marker(folder: str, name: str) -> bool:
    """Write the empty marker file. Return False, without writing, if it exists.

    Raises as `require_folder` does.
    """
    with _explained(folder):
        if not is_remote(folder):
            try:
                (_local(folder) / name).touch(exist_ok=False)
            except FileExistsError:
                if not (_local(folder) / name).is_file():
                    raise OSError(errno.EEXIST, f"{name} is not a file") from None
                return False
            return True
        if marker_exists(folder, name):
            return False
        files, path = _remote(folder)
        files.open_output_stream(f"{path.rstrip('/')}/{name}").close()
        return True


def marker_exists(folder: str, name: str) -> bool:
    """Return True if the marker file exists. Raises as `require_folder` does."""
    with _explained(folder):
        if not is_remote(folder):
            return (_local(folder) / name).is_file()
        return ArrowFiles().stat(f"{folder.rstrip('/')}/{name}") is not None


def _local(folder: str) -> Path:
    return Path(re.sub(r"^file:(//)?", "", folder))


def _remote(folder: str) -> tuple[FileSystem, str]:
    root, path = split(folder)
    system, prefix = file_system(root)
    return system, prefix + path


@contextmanager
def _explained(folder: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        # Arrow raises ValueError for an unknown scheme, OSError for all errors of the storage.
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0][:200]
        raise ReadError(
            f"{folder} cannot be reached or written: {reason}.",
            hint_for(error, "Check that the location exists and is writable."),
        ) from error


# Publishes a delivery: partition, marker, receipt, notices, in this order, each of them once.
#
# The journal has what was done, catalog and lake have the actual state: a step is skipped only after a check.
# The receipt, the notices and the journal's row commit together; notices are sent afterwards
# (`send_notices`). So a kill at any point and a retry result in one of each, and a partition, marker or
# receipt that was removed since is restored.


@dataclass(frozen=True, slots=True)
class ReceiptStore:
    """Storage of receipts.

    All functions get an open transaction, so that receipts commit with the journal. `group_counts` returns
    the counts by group of a receipt; `set_counts` adds the number of rows and these to a receipt without.
    """

    exists: Callable[[Connection, str], bool]
    write: Callable[[Connection, DeliveryEvent], None]
    group_counts: Callable[[Connection, str], GroupCounts]
    set_counts: Callable[[Connection, str, int, GroupCounts], None]


@dataclass(frozen=True, slots=True)
class Published:
    """The event, and the steps that this run did; empty if nothing had to be done.

    `repaired` has a sentence for each part of an earlier revision that was missing.
    """

    event: DeliveryEvent
    steps: tuple[str, ...]
    repaired: tuple[str, ...] = ()


def publish(
    publication: Publication,
    *,
    catalog: Catalog,
    store: Store,
    now: datetime,
    receipts: ReceiptStore,
    targets: Sequence[str] = (),
    redelivery: bool = False,
    run: str = "",
) -> Published:
    """Do the missing steps of this delivery and return them.

    Deliveries are identified by contract major, object, partition, cycle, server and catalog. One that was
    published before gets a new revision if its row counts differ from its newest ones, and with `redelivery`:
    each time, or once for each `run` of the producer's scheduler. `targets` are notified of each revision:
    the notices stay in the store until `send_notices` has sent them.

    Raises DqError when a step fails. Earlier steps stay done, and the next call continues after them.
    """

    def read_journal(tx: Connection) -> _Journal:
        newest = newest_revision(tx, publication.delivery)
        rows_by = receipts.group_counts(tx, newest.id) if newest else ()
        return _Journal(
            newest,
            rows_by,
            is_new=_is_new(tx, publication, newest, rows_by, redelivery, run),
            has_receipt=newest is not None and receipts.exists(tx, newest.id),
        )

    with store.read() as tx:
        journal = read_journal(tx)
        legacy = None if journal.newest else newest_revision(tx, publication.legacy_delivery)
    previous = journal.newest
    if previous is not None and previous.folder and not journal.is_new and not publication.staged:
        # Its files are still in the staging folder; those below the table are older.
        publication = replace(publication, folder=previous.folder)
        if publication.marker and not folder_exists(publication.folder):
            raise DqError(
                f"{publication.folder}, where this delivery was published, no longer exists.",
                "Stage it again and publish that; if it has since been written below the table, "
                "pass --redelivery.",
            )
    state = _read_state(publication, catalog)
    if legacy is not None and state.anything:
        with store.write() as tx:
            # It was published before servers and catalogs were part of the id.
            matches = publication_revision.c.delivery == publication.legacy_delivery
            tx.execute(update(publication_revision).where(matches).values(delivery=publication.delivery))
            journal = read_journal(tx)
    steps = _ensure_files(publication, catalog, state, store, now, first=journal.newest is None)
    missing_count = journal.missing_count(publication)
    if journal.newest and journal.has_receipt and not journal.is_new and not missing_count:
        event = journal.newest.event(replace(publication, rows_by=journal.rows_by))
        return Published(event, tuple(steps), tuple(steps.values()))
    with store.write() as tx:
        # Read again, because another process may have published meanwhile. No change until this commits.
        journal = read_journal(tx)
        revision = journal.newest
        is_repeat = revision is not None and not journal.is_new
        if revision is None or not is_repeat:
            revision = finish_revision(tx, publication, journal.newest, run, now)
        elif not publication.rows_by:
            publication = replace(publication, rows_by=journal.rows_by)
        event = revision.event(publication)
        missing_count = journal.missing_count(publication)
        if not receipts.exists(tx, event.id):
            receipts.write(tx, event)
            steps["receipt"] = "the receipt was not in the store"
        elif is_repeat and missing_count:
            # A publication with counts by group has their sum.
            assert publication.rows is not None
            tx.execute(
                update(publication_revision)
                .where(publication_revision.c.id == event.id)
                .values(rows=publication.rows)
            )
            event = replace(revision, rows=publication.rows).event(publication)
            receipts.set_counts(tx, event.id, publication.rows, publication.rows_by)
            steps["receipt"] = f"the receipt had no {missing_count}"
        if not is_repeat:
            write_notices(tx, event, targets, now)
            steps["notify"] = "consumers were not notified"
    return Published(event, tuple(steps), tuple(steps.values()) if is_repeat else ())


@dataclass(frozen=True, slots=True)
class _Journal:
    """Newest revision of a delivery with the counts by group of its receipt, and whether another is due."""

    newest: Revision | None
    rows_by: GroupCounts
    is_new: bool
    has_receipt: bool

    def missing_count(self, publication: Publication) -> str:
        """Return the name of the count that the publication has and the newest revision lacks, or ""."""
        if self.newest is not None and self.newest.rows is None and publication.rows is not None:
            return "number of rows"
        return "counts by group" if publication.rows_by and not self.rows_by else ""


def _is_new(
    tx: Connection,
    publication: Publication,
    newest: Revision | None,
    rows_by: GroupCounts,
    redelivery: bool,
    run: str,
) -> bool:
    if newest is None:
        return True
    if rows_by and publication.rows_by not in ((), rows_by):
        return True
    if publication.rows is not None and publication.rows != newest.newest_count:
        return True
    return redelivery and not (run and knows_run(tx, publication.delivery, run))


@dataclass(frozen=True, slots=True)
class _PublishState:
    """Location of the partition in the catalog, or "", and whether the folder has the marker."""

    location: str
    marker: bool
    anything: bool


def _read_state(publication: Publication, catalog: Catalog) -> _PublishState:
    """Return the current state. Raises DqError if the catalog's table does not match the contract."""
    if not publication.marker:
        # The table's own log has its partitions and their completeness.
        return _PublishState("", marker=True, anything=True)
    live = catalog.read(publication.database, publication.table)
    if live is None:
        raise no_table(publication.database, publication.table)
    name = f"{publication.database}.{publication.table}"
    keys = [column.name for column in live.spec.partitions]
    if keys != [key for key, _ in publication.values]:
        raise DqError(
            f"The partition keys of {name} in the catalog are {', '.join(keys) or 'none'}; the "
            "contract has others.",
            "Register the change: dq register --apply.",
        )
    current, expected = fold_location(live.spec.location), fold_location(publication.table_location)
    if expected and current and current != expected:
        raise _wrong_location(publication, name, current, expected)
    location = (
        (catalog.partition_location(publication.database, publication.table, publication.values) or "")
        if publication.values
        else ""
    )
    marker = marker_exists(publication.folder, publication.marker)
    return _PublishState(location, marker, anything=marker or location == fold_location(publication.folder))


def _wrong_location(publication: Publication, name: str, current: str, expected: str) -> DqError:
    """Error for a catalog table of another server, or at another location than in the contract."""
    for server, location in publication.other_locations:
        if fold_location(location) == current:
            return DqError(
                f"In the catalog, {name} is the table of the server {server!r}, at {current}; "
                f"{publication.server!r} has it at {expected}.",
                f"To publish what is there, pass --server {server}. For {publication.server!r}, "
                "pass its own catalog.",
            )
    return DqError(
        f"The catalog has {name} at {current}, but the contract's server {publication.server!r} at "
        f"{expected}.",
        "If the table moved, register that first: dq register --apply.",
    )


def _ensure_files(
    publication: Publication,
    catalog: Catalog,
    state: _PublishState,
    store: Store,
    now: datetime,
    *,
    first: bool,
) -> dict[str, str]:
    """Add partition and marker if missing. Return the steps done, each with what was missing."""
    steps: dict[str, str] = {}
    if not publication.marker:
        return steps
    # Checked first, so that the catalog never names a missing folder, and publishing does not begin without.
    require_folder(publication.folder, make=publication.rows == 0)
    if first:
        with store.write() as tx:
            begin_revision(tx, publication.delivery, now)
    if publication.values and not state.location:
        # False if another process has added it.
        if catalog.add_partition(
            publication.database, publication.table, publication.values, publication.folder
        ):
            steps["partition"] = "the partition was not in the catalog"
    elif publication.values and state.location != fold_location(publication.folder):
        catalog.move_partition(
            publication.database, publication.table, publication.values, publication.folder
        )
        steps["partition"] = f"the catalog had the partition at {state.location}"
    if not state.marker and write_marker(publication.folder, publication.marker):
        steps["marker"] = f"{publication.marker} was not there"
    return steps


# Deletes old publications, with their notices.


@dataclass(frozen=True, slots=True)
class ForgottenPublications:
    """Numbers of deleted rows: publications, and notices to consumers."""

    publications: int
    notices: int


def forget_publications(store: Store, before: datetime) -> ForgottenPublications:
    """Delete deliveries whose newest revision was published before an instant, and notices older than that.

    A delivery is deleted with all its revisions, so that revision numbers are not reused. Notices that no
    target has accepted are deleted too. Deliveries in folders outside of their table stay: their location is
    recorded nowhere else.
    """
    columns = publication_revision.c
    old = (
        select(columns.delivery)
        .where(columns.delivery.not_in(select(columns.delivery).where(columns.id.in_(staged_deliveries()))))
        .group_by(columns.delivery)
        .having(func.max(columns.published_at) < before)
    )
    with store.write() as tx:
        publications = tx.execute(delete(publication_revision).where(columns.delivery.in_(old))).rowcount
        tx.execute(delete(publication_begun).where(publication_begun.c.at < before))
        notices = tx.execute(delete(consumer_notice).where(consumer_notice.c.written_at < before)).rowcount
    return ForgottenPublications(publications, notices)
