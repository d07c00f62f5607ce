"""Tells consumers by a file of JSON lines: the local stand-in for a topic."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path

from dq.contracts.errors import Undeliverable
from dq.registry.publication import Event


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Appends one line per event; an event that stands in the file is not written again."""

    path: Path

    def __call__(self, event: Event) -> None:
        """Raises Undeliverable when the file cannot be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
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
