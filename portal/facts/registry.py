"""The contracts of a registry as cards: which are made anew only where a file has changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from dq.contracts.access.discovery import discover
from dq.contracts.access.files import FileRefused, Found, read
from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.portal.facts.card import Card, card, unread

REFUSED = "refused"
"""Instead of the digest of a file that could not be read."""


def files(paths: Iterable[Path]) -> tuple[Found, ...]:
    """The contract files at or below the paths. Raises Unreadable as `discover` does."""
    return discover(paths).contracts


def looked_at(found: Sequence[Found]) -> list[str]:
    """The digest of each file; REFUSED for one that may not be read."""
    return [_digest(file) for file in found]


def _digest(file: Found) -> str:
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
