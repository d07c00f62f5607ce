"""The contracts that others are made from, found in their registry without reading all of it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dq.contracts.access.discovery import discover
from dq.contracts.access.files import FileRefused, read
from dq.contracts.lineage import declared
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Unreadable
from dq.contracts.yaml.parse import parse


def beside(registries: Sequence[Path], contracts: Sequence[Contract]) -> list[Contract]:
    """The contracts, and all of their registries in which a declared input can be.

    An input's name begins with the id of its contract or with the name of its object, which stands in that
    contract's text; or it is the path of its file. So the other files need no parsing. What cannot be read
    is left out.
    """
    known = {one.key: one for one in contracts}
    texts = {text for one in contracts for text in declared(one)}
    files = {posixpath.basename(text.rpartition("#")[0]) for text in texts if "#" in text}
    words = {re.split("[/.@]", text.strip())[0].encode() for text in texts if "#" not in text} - {b""}
    if not texts:
        return list(known.values())
    with suppress(Unreadable):
        for file in discover(registries).contracts:
            with suppress(FileRefused):
                content = read(file)
                if file.path.name not in files and not any(word in content for word in words):
                    continue
                parsed = parse(content, str(file))
                broken = any(one.severity.blocks for one in parsed.findings)
                if parsed.contract is not None and not broken:
                    known.setdefault(parsed.contract.key, parsed.contract)
    return list(known.values())
