"""A publication of a delivery: its event, its partition, and the notices sent to consumers."""

from __future__ import annotations

import datetime as dt
import errno
import json
import os
import re
import stat
import sys
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from sqlalchemy import Connection, func, insert, or_, select, update

from dq.contracts.access import files
from dq.contracts.check_result import GroupCounts
from dq.contracts.extension import dataset
from dq.contracts.layout import partition_folder
from dq.contracts.model import Contract, SchemaObject, identity
from dq.contracts.model import contract_key as contract_key
from dq.contracts.outcome import DqError, UsageError, pluralize, suggestion
from dq.contracts.types import DataType
from dq.registry.catalog import Values
from dq.registry.table import OPEN_FORMATS, TableColumn, TableSpec, kind_of
from dq.registry.tables import consumer_notice
from dq.store.engine import Store

# The values of one partition, checked against the table's keys.

# `int` and `Decimal` also accept `1_000`, spaces and digits of other scripts, which engines cannot read.
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?")
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_BOOLEAN = re.compile("true|false", re.IGNORECASE | re.ASCII)
_TEXT = re.compile(".*", re.DOTALL)


def _integer(text: str, kind: DataType) -> str:
    number, half = int(text), 1 << (_BITS[kind.name] - 1)
    if not -half <= number < half:
        raise ValueError(text)
    return str(number)


def _decimal(text: str, kind: DataType) -> str:
    digits, places = kind.numbers
    number = Decimal(text)
    formatted = f"{number:.{places}f}"
    if Decimal(formatted) != number or len(formatted.lstrip("-").replace(".", "").lstrip("0")) > digits:
        raise ValueError(text)
    return "0" if number == 0 and not places else formatted.removeprefix("-") if number == 0 else formatted


def _timestamp(text: str, _: DataType) -> str:
    formatted = dt.datetime.fromisoformat(text).isoformat(" ")
    # Spark names folders without trailing zeros in a fraction.
    return formatted.rstrip("0") if "." in formatted else formatted


def _limited(text: str, kind: DataType) -> str:
    if kind.numbers and len(text) > kind.numbers[0]:
        raise ValueError(text)
    return text


# Canonical spelling of a key's value, by type: accepted pattern, normalizer and an example. Other types
# accept any text.
_SPELLINGS: dict[str, tuple[re.Pattern[str], Callable[[str, DataType], str], str]] = {
    "date": (_DAY, lambda text, _: dt.date.fromisoformat(text).isoformat(), "2026-11-20"),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), (_TIMESTAMP, _timestamp, "'2026-11-20 07:00:00'")),
    **dict.fromkeys(_BITS, (_INTEGER, _integer, "7")),
    "decimal": (_NUMBER, _decimal, "7.50"),
    "boolean": (_BOOLEAN, lambda text, _: text.lower(), "true"),
    **dict.fromkeys(("char", "varchar"), (_TEXT, _limited, "text")),
}


