"""A publication of a delivery: its event and partition, and the notices by which consumers are told."""

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
from dq.contracts.extension import dataset
from dq.contracts.model import Contract, SchemaObject, identity
from dq.contracts.model import key as contract_key
from dq.contracts.outcome import DqError, UsageError
from dq.contracts.types import DataType
from dq.lake.storage import partition_folder
from dq.registry.catalog import Values
from dq.registry.table import OPEN_FORMATS, TableColumn, TableSpec, kind_of
from dq.registry.tables import consumer_notice
from dq.store.engine import Store

# The values of one partition, checked against the table's keys.

# `int` and `Decimal` also take `1_000`, spaces, and digits of other scripts, which no engine reads back.
_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?")
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_BOOLEAN = re.compile("true|false", re.IGNORECASE | re.ASCII)
_TEXT = re.compile(".*", re.DOTALL)


def _whole(text: str, kind: DataType) -> str:
    number, half = int(text), 1 << (_BITS[kind.name] - 1)
    if not -half <= number < half:
        raise ValueError(text)
    return str(number)


def _decimal(text: str, kind: DataType) -> str:
    digits, places = kind.numbers
    number = Decimal(text)
    shown = f"{number:.{places}f}"
    if Decimal(shown) != number or len(shown.lstrip("-").replace(".", "").lstrip("0")) > digits:
        raise ValueError(text)
    return "0" if number == 0 and not places else shown.removeprefix("-") if number == 0 else shown


def _timestamp(text: str, _: DataType) -> str:
    shown = dt.datetime.fromisoformat(text).isoformat(" ")
    # As Spark names folders: no zeros at the end of a fraction.
    return shown.rstrip("0") if "." in shown else shown


def _limited(text: str, kind: DataType) -> str:
    if kind.numbers and len(text) > kind.numbers[0]:
        raise ValueError(text)
    return text


# How the value of a key is spelled in only one way, by type: what it looks like, that spelling, and an
# example. Other types take any text.
_SPELLINGS: dict[str, tuple[re.Pattern[str], Callable[[str, DataType], str], str]] = {
    "date": (_DAY, lambda text, _: dt.date.fromisoformat(text).isoformat(), "2026-11-20"),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), (_MOMENT, _timestamp, "'2026-11-20 07:00:00'")),
    **dict.fromkeys(_BITS, (_WHOLE, _whole, "7")),
    "decimal": (_NUMBER, _decimal, "7.50"),
    "boolean": (_BOOLEAN, lambda text, _: text.lower(), "true"),
    **dict.fromkeys(("char", "varchar"), (_TEXT, _limited, "text")),
}


