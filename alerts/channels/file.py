"""Alerts as lines of JSON in a file, for machines that follow it; each key is written once."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from dq.alerts.channel import (
    Answer,
    Blockage,
    Capabilities,
    Channel,
    Look,
    MessagePlace,
    NotHeld,
    NotSent,
    Rejected,
    Sent,
)
from dq.alerts.message import Message
from dq.contracts.shared.printable import in_json

# Nobody else may lay a link or a pipe where alerts are written: what they say is not for everyone.
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_BROKEN = {errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.EINVAL}


@dataclass(frozen=True, slots=True)
class AlertFile:
    """Appends to the file that a route names as its target, and waits until the disk has it.

    A new file is for its owner alone; a link or a pipe in its place is a broken route.
    """

    def create(self, target: str, message: Message, key: str, below: MessagePlace | None = None) -> Answer:
        return _append(target, message, "create", key)

    def update(self, receipt: MessagePlace, message: Message) -> Answer:
        # Level-triggered: the same revision may be written again only after another one.
        return _append(receipt.place, message, "update", f"{message.incident}/update/{message.revision}")

    def reply(self, receipt: MessagePlace, message: Message, key: str) -> Answer:
        return _append(receipt.place, message, "reply", key)

    def find(self, target: str, key: str, since: datetime, root: MessagePlace | None) -> Look:
        try:
            return Sent(MessagePlace(target, key)) if key in _keys(Path(target)) else NotHeld()
        except OSError as error:
            return Rejected(f"{target}: {error.strerror}", Blockage.ROUTE)

    def retract(self, receipt: MessagePlace) -> None:
        """Each key is written once, so there is no second copy."""


def _append(target: str, message: Message, operation: str, key: str) -> Answer:
    path = Path(target)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if key not in _keys(path):
            _write(path, in_json(json.dumps({"key": key, "operation": operation, **_fields(message)})))
    except OSError as error:
        if error.errno in _BROKEN:
            return Rejected(f"{target}: {error.strerror}", Blockage.ROUTE)
        return NotSent(
            f"{target}: {error.strerror}"
        )  # a full disk, a share that went away: half a line is no line
    return Sent(MessagePlace(target, key))


def _write(path: Path, line: str) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _CAREFULLY, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file")
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
    if not path.is_file():
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
    make=lambda settings, write: AlertFile(),
)
