"""Alerts as lines of JSON in a file, for machines that follow it; each key is written once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from dq.alerts.channel import (
    Absent,
    Answer,
    Capabilities,
    Channel,
    Look,
    NotSent,
    Receipt,
    Refused,
    Scope,
    Sent,
)
from dq.alerts.message import Message
from dq.contracts.shared.printable import in_json


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Appends to the file that a route names as its target, and waits until the disk has it."""

    def create(self, target: str, message: Message, key: str) -> Answer:
        return _append(target, message, "create", key)

    def update(self, receipt: Receipt, message: Message) -> Answer:
        # Level-triggered: the same revision may be written again only after another one.
        return _append(receipt.place, message, "update", f"{message.incident}/update/{message.revision}")

    def reply(self, receipt: Receipt, message: Message, key: str) -> Answer:
        return _append(receipt.place, message, "reply", key)

    def find(self, target: str, key: str, since: datetime, root: Receipt | None) -> Look:
        try:
            return Sent(Receipt(target, key)) if key in _keys(Path(target)) else Absent()
        except OSError as error:
            return Refused(f"{target}: {error.strerror}", Scope.ROUTE)


def _append(target: str, message: Message, operation: str, key: str) -> Answer:
    path = Path(target)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if key not in _keys(path):
            _write(path, in_json(json.dumps({"key": key, "operation": operation, **_fields(message)})))
    except (PermissionError, IsADirectoryError, NotADirectoryError) as error:
        return Refused(f"{target}: {error.strerror}", Scope.ROUTE)
    except OSError as error:  # a full disk, a share that went away: half a line is no line
        return NotSent(f"{target}: {error.strerror}")
    return Sent(Receipt(target, key))


def _write(path: Path, line: str) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        # A crash may have left half a line: let the next one start on its own.
        torn = os.fstat(descriptor).st_size > 0 and _last(descriptor) != b"\n"
        os.write(descriptor, ("\n" * torn + line + "\n").encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _last(descriptor: int) -> bytes:
    os.lseek(descriptor, -1, os.SEEK_END)
    return os.read(descriptor, 1)


def _keys(path: Path) -> Iterator[str]:
    """The keys of all whole lines; none when there is no file."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                yield json.loads(line)["key"]
            except (ValueError, TypeError, KeyError):  # half a line, or not one of ours
                continue


def _fields(message: Message) -> dict[str, object]:
    return {
        "incident": message.incident,
        "revision": message.revision,
        "contract": message.key.contract,
        "object": message.key.object,
        "group": message.key.group,
        "state": message.state,
        "severity": message.severity,
        "title": message.title,
        "facts": dict(message.facts),
        "steps": list(message.steps),
        "note": message.note,
        "budget": message.budget,
        "repeat": message.repeat,
    }


CHANNEL = Channel(
    id="file",
    summary="Lines of JSON, appended to the file that the route names.",
    can=Capabilities(thread=True, update=True, reconcile=True),
    make=lambda settings, write: JsonLines(),
)
