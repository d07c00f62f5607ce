"""What consumers are still to be told: rows that commit with the receipt, until a place took them."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import ColumnElement, Connection, and_, func, insert, or_, select, update

from dq.contracts.access import files
from dq.contracts.shared.outcome import DqError
from dq.registry.publishing.publication import DeliveryEvent, cloud_event, filter_texts
from dq.registry.tables import consumer_notice
from dq.store.engine import Store

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
    body = json.dumps(cloud_event(event), ensure_ascii=False, separators=(",", ":"))
    attributes = [list(pair) for pair in filter_texts(event).items()]
    for target in dict.fromkeys(targets):
        tx.execute(
            insert(consumer_notice).values(
                event_id=event.id,
                target=target,
                body=body,
                attributes=attributes,
                written_at=now,
                attempts=0,
                problem="",
            )
        )


def waiting_numbers(store: Store, target: str, most: int, event_id: str = "") -> list[int]:
    """What waits for a place: those tried least first, then the oldest; with an event, its own."""
    asked = select(_columns.number).where(_waits(target, event_id))
    with store.read() as tx:
        ordered = asked.order_by(_columns.attempts, _columns.number).limit(most)
        return list(tx.execute(ordered).scalars())


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


def mark_sent(store: Store, number: int, now: datetime) -> None:
    """Notes that the place has taken it."""
    with store.write() as tx:
        here = (_columns.number == number) & _columns.sent_at.is_(None)
        tx.execute(update(consumer_notice).where(here).values(sent_at=now, taken_until=None, problem=""))


def mark_failed(store: Store, number: int, problem: str) -> None:
    """Notes why the place has not taken it, and lets others try."""
    with store.write() as tx:
        here = (_columns.number == number) & _columns.sent_at.is_(None)
        tx.execute(update(consumer_notice).where(here).values(taken_until=None, problem=problem))


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


def _waits(target: str, event_id: str) -> ColumnElement[bool]:
    here = and_(_columns.target == target, _columns.sent_at.is_(None))
    return and_(here, _columns.event_id == event_id) if event_id else here


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
        desk = _Desk(store, notifier, clock, lease)
        up = True
        while up and event_id and (found := waiting_numbers(store, target, 1, event_id)):
            ended = desk.send(found[0])
            sent += ended is _Ended.SENT
            up = ended is not _Ended.DOWN
            if ended is not _Ended.TAKEN:
                break
            pause(_PAUSE_SECONDS)
        for number in waiting_numbers(store, target, most) if up and most else ():
            ended = desk.send(number)
            sent += ended is _Ended.SENT
            if ended is _Ended.DOWN:
                break
    return sent


class _Ended(Enum):
    SENT = "sent"
    TAKEN = "taken"  # by another process
    REFUSED = "refused"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class _Desk:
    store: Store
    notifier: Notifier
    clock: Callable[[], datetime]
    lease: timedelta

    def send(self, number: int) -> _Ended:
        found = take_notices(self.store, number, self.clock(), self.lease)
        if found is None:
            return _Ended.TAKEN
        try:
            self.notifier(found)
        except DqError as error:
            mark_failed(self.store, number, error.message)
            return _Ended.DOWN if isinstance(error, PlaceDown) else _Ended.REFUSED
        mark_sent(self.store, number, self.clock())
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
                beginnings = tuple(text.encode() for text in _beginnings(notice.event_id))
                if not any(line.startswith(beginnings) for line in lines):
                    file.write(notice.body.encode() + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            raise PlaceDown(
                f"Consumers could not be told: {self.path} cannot be written ({error.strerror}).",
                "Make it writable, then: dq publish --pending.",
            ) from error


def _beginnings(event_id: str) -> tuple[str, str]:
    """How the line of an event begins, now and before it was a CloudEvent."""
    return f'{{"specversion":"1.0","id":"{event_id}"', f'{{"event_id": "{event_id}"'


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
