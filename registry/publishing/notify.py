"""Tells consumers by a file of JSON lines: the local stand-in for a topic."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from dq.contracts.access import open_beneath
from dq.registry.publishing.notices import ConsumerNotice
from dq.registry.publishing.tell import PlaceDown

# Shorter than the lease of a notice (`tell.LEASE`), and longer than fifty writers need.
_LOCK_SECONDS = 20.0
_PAUSE_SECONDS = 0.02


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
    with open_beneath.folder(path.parent) as folder:
        file = open_beneath.open_file(folder, path.name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
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
        time.sleep(_PAUSE_SECONDS)


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
