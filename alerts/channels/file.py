"""Alerts as lines of JSON in a file, for machines that follow it; each key is written once."""

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
from dq.contracts.outcome import in_json

# Nobody else may lay a link or a pipe where alerts are written: what they say is not for everyone.
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_BROKEN = {errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.EINVAL}
_CHUNK, _TAIL = 1024 * 1024, 256


@dataclass(slots=True)
class _Index:
    """The keys of a file's first `end` bytes, all whole lines; `tail` are the last of them."""

    inode: int = 0
    end: int = 0
    tail: bytes = b""
    keys: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class AlertFile:
    """Appends to the file that a route names as its target, and waits until the disk has it.

    A new file is for its owner alone; a link or a pipe in its place is a broken route. What it has read of a
    file it does not read again: only what others appended since.
    """

    indexes: dict[str, _Index] = field(default_factory=dict, repr=False)

    def create(
        self, target: str, message: Message, key: str, below: channel.MessagePlace | None = None
    ) -> channel.Answer:
        return self._append(target, message, "create", key)

    def update(self, receipt: channel.MessagePlace, message: Message) -> channel.Answer:
        # Level-triggered: the same revision may be written again only after another one.
        key = f"{message.incident}/update/{message.revision}"
        return self._append(receipt.place, message, "update", key)

    def reply(self, receipt: channel.MessagePlace, message: Message, key: str) -> channel.Answer:
        return self._append(receipt.place, message, "reply", key)

    def find(self, target: str, key: str, since: datetime, root: channel.MessagePlace | None) -> channel.Look:
        try:
            with _opened(Path(target), os.O_RDONLY) as descriptor:
                held = key in self._keys(target, descriptor)
        except FileNotFoundError:
            return channel.NotHeld()
        except OSError as error:
            return channel.Rejected(f"{target}: {error.strerror}", channel.Blockage.ROUTE)
        return channel.Sent(channel.MessagePlace(target, key)) if held else channel.NotHeld()

    def retract(self, receipt: channel.MessagePlace) -> None:
        """Each key is written once, so there is no second copy."""

    def _append(self, target: str, message: Message, operation: str, key: str) -> channel.Answer:
        path = Path(target)
        line = in_json(json.dumps({"key": key, "operation": operation, **as_dict(message)}))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND) as descriptor:
                if key not in self._keys(target, descriptor):
                    _write(descriptor, line)
        except OSError as error:
            if error.errno in _BROKEN:
                return channel.Rejected(f"{target}: {error.strerror}", channel.Blockage.ROUTE)
            # A full disk, a share that went away: half a line is no line.
            return channel.NotSent(f"{target}: {error.strerror}", None, channel.Blockage.ROUTE)
        return channel.Sent(channel.MessagePlace(target, key))

    def _keys(self, target: str, descriptor: int) -> set[str]:
        """The keys of all whole lines of a file that is open."""
        status, index = os.fstat(descriptor), self.indexes.setdefault(target, _Index())
        if status.st_ino != index.inode or not _continues(descriptor, index):
            # It was put away, or emptied: another file begins.
            index = self.indexes[target] = _Index(status.st_ino)
        os.lseek(descriptor, index.end, os.SEEK_SET)
        rest = b""
        while chunk := os.read(descriptor, _CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                index.keys.update(_key(line))
                index.end += len(line) + 1
                index.tail = (line + b"\n")[-_TAIL:]
        return index.keys


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    """A plain file of ours alone; raises OSError for a link, a pipe, and what else cannot be opened."""
    descriptor = os.open(path, flags | _CAREFULLY, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file")
        yield descriptor
    finally:
        os.close(descriptor)


def _continues(descriptor: int, index: _Index) -> bool:
    """Whether what was read of the file still stands there."""
    os.lseek(descriptor, index.end - len(index.tail), os.SEEK_SET)
    return os.read(descriptor, len(index.tail)) == index.tail


def _write(descriptor: int, line: str) -> None:
    # A crash may have left half a line: let the next one start on its own.
    torn = os.fstat(descriptor).st_size > 0 and _last(descriptor) != b"\n"
    said = ("\n" * torn + line + "\n").encode()
    if os.write(descriptor, said) < len(said):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(descriptor)


def _last(descriptor: int) -> bytes:
    os.lseek(descriptor, -1, os.SEEK_END)
    return os.read(descriptor, 1)


def _key(line: bytes) -> tuple[str, ...]:
    """The key of a whole line; nothing for half a line, or one that is not ours."""
    try:
        read = json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return ()
    key = read.get("key") if isinstance(read, Mapping) else None
    return (key,) if isinstance(key, str) else ()


CHANNEL = channel.Channel(
    id="file",
    summary="Lines of JSON, appended to the file that the route names.",
    can=channel.Capabilities(thread=True, update=True, reconcile=True),
    make=lambda settings, write: AlertFile(),
)