def given_once(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The values by key. Raises UsageError for a key that is given twice, in whatever case."""
    made: dict[str, str] = {}
    for key, value in pairs:
        if key.lower() in made:
            raise UsageError(f"The partition key {key!r} is given twice.", "Give each key one value.")
        made[key.lower()] = value
    return made


def partition_values(spec: TableSpec, given: Mapping[str, str]) -> Values:
    """The values in the order of the table's keys, each in its one spelling (`07` of an int is `7`).

    Raises UsageError for a key that is missing, unknown or given twice, and for a value that is not of the
    key's type.
    """
    table = f"{spec.database}.{spec.name}"
    lowered = given_once(given.items())
    keys = [column.name for column in spec.partitions]
    if sorted(lowered) != sorted(keys):
        wanted = ", ".join(f"{key}=…" for key in keys) or "no partition"
        found = ", ".join(lowered) or "none"
        raise UsageError(
            f"{table} has the partition keys {', '.join(keys) or 'none'}, not {found}.", f"Give {wanted}."
        )
    return tuple((column.name, _value(table, column, lowered[column.name])) for column in spec.partitions)


def _value(table: str, column: TableColumn, text: str) -> str:
    if not text:
        raise UsageError(f"{table}: partition key {column.name} has no value.", f"Give {column.name}=….")
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
            f"{table}: partition key {column.name} is a {column.type}, and {text!r} is none.",
            f"Write it as {column.name}={example}.",
        ) from error


# What is published: one delivery of one object, with an identity that a retry has too.

# Any fixed values do; with others, every delivery ever published would be news again.
_NAMESPACE = uuid.UUID("2b0e4c1a-7d53-5f0e-9a64-5d1c7e0b8f31")
_BEFORE_SERVERS = uuid.UUID("6f1f1f3e-52f0-5d7a-9c7b-3f1c8f0b1d2a")

MOST_ROWS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Publication:
    """One delivery. `cycle` is the due instant that it is for, `values` its partition, either may be empty.

    `folder` is where its files lie; `staged`: that is not below the table, as Hive would have it. `marker` is
    the file that says so, "" where the table's own log does. `table_location` is where the contract has the
    whole table, "" where only the catalog knows. `rows` is None when the producer does not say. `environment`
    is the server's, or "". `other_locations` are where the contract's other
    servers have the table, by server.
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
    other_locations: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """What the store files its receipt under; see `identity.key`."""
        return contract_key(self.contract, self.contract_version)

    @property
    def delivery(self) -> str:
        """The same for the same contract in one major, object, cycle, partition, server and catalog."""
        values = partition_folder(sorted(self.values))
        parts = (self.key, self.object, self._cycle(), values, self.server, self.catalog)
        return str(uuid.uuid5(_NAMESPACE, json.dumps(parts)))

    @property
    def delivery_before(self) -> str:
        """What it was called before servers and catalogs were told apart."""
        name = "\n".join((self.key, self.object, self._cycle(), partition_folder(self.values)))
        return str(uuid.uuid5(_BEFORE_SERVERS, name))

    def _cycle(self) -> str:
        return self.cycle.astimezone(UTC).isoformat() if self.cycle else ""


@dataclass(frozen=True, slots=True)
class DeliveryEvent:
    """What consumers are told. `at` is when publishing began, in UTC; a retry tells the same.

    `revision` grows by one when the same is delivered again; `previous_rows` are those of the one before.
    """

    id: str
    publication: Publication
    at: datetime
    revision: int = 1
    previous_rows: int | None = None

    @property
    def name(self) -> str:
        return "delivered" if self.revision == 1 else "redelivered"

    def as_json(self) -> dict[str, object]:
        """One flat object; `contract`, `domain`, `event`, `major_version`, `environment` are to filter by."""
        one = self.publication
        return {
            "event_id": self.id,
            "event": self.name,
            "contract": one.contract,
            "domain": one.domain,
            "major_version": identity(one.contract, one.contract_version)[1],
            "environment": one.environment,
            "contract_version": one.contract_version,
            "object": one.object,
            "server": one.server,
            "catalog": one.catalog,
            "table": f"{one.database}.{one.table}",
            "partition": dict(one.values),
            "location": one.folder,
            "cycle": one.cycle.astimezone(UTC).isoformat() if one.cycle else None,
            "rows": one.rows,
            "revision": self.revision,
            "previous_rows": self.previous_rows,
            "at": self.at.astimezone(UTC).isoformat(),
        }


def first_event_id(one: Publication) -> str:
    """The id of the first revision: the same on every machine, also with another store."""
    return str(uuid.uuid5(_NAMESPACE, one.delivery))


def event_id(one: Publication, revision: int, begun_at: datetime) -> str:
    """The id of a later revision. The instant is in it, for a store that was set back counts anew."""
    return str(uuid.uuid5(_NAMESPACE, f"{one.delivery} {revision} {begun_at.astimezone(UTC).isoformat()}"))


def publication(
    contract: Contract,
    one: SchemaObject,
    spec: TableSpec,
    *,
    server: str,
    environment: str = "",
    catalog: str,
    partition: Mapping[str, str],
    cycle: datetime | None = None,
    rows: int | None = None,
    folder: str | None = None,
    other_locations: Mapping[str, str] | None = None,
) -> Publication:
    """The delivery of a partition of the object's table; `folder` where it does not lie as Hive would put it.

    `server` and its `environment` are where the data is, `catalog` is the id of the catalog it stands in.

    Raises UsageError for a partition that does not fit the table's keys, a delivery without any identity,
    and a table whose place nobody knows.
    """
    values = partition_values(spec, partition)
    if not values and cycle is None:
        raise UsageError(
            f"{spec.database}.{spec.name} has no partitions, so deliveries cannot be told apart.",
            "Name the due instant with --cycle, such as --cycle 2026-11-20T06:00:00Z.",
        )
    if rows is not None and not 0 <= rows <= MOST_ROWS:
        raise UsageError(f"A delivery cannot have {rows} rows.", f"Give a number from 0 to {MOST_ROWS}.")
    if folder is None and not spec.location:
        raise UsageError(
            f"Where {spec.database}.{spec.name} lies is not known.", "Give the server a location."
        )
    default = "/".join(part for part in (spec.location.rstrip("/"), partition_folder(values)) if part)
    return Publication(
        contract.id,
        contract.version,
        contract.domain or "",
        one.name,
        spec.database,
        spec.name,
        default if folder is None else folder,
        values,
        cycle,
        rows,
        "" if spec.format in OPEN_FORMATS else dataset(one)[0].marker,
        server,
        environment,
        catalog,
        spec.location,
        folder is not None,
        tuple(sorted((other_locations or {}).items())),
    )


# What consumers get: a CloudEvent of version 1.0 in JSON, and the texts that they filter by.
#
# Source: CloudEvents 1.0.2, its JSON format in structured mode.

JsonObject = dict[str, object]

_NOTHING = "none"


def cloud_event(event: DeliveryEvent) -> JsonObject:
    """The event as JSON values; docs/reference/delivery-event.schema.json is its schema."""
    one = event.publication
    data = event.as_json()
    # The envelope says both.
    del data["event_id"], data["at"]
    cycle = data["cycle"]
    what = partition_folder(one.values) or (f"cycle={cycle}" if cycle else "")
    _, major = identity(one.contract, one.contract_version)
    return {
        "specversion": "1.0",
        "id": event.id,
        "source": f"urn:dq:contract:{quote(one.contract, safe='')}:{quote(major, safe='')}",
        "type": f"dq.delivery.{event.name}",
        "time": event.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "subject": f"{one.object}/{what}",
        "datacontenttype": "application/json",
        "data": data,
    }


def filter_texts(event: DeliveryEvent) -> dict[str, str]:
    """The five texts that subscriptions filter by; `none` for what is empty, which SNS does not take."""
    data = event.as_json()
    names = ("contract", "domain", "event", "major_version", "environment")
    return {name: str(data[name]) or _NOTHING for name in names}


# What consumers are still to be told: rows that commit with the receipt, and stay until a place took them.
#
# Who sends a notice takes it for a while first, so that of many processes one does. Its time is the store's
# user's own clock: a process that was killed while it sent is followed by the next one when the while is
# over.

_columns = consumer_notice.c


@dataclass(frozen=True, slots=True)
class ConsumerNotice:
    """One event for one place: its CloudEvent as a text, and what subscriptions filter by."""

    event_id: str
    target: str
    body: str
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class WaitingNotices:
    """What waits for one place: how many events, since when, and what came of the last attempt, if any."""

    target: str
    number: int
    since: datetime
    problem: str


def write(tx: Connection, event: DeliveryEvent, targets: Collection[str], now: datetime) -> None:
    """Notes that these places are to be told of the event."""
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


def _waiting_numbers(store: Store, target: str, most: int, event_id: str = "") -> list[int]:
    """What waits for a place: those tried least first, then the oldest; with an event, its own."""
    asked = select(_columns.number).where(_columns.target == target, _columns.sent_at.is_(None))
    if event_id:
        asked = asked.where(_columns.event_id == event_id)
    with store.read() as tx:
        return list(tx.execute(asked.order_by(_columns.attempts, _columns.number).limit(most)).scalars())


def take_notices(store: Store, number: int, now: datetime, lease: timedelta) -> ConsumerNotice | None:
    """Takes a notice, so that nobody else does until the lease is over; None where another has done so.

    All take it for as long. An end that is later than two leases is of a clock that is wrong, and holds
    nobody up: who was killed then would keep it for as long as the clock was ahead.
    """
    here = (_columns.number == number) & _columns.sent_at.is_(None)
    until = _columns.taken_until
    free = here & or_(until.is_(None), until <= now, until > now + 2 * lease)
    values = {"taken_until": now + lease, "attempts": _columns.attempts + 1}
    names = (_columns.event_id, _columns.target, _columns.body, _columns.attributes)
    with store.write() as tx:
        if tx.execute(update(consumer_notice).where(free).values(values)).rowcount == 0:
            return None
        row = tx.execute(select(*names).where(here)).one()
    return ConsumerNotice(*row[:3], tuple((name, text) for name, text in row.attributes))


def _free(store: Store, number: int, **values: object) -> None:
    """Notes what came of a notice that was taken, and lets others try where no place has it."""
    here = (_columns.number == number) & _columns.sent_at.is_(None)
    with store.write() as tx:
        tx.execute(update(consumer_notice).where(here).values(taken_until=None, **values))


def unsent(tx: Connection, event_id: str) -> list[tuple[str, str]]:
    """The places that have not taken the event, and what came of the last attempt at each."""
    here = (_columns.event_id == event_id) & _columns.sent_at.is_(None)
    return [(row.target, row.problem) for row in tx.execute(select(consumer_notice).where(here))]


def waiting(tx: Connection) -> list[WaitingNotices]:
    """What waits, by place."""
    counted = select(
        _columns.target,
        func.count().label("number"),
        func.min(_columns.written_at).label("since"),
        func.max(_columns.problem).label("problem"),
    )
    asked = counted.where(_columns.sent_at.is_(None)).group_by(_columns.target).order_by(_columns.target)
    return [WaitingNotices(*row) for row in tx.execute(asked)]


# Sends what consumers are to be told, and keeps waiting what a place does not take.

Notifier = Callable[[ConsumerNotice], None]
"""Hands a notice to a place. Raises PlaceDown when it takes none now, another DqError for this one alone."""

# Longer than one attempt can take with all its time limits.
LEASE = timedelta(seconds=30)
# Of others' notices: who publishes does not wait for a whole backlog.
_BESIDE = 20
_PAUSE_SECONDS = 0.1


class PlaceDown(DqError):
    """A place takes no notices at all now: it cannot be reached, or refuses whoever asks."""

    exit_code = 4


def tell(
    store: Store,
    notifiers: Mapping[str, Notifier],
    clock: Callable[[], datetime],
    *,
    event_id: str = "",
    most: int = _BESIDE,
    lease: timedelta = LEASE,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Sends to each of these places what waits for it, and gives how many notices were taken.

    First goes the notice of this event, then up to `most`. Where another process is sending the event's, that
    is waited for: until it is sent, or has taken longer than the lease, when it is sent again with the same
    id. What was not taken waits with the reason; a place that is down is left at once.
    """
    sent = 0
    for target, notifier in notifiers.items():
        ended = None
        while event_id and (found := _waiting_numbers(store, target, 1, event_id)):
            ended = _send(store, notifier, clock, lease, found[0])
            sent += ended is _Ended.SENT
            if ended is not _Ended.TAKEN:
                break
            pause(_PAUSE_SECONDS)
        for number in _waiting_numbers(store, target, most) if ended is not _Ended.DOWN and most else ():
            ended = _send(store, notifier, clock, lease, number)
            sent += ended is _Ended.SENT
            if ended is _Ended.DOWN:
                break
    return sent


class _Ended(Enum):
    SENT = "sent"
    TAKEN = "taken"  # by another process
    REFUSED = "refused"
    DOWN = "down"


def _send(
    store: Store, notifier: Notifier, clock: Callable[[], datetime], lease: timedelta, number: int
) -> _Ended:
    notice = take_notices(store, number, clock(), lease)
    if notice is None:
        return _Ended.TAKEN
    try:
        notifier(notice)
    except DqError as error:
        _free(store, number, problem=error.message)
        return _Ended.DOWN if isinstance(error, PlaceDown) else _Ended.REFUSED
    _free(store, number, problem="", sent_at=clock())
    return _Ended.SENT


# Tells consumers by a file of JSON lines: the local stand-in for a topic.

# Shorter than the lease of a notice (`tell.LEASE`), and longer than fifty writers need.
_LOCK_SECONDS = 20.0
_LOCK_PAUSE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Appends one line per event; an event that stands in the file is not written again."""

    path: Path

    def __call__(self, notice: ConsumerNotice) -> None:
        """Raises PlaceDown when the file cannot be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(_opened(self.path), "a+b") as file:
                _lock(file)
                file.seek(0)
                lines = file.read().split(b"\n")
                # A writer that was killed may have left half a line; readers must not see it.
                half = lines.pop()
                if half:
                    file.truncate(file.tell() - len(half))
                id = notice.event_id
                # As the line of an event begins now, and before it was a CloudEvent.
                now, before = f'{{"specversion":"1.0","id":"{id}"', f'{{"event_id": "{id}"'
                if not any(line.startswith((now.encode(), before.encode())) for line in lines):
                    file.write(notice.body.encode() + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            raise PlaceDown(
                f"Consumers could not be told: {self.path} cannot be written ({error.strerror}).",
                "Make it writable, then: dq publish --pending.",
            ) from error


def _opened(path: Path) -> int:
    """The file, for this user only; not what a link of its name leads to."""
    with files.open_folder(path.parent) as folder:
        file = files.open_file(folder, path.name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "is no plain file", str(path))
    return file


def _lock(file: BinaryIO) -> None:
    """Waits until no other process writes to the file; the lock goes with the file, or with its holder.

    Raises OSError when that takes too long: whoever reads the file may lock it too, and forget about it.
    """
    until = time.monotonic() + _LOCK_SECONDS
    while not _locked(file):
        if time.monotonic() > until:
            raise OSError(errno.EAGAIN, "another process holds its lock")
        time.sleep(_LOCK_PAUSE_SECONDS)


def _locked(file: BinaryIO) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            # Far behind the end: what is locked there, nobody else can read.
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
