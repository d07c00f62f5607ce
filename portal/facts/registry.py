"""The contracts of a registry as cards: which are made anew only where a file has changed."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from time import time_ns
from typing import Any

from dq.contracts.access import files as open_beneath
from dq.contracts.access.discovery import discover
from dq.contracts.access.files import FileRefused, Found, read
from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.portal.facts.card import Card, card, unread

REFUSED = "refused"
"""Instead of the digest of a file that could not be read."""
_A_MOMENT = 3_000_000_000
# File systems count time in steps of two seconds at most.


def files(paths: Iterable[Path]) -> tuple[Found, ...]:
    """The contract files at or below the paths. Raises Unreadable as `discover` does."""
    return discover(paths).contracts


def identities(found: Sequence[Found]) -> list[str]:
    """What changes of each file whenever it is written, so that one with the same need not be read again.

    It is empty where the system does not tell, and for a file that was written a moment ago: it may be
    written once more within the same tick of the file system's clock.
    """
    since = time_ns() - _A_MOMENT
    told: list[str] = []
    for (root, *below), group in groupby(found, key=_folder):
        here = list(group)
        try:
            with open_beneath.open_folder(root, below) as held:
                told += [_identity(held, file.name.rpartition("/")[2], since) for file in here]
        except OSError:
            told += [""] * len(here)
    return told


def _folder(file: Found) -> tuple[Any, ...]:
    return file.root, *file.name.split("/")[:-1]


def _identity(folder: open_beneath.Folder, name: str, since: int) -> str:
    try:
        seen = open_beneath.look(folder, name)
    except OSError:
        return ""
    # Whoever gives a file its old time back changes the time at which the system noted that.
    if not stat.S_ISREG(seen.st_mode) or max(seen.st_mtime_ns, seen.st_ctime_ns) >= since:
        return ""
    return f"{seen.st_dev}-{seen.st_ino}-{seen.st_size}-{seen.st_mtime_ns}-{seen.st_ctime_ns}"


def digest(file: Found) -> str:
    """The digest of what a file holds; REFUSED for one that may not be read."""
    try:
        return sha256(read(file)).hexdigest()
    except FileRefused:
        return REFUSED


def cards(found: Sequence[Found]) -> list[Card]:
    """A card for each file, in order."""
    return [_card(file) for file in found]


def _card(file: Found) -> Card:
    name = str(file)
    try:
        content = read(file)
    except FileRefused as refused:
        return unread(name, REFUSED, [refused.finding(name)])
    digest = sha256(content).hexdigest()
    parsed = parse(content, name)
    wrong = [finding for finding in parsed.findings if finding.severity.blocks]
    if parsed.contract is None or wrong:
        return unread(name, digest, wrong, parsed.contract.key if parsed.contract else "")
    return card(parsed.contract, digest)


def contract(file: Found, digest: str) -> Contract | None:
    """The contract in a file; None where it is not any more what its card was made from."""
    try:
        content = read(file)
    except FileRefused:
        return None
    return parse(content, str(file)).contract if sha256(content).hexdigest() == digest else None