def values_by_key(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the values by lower-case key. Raises UsageError for a key given twice, ignoring case."""
    values: dict[str, str] = {}
    for key, value in pairs:
        if key.lower() in values:
            raise UsageError(f"Partition key {key!r} is duplicated.", "Give each key one value.")
        values[key.lower()] = value
    return values


def partition_values(spec: TableSpec, partition: Mapping[str, str]) -> Values:
    """Return the values in the order of the table's keys, in canonical spelling (`07` of an int is `7`).

    Raises UsageError for a key that is missing, unknown or given twice, and for a value that is not of the
    key's type.
    """
    table = f"{spec.database}.{spec.name}"
    lowered = values_by_key(partition.items())
    keys = [column.name for column in spec.partitions]
    if sorted(lowered) != sorted(keys):
        usage = ", ".join(f"{key}=…" for key in keys) or "no partition"
        actual = ", ".join(lowered) or "none"
        raise UsageError(
            f"{table} has the partition keys {', '.join(keys) or 'none'}, not {actual}.", f"Give {usage}."
        )
    return tuple((column.name, _value(table, column, lowered[column.name])) for column in spec.partitions)


def _value(table: str, column: TableColumn, text: str) -> str:
    if not text:
        raise UsageError(f"{table}: partition key {column.name} has no value.", f"Give {column.name}=….")
    return _canonical_value(f"{table}: partition key {column.name}", column, text)


def _canonical_value(subject: str, column: TableColumn, text: str) -> str:
    kind = kind_of(column.type)
    if kind.name not in _SPELLINGS:
        return text
    pattern, spelling, example = _SPELLINGS[kind.name]
    try:
        if not pattern.fullmatch(text):
            raise ValueError(text)
        return spelling(text, kind)
    except ValueError as error:
        raise UsageError(
            f"{subject} has type {column.type}, but the value is {text!r}.",
            f"Write it as {column.name}={example}.",
        ) from error


# The numbers of rows by group that a producer publishes.

MAX_ROWS = 2**63 - 1
MAX_GROUPS = 1_000
# Types whose values have one text, in every engine.
_GROUP_TYPES = frozenset({"string", "char", "varchar", "date", "boolean", *_BITS})


def group_counts(
    schema_object: SchemaObject, spec: TableSpec, rows_by: Mapping[str, Mapping[str | None, int]]
) -> GroupCounts:
    """Return the counts with the columns' names and values in canonical spelling, in a fixed order.

    Args:
        rows_by: Number of rows by column name and value; None is NULL.

    Raises:
        UsageError: A column that is unknown or has a type without groups, a value that is not of its type,
            a group given twice, or more than `MAX_GROUPS` groups.
    """
    counts = {}
    for name, groups in rows_by.items():
        column = _group_column(schema_object, spec, name)
        if column.name in counts:
            raise UsageError(f"The column {column.name} is given twice.", "Give each column once.")
        if len(groups) > MAX_GROUPS:
            raise UsageError(
                f"{len(groups):,} groups of {column.name} are too many.", f"Give at most {MAX_GROUPS:,}."
            )
        by_value: dict[str | None, int] = {}
        for text, rows in groups.items():
            value = None if text is None else _canonical_value(f"The column {column.name}", column, text)
            if value in by_value:
                raise UsageError(f"{column.name}: the group {value!r} is given twice.", "Give it once.")
            _require_count(f"{column.name}={'NULL' if value is None else value}", rows)
            by_value[value] = rows
        counts[column.name] = tuple(
            sorted(by_value.items(), key=lambda group: (group[0] is None, group[0] or ""))
        )
    return tuple(sorted(counts.items()))


def _group_column(schema_object: SchemaObject, spec: TableSpec, name: str) -> TableColumn:
    names = {
        text.lower(): prop
        for prop in schema_object.properties
        for text in (prop.column, prop.name or prop.column)
    }
    prop = names.get(name.lower())
    if prop is None:
        raise UsageError(
            f"{schema_object.name!r} has no column {name!r}.",
            suggestion(name, names, "Give a column of the contract."),
            at=schema_object.locate("properties"),
        )
    column = next(
        column for column in (*spec.columns, *spec.partitions) if column.name == prop.column.lower()
    )
    if kind_of(column.type).name not in _GROUP_TYPES:
        raise UsageError(
            f"rows cannot be counted by {column.name}, which has type {column.type}.",
            "Give a column with texts, integers, dates or booleans.",
            at=prop.locate(),
        )
    return column


def total_rows(rows: int | None, rows_by: GroupCounts) -> int | None:
    """Return the number of rows: `rows`, or the sum of the groups. Raises UsageError if they disagree."""
    total, source = rows, "the delivery has"
    for column, groups in rows_by:
        group_total = sum(count for _, count in groups)
        if total is not None and group_total != total:
            raise UsageError(
                f"The counts by {column} add up to {group_total:,}, but {source} {pluralize(total, 'row')}.",
                "Give the count of each group, including NULL.",
            )
        total, source = group_total, f"those by {column} to"
    if total is not None:
        _require_count("A delivery", total)
    return total


def _require_count(subject: str, rows: int) -> None:
    if not 0 <= rows <= MAX_ROWS:
        raise UsageError(f"{subject} cannot have {rows} rows.", f"Give a number from 0 to {MAX_ROWS}.")


# A publication: one delivery of one object, with an identity that is the same on retry.

# Arbitrary, but fixed: other values would change the id of every published delivery.
_NAMESPACE = uuid.UUID("2b0e4c1a-7d53-5f0e-9a64-5d1c7e0b8f31")
_LEGACY_NAMESPACE = uuid.UUID("6f1f1f3e-52f0-5d7a-9c7b-3f1c8f0b1d2a")


@dataclass(frozen=True, slots=True)
class Publication:
    """One delivery. `cycle` is its due instant, `values` is its partition; either may be empty.

    `folder` holds its files; with `staged` it is not the folder below the table that its layout names.
    `marker` is the file that marks it complete, or "" if the table's own log does. `table_location` is its
    location in the contract, or "" if only the catalog knows it. `rows` is None if the producer does not
    report them; `rows_by` are its counts by group, which add up to `rows`. `environment` is the server's, or
    "". `other_locations` are the table's locations on the contract's other servers, by server.
    """

    contract: str
    contract_version: str
    domain: str
    object: str
    database: str
    table: str
    folder: str
    values: Values = ()
    cycle: datetime | None = None
    rows: int | None = None
    marker: str = "_SUCCESS"
    server: str = ""
    environment: str = ""
    catalog: str = "local"
    table_location: str = ""
    staged: bool = False
    rows_by: GroupCounts = ()
    other_locations: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """Key of its receipt in the store; see `identity.key`."""
        return contract_key(self.contract, self.contract_version)

    @property
    def delivery(self) -> str:
        """Id of the delivery: the same for one contract major, object, cycle, partition, server and
        catalog.
        """
        values = partition_folder(sorted(self.values))
        parts = (self.key, self.object, self._cycle(), values, self.server, self.catalog)
        return str(uuid.uuid5(_NAMESPACE, json.dumps(parts)))

    @property
    def legacy_delivery(self) -> str:
        """Id of the delivery before servers and catalogs became part of it."""
        name = "\n".join((self.key, self.object, self._cycle(), partition_folder(self.values)))
        return str(uuid.uuid5(_LEGACY_NAMESPACE, name))

    def _cycle(self) -> str:
        return self.cycle.astimezone(UTC).isoformat() if self.cycle else ""


@dataclass(frozen=True, slots=True)
class DeliveryEvent:
    """The event sent to consumers. `begun_at` is when publishing began (UTC); a retry keeps it.

    `revision` grows by one with each redelivery; `previous_rows` is the row count of the revision before.
    """

    id: str
    publication: Publication
    begun_at: datetime
    revision: int = 1
    previous_rows: int | None = None

    @property
    def name(self) -> str:
        return "delivered" if self.revision == 1 else "redelivered"

    def as_json(self) -> dict[str, object]:
        """Return one flat object. Filters use `contract`, `domain`, `event`, `major_version`,
        `environment`.
        """
        publication = self.publication
        return {
            "event_id": self.id,
            "event": self.name,
            "contract": publication.contract,
            "domain": publication.domain,
            "major_version": identity(publication.contract, publication.contract_version)[1],
            "environment": publication.environment,
            "contract_version": publication.contract_version,
            "object": publication.object,
            "server": publication.server,
            "catalog": publication.catalog,
            "table": f"{publication.database}.{publication.table}",
            "partition": dict(publication.values),
            "location": publication.folder,
            "cycle": publication.cycle.astimezone(UTC).isoformat() if publication.cycle else None,
            "rows": publication.rows,
            "revision": self.revision,
            "previous_rows": self.previous_rows,
            "at": self.begun_at.astimezone(UTC).isoformat(),
        }


def first_event_id(publication: Publication) -> str:
    """Return the id of the first revision: the same on every machine and with every store."""
    return str(uuid.uuid5(_NAMESPACE, publication.delivery))


def event_id(publication: Publication, revision: int, begun_at: datetime) -> str:
    """Return the id of a later revision.

    It includes the instant: a restored store repeats revision numbers.
    """
    return str(
        uuid.uuid5(_NAMESPACE, f"{publication.delivery} {revision} {begun_at.astimezone(UTC).isoformat()}")
    )


def build_publication(
    contract: Contract,
    schema_object: SchemaObject,
    spec: TableSpec,
    *,
    server: str,
    environment: str = "",
    catalog: str,
    partition: Mapping[str, str],
    cycle: datetime | None = None,
    rows: int | None = None,
    rows_by: Mapping[str, Mapping[str | None, int]] | None = None,
    folder: str | None = None,
    other_locations: Mapping[str, str] | None = None,
) -> Publication:
    """Build the publication of a partition of the object's table.

    Args:
        server: Server that holds the data, in `environment`.
        catalog: Id of the catalog that has the table.
        rows_by: Number of rows by column name and value, see `group_counts`; they add up to `rows`.
        folder: Folder of the files, if it is not the one below the table that its layout names.

    Raises:
        UsageError: The partition does not fit the table's keys, the delivery has no identity, the table has
            no known location, or the row counts are invalid or disagree.
    """
    values = partition_values(spec, partition)
    if not values and cycle is None:
        raise UsageError(
            f"{spec.database}.{spec.name} has no partitions, so deliveries cannot be distinguished.",
            "Pass the due time with --cycle, e.g. --cycle 2026-11-20T06:00:00Z.",
        )
    counts = group_counts(schema_object, spec, rows_by or {})
    if folder is None and not spec.location:
        raise UsageError(
            f"The location of {spec.database}.{spec.name} is unknown.", "Set the location of the server."
        )
    return Publication(
        contract.id,
        contract.version,
        contract.domain or "",
        schema_object.name,
        spec.database,
        spec.name,
        spec.partition_location(values) if folder is None else folder,
        values,
        cycle,
        total_rows(rows, counts),
        "" if spec.format in OPEN_FORMATS else dataset(schema_object)[0].marker,
        server,
        environment,
        catalog,
        spec.location,
        folder is not None,
        counts,
        tuple(sorted((other_locations or {}).items())),
    )


# The message to consumers: a CloudEvent 1.0 in JSON, and the texts they filter by.
#
# Source: CloudEvents 1.0.2, its JSON format in structured mode.

JsonObject = dict[str, object]

_NOTHING = "none"


def cloud_event(event: DeliveryEvent) -> JsonObject:
    """Return the event as JSON values, see docs/reference/delivery-event.schema.json."""
    publication = event.publication
    data = event.as_json()
    # Both are in the envelope.
    del data["event_id"], data["at"]
    cycle = data["cycle"]
    subject = partition_folder(publication.values) or (f"cycle={cycle}" if cycle else "")
    _, major = identity(publication.contract, publication.contract_version)
    return {
        "specversion": "1.0",
        "id": event.id,
        "source": f"urn:dq:contract:{quote(publication.contract, safe='')}:{quote(major, safe='')}",
        "type": f"dq.delivery.{event.name}",
        "time": event.begun_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "subject": f"{publication.object}/{subject}",
        "datacontenttype": "application/json",
        "data": data,
    }


def filter_texts(event: DeliveryEvent) -> dict[str, str]:
    """Return the five texts that subscriptions filter by; `none` if empty, which SNS rejects."""
    data = event.as_json()
    names = ("contract", "domain", "event", "major_version", "environment")
    return {name: str(data[name]) or _NOTHING for name in names}


# Outbox of notices to consumers: rows commit with the receipt and stay until a target has accepted them.
#
# A sender leases a notice first, so that only one of several processes sends it. Leases use the clock of the
# process: when a process is killed while sending, another one takes over after the lease has expired.

_columns = consumer_notice.c


@dataclass(frozen=True, slots=True)
class ConsumerNotice:
    """One event for one target: its CloudEvent as text, and the attributes that subscriptions filter by."""

    event_id: str
    target: str
    body: str
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PendingNotices:
    """Pending notices of one target: their number, the oldest instant, and the error of the last attempt."""

    target: str
    number: int
    since: datetime
    problem: str


def write(tx: Connection, event: DeliveryEvent, targets: Collection[str], now: datetime) -> None:
    """Add a pending notice of the event for each of these targets."""
    row = {
        "event_id": event.id,
        "body": json.dumps(cloud_event(event), ensure_ascii=False, separators=(",", ":")),
        "attributes": [list(pair) for pair in filter_texts(event).items()],
        "written_at": now,
        "attempts": 0,
        "problem": "",
    }
    for target in dict.fromkeys(targets):
        tx.execute(insert(consumer_notice).values(target=target, **row))


def _pending_numbers(store: Store, target: str, limit: int, event_id: str = "") -> list[int]:
    """Return the pending notices of a target, fewest attempts first, then oldest; with an event, only its."""
    query = select(_columns.number).where(_columns.target == target, _columns.sent_at.is_(None))
    if event_id:
        query = query.where(_columns.event_id == event_id)
    with store.read() as tx:
        return list(tx.execute(query.order_by(_columns.attempts, _columns.number).limit(limit)).scalars())


def lease_notice(store: Store, number: int, now: datetime, lease: timedelta) -> ConsumerNotice | None:
    """Lease a notice, or return None if another process has leased it.

    All processes use the same lease. An expiry more than two leases ahead comes from a wrong clock and is
    ignored: otherwise a killed process would block the notice for as long as its clock was ahead.
    """
    matches = (_columns.number == number) & _columns.sent_at.is_(None)
    leased_until = _columns.taken_until
    available = matches & or_(leased_until.is_(None), leased_until <= now, leased_until > now + 2 * lease)
    values = {"taken_until": now + lease, "attempts": _columns.attempts + 1}
    names = (_columns.event_id, _columns.target, _columns.body, _columns.attributes)
    with store.write() as tx:
        if tx.execute(update(consumer_notice).where(available).values(values)).rowcount == 0:
            return None
        row = tx.execute(select(*names).where(matches)).one()
    return ConsumerNotice(*row[:3], tuple((name, text) for name, text in row.attributes))


def _release(store: Store, number: int, **values: object) -> None:
    """Record the result of a leased notice and release the lease, so that an unsent one can be retried."""
    matches = (_columns.number == number) & _columns.sent_at.is_(None)
    with store.write() as tx:
        tx.execute(update(consumer_notice).where(matches).values(taken_until=None, **values))


def unsent_targets(tx: Connection, event_id: str) -> list[tuple[str, str]]:
    """Return the targets that have not accepted the event, with the error of the last attempt."""
    matches = (_columns.event_id == event_id) & _columns.sent_at.is_(None)
    return [(row.target, row.problem) for row in tx.execute(select(consumer_notice).where(matches))]


def pending_notices(tx: Connection) -> list[PendingNotices]:
    """Return the pending notices by target."""
    counts = select(
        _columns.target,
        func.count().label("number"),
        func.min(_columns.written_at).label("since"),
        func.max(_columns.problem).label("problem"),
    )
    query = counts.where(_columns.sent_at.is_(None)).group_by(_columns.target).order_by(_columns.target)
    return [PendingNotices(*row) for row in tx.execute(query)]


# Sends pending notices; those that a target does not accept stay pending.

Notifier = Callable[[ConsumerNotice], None]
"""Sends a notice to its target.

Raises TargetUnavailable when the target accepts nothing now, another DqError for this notice only.
"""

# Longer than one attempt can take, including its timeouts.
LEASE = timedelta(seconds=30)
# Notices of other events to send: a publisher does not wait for the whole backlog.
_BACKLOG_LIMIT = 20
_PAUSE_SECONDS = 0.1


class TargetUnavailable(DqError):
    """The target accepts no notices now: it is unreachable, or rejects every request."""

    exit_code = 4


def send_notices(
    store: Store,
    notifiers: Mapping[str, Notifier],
    clock: Callable[[], datetime],
    *,
    event_id: str = "",
    limit: int = _BACKLOG_LIMIT,
    lease: timedelta = LEASE,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Send the pending notices of these targets and return how many were accepted.

    The notice of `event_id` goes first, then up to `limit` others. If another process is sending that notice,
    wait until it is sent or its lease has expired; then it is sent again with the same id. A notice that is
    not accepted stays pending with the error. An unavailable target is skipped at once.
    """
    sent = 0
    for target, notifier in notifiers.items():
        outcome = None
        while event_id and (numbers := _pending_numbers(store, target, 1, event_id)):
            outcome = _send(store, notifier, clock, lease, numbers[0])
            sent += outcome is _SendOutcome.SENT
            if outcome is not _SendOutcome.LEASED:
                break
            pause(_PAUSE_SECONDS)
        for number in (
            _pending_numbers(store, target, limit) if outcome is not _SendOutcome.DOWN and limit else ()
        ):
            outcome = _send(store, notifier, clock, lease, number)
            sent += outcome is _SendOutcome.SENT
            if outcome is _SendOutcome.DOWN:
                break
    return sent


class _SendOutcome(Enum):
    SENT = "sent"
    LEASED = "taken"  # by another process
    REFUSED = "refused"
    DOWN = "down"


def _send(
    store: Store, notifier: Notifier, clock: Callable[[], datetime], lease: timedelta, number: int
) -> _SendOutcome:
    notice = lease_notice(store, number, clock(), lease)
    if notice is None:
        return _SendOutcome.LEASED
    try:
        notifier(notice)
    except DqError as error:
        _release(store, number, problem=error.message)
        return _SendOutcome.DOWN if isinstance(error, TargetUnavailable) else _SendOutcome.REFUSED
    _release(store, number, problem="", sent_at=clock())
    return _SendOutcome.SENT


# Notifies consumers through a JSON Lines file: the local substitute for a topic.

# Shorter than `LEASE`, and longer than fifty writers need.
_LOCK_SECONDS = 20.0
_LOCK_PAUSE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Appends one line per event; an event that is already in the file is not written again."""

    path: Path

    def __call__(self, notice: ConsumerNotice) -> None:
        """Append the notice. Raises TargetUnavailable when the file cannot be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(_open_private(self.path), "a+b") as file:
                _lock(file)
                file.seek(0)
                lines = file.read().split(b"\n")
                # A killed writer may have left a partial line.
                partial_line = lines.pop()
                if partial_line:
                    file.truncate(file.tell() - len(partial_line))
                id = notice.event_id
                # Start of an event's line in the current format, and in the one before CloudEvents.
                prefix, legacy_prefix = f'{{"specversion":"1.0","id":"{id}"', f'{{"event_id": "{id}"'
                if not any(line.startswith((prefix.encode(), legacy_prefix.encode())) for line in lines):
                    file.write(notice.body.encode() + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            raise TargetUnavailable(
                f"Consumers could not be notified: {self.path} cannot be written ({error.strerror}).",
                "Make it writable, then: dq publish --pending.",
            ) from error


def _open_private(path: Path) -> int:
    """Open the file for appending, readable by this user only. Does not follow a symbolic link."""
    with files.open_folder(path.parent) as folder:
        file = files.open_file(folder, path.name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


def _lock(file: BinaryIO) -> None:
    """Wait for the lock on the file. It is released when the file is closed or the process ends.

    Raises OSError on timeout: a reader may hold the lock and never release it.
    """
    deadline = time.monotonic() + _LOCK_SECONDS
    while not _try_lock(file):
        if time.monotonic() > deadline:
            raise OSError(errno.EAGAIN, "another process holds its lock")
        time.sleep(_LOCK_PAUSE_SECONDS)


def _try_lock(file: BinaryIO) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            # Far behind the end, because Windows blocks reads of locked bytes.
            file.seek(1 << 30)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            raise
        return False
    return True
