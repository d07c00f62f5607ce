"""Alerts as JSON lines in a file; each key is written once."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from dq.alerts import channel
from dq.alerts.message import Message, as_dict
from dq.contracts.outcome import escape_json_document

# Links and pipes are rejected: other users could use them to read the alerts.
_SAFE_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_ROUTE_ERRORS = {errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.EINVAL}
_CHUNK, _TAIL = 1024 * 1024, 256


@dataclass(slots=True)
class _Index:
    """The keys in a file's first `end` bytes, all complete lines; `tail` are the last of these bytes."""

    inode: int = 0
    end: int = 0
    tail: bytes = b""
    keys: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class AlertFile:
    """Appends to the file that a route names as its target, with fsync.

    A new file is accessible to its owner only; a link or a pipe is a route failure. Only bytes appended by
    others since the last read are read.
    """

    indexes: dict[str, _Index] = field(default_factory=dict, repr=False)

    def create(
        self, target: str, message: Message, key: str, parent: channel.MessageRef | None = None
    ) -> channel.SendResult:
        return self._append(target, message, "create", key)

    def update(self, receipt: channel.MessageRef, message: Message) -> channel.SendResult:
        # Idempotent by revision.
        key = f"{message.incident}/update/{message.revision}"
        return self._append(receipt.place, message, "update", key)

    def reply(self, receipt: channel.MessageRef, message: Message, key: str) -> channel.SendResult:
        return self._append(receipt.place, message, "reply", key)

    def find(
        self, target: str, key: str, since: datetime, root: channel.MessageRef | None
    ) -> channel.LookupResult:
        try:
            with _open_regular(Path(target), os.O_RDONLY) as descriptor:
                exists = key in self._keys(target, descriptor)
        except FileNotFoundError:
            return channel.LookupMiss()
        except OSError as error:
            return channel.PermanentFailure(f"{target}: {error.strerror}", channel.FailureScope.ROUTE)
        return channel.Sent(channel.MessageRef(target, key)) if exists else channel.LookupMiss()

    def retract(self, receipt: channel.MessageRef) -> None:
        """Do nothing: each key is written once, so there are no duplicates."""

    def _append(self, target: str, message: Message, operation: str, key: str) -> channel.SendResult:
        path = Path(target)
        line = escape_json_document(json.dumps({"key": key, "operation": operation, **as_dict(message)}))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND) as descriptor:
                if key not in self._keys(target, descriptor):
                    _write(descriptor, line)
        except OSError as error:
            if error.errno in _ROUTE_ERRORS:
                return channel.PermanentFailure(f"{target}: {error.strerror}", channel.FailureScope.ROUTE)
            # E.g. a full disk or an unavailable share. An incomplete line does not count.
            return channel.RetryableFailure(f"{target}: {error.strerror}", None, channel.FailureScope.ROUTE)
        return channel.Sent(channel.MessageRef(target, key))

    def _keys(self, target: str, descriptor: int) -> set[str]:
        """Return the keys of all complete lines of an open file."""
        status, index = os.fstat(descriptor), self.indexes.setdefault(target, _Index())
        if status.st_ino != index.inode or not _is_unchanged(descriptor, index):
            # The file was rotated or truncated.
            index = self.indexes[target] = _Index(status.st_ino)
        os.lseek(descriptor, index.end, os.SEEK_SET)
        remainder = b""
        while chunk := os.read(descriptor, _CHUNK):
            *lines, remainder = (remainder + chunk).split(b"\n")
            for line in lines:
                index.keys.update(_key(line))
                index.end += len(line) + 1
                index.tail = (line + b"\n")[-_TAIL:]
        return index.keys


@contextmanager
def _open_regular(path: Path, flags: int) -> Iterator[int]:
    """Open a regular file, readable by its owner only. Raises OSError for links, pipes and other failures."""
    descriptor = os.open(path, flags | _SAFE_FLAGS, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def _is_unchanged(descriptor: int, index: _Index) -> bool:
    """True if the part of the file that was read is unchanged."""
    os.lseek(descriptor, index.end - len(index.tail), os.SEEK_SET)
    return os.read(descriptor, len(index.tail)) == index.tail


def _write(descriptor: int, line: str) -> None:
    # A crash may have left an incomplete line: start on a new one.
    is_torn = os.fstat(descriptor).st_size > 0 and _last_byte(descriptor) != b"\n"
    data = ("\n" * is_torn + line + "\n").encode()
    if os.write(descriptor, data) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(descriptor)


def _last_byte(descriptor: int) -> bytes:
    os.lseek(descriptor, -1, os.SEEK_END)
    return os.read(descriptor, 1)


def _key(line: bytes) -> tuple[str, ...]:
    """Return the key of a complete line, or nothing for an incomplete or foreign line."""
    try:
        parsed = json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return ()
    key = parsed.get("key") if isinstance(parsed, Mapping) else None
    return (key,) if isinstance(key, str) else ()


CHANNEL = channel.Channel(
    id="file",
    summary="JSON lines, appended to the file in the route.",
    can=channel.Capabilities(thread=True, update=True, reconcile=True),
    make=lambda settings, write: AlertFile(),
)
