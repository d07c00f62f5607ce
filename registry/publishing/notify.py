"""Tells consumers by a file of JSON lines: the local stand-in for a topic."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from dq.contracts.access import open_beneath
from dq.contracts.shared.errors import Undeliverable
from dq.registry.publishing.publication import DeliveryEvent


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Appends one line per event; an event that stands in the file is not written again."""

    path: Path

    def __call__(self, event: DeliveryEvent) -> None:
        """Raises Undeliverable when the file cannot be written."""
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
                wanted = f'"event_id": "{event.id}"'.encode()
                if not any(wanted in line for line in lines):
                    file.write(json.dumps(event.as_json(), ensure_ascii=False).encode() + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            raise Undeliverable(
                f"Consumers could not be told: {self.path} cannot be written ({error.strerror}).",
                "Make it writable, then publish again; nothing is done twice.",
            ) from error


def _opened(path: Path) -> int:
    """The file, for this user only; not what a link of its name leads to."""
    with open_beneath.folder(path.parent) as folder:
        file = open_beneath.open_file(folder, path.name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "is no plain file", str(path))
    return file


def _lock(file: BinaryIO) -> None:
    """Waits until no other process writes to the file; the lock goes with the file, or with its holder."""
    if sys.platform == "win32":
        import msvcrt

        # Far behind the end: what is locked there, nobody else can read.
        file.seek(1 << 30)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
