"""OpenLineage recording for operations, if the operator enables it."""

from __future__ import annotations

import importlib.util
import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access.discovery import discover
from dq.contracts.access.files import FileRejected, read
from dq.contracts.install import install_command
from dq.contracts.lineage import declared_inputs, inputs
from dq.contracts.model import Contract
from dq.contracts.outcome import ReadError
from dq.contracts.yaml.parse import parse
from dq.operations.runtime.context import RuntimeContext

if TYPE_CHECKING:
    from dq.operations.openlineage_events import Recording

# Input contracts, found in the registry without parsing all of it.


def with_input_candidates(registries: Sequence[Path], contracts: Sequence[Contract]) -> list[Contract]:
    """Return the contracts, and those of their registries that may contain a declared input.

    An input's name begins with the id of its contract or the name of its object, which is in that contract's
    text, or it is the path of its file. Other files are not parsed. Unreadable files are left out.
    """
    by_key = {contract.key: contract for contract in contracts}
    texts = {text for contract in contracts for text in declared_inputs(contract)}
    files = {posixpath.basename(text.rpartition("#")[0]) for text in texts if "#" in text}
    words = {re.split("[/.@]", text.strip())[0].encode() for text in texts if "#" not in text} - {b""}
    if not texts:
        return list(by_key.values())
    with suppress(ReadError):
        for file in discover(registries).contracts:
            with suppress(FileRejected):
                content = read(file)
                if file.path.name not in files and not any(word in content for word in words):
                    continue
                parsed = parse(content, str(file))
                broken = any(finding.severity.blocks for finding in parsed.findings)
                if parsed.contract is not None and not broken:
                    by_key.setdefault(parsed.contract.key, parsed.contract)
    return list(by_key.values())


SECONDS = 5.0
"""Seconds that the end of a command waits for unsent events."""


@contextmanager
def recording(
    context: RuntimeContext, contracts: Sequence[Contract], server: str | None = None
) -> Iterator[Recording | None]:
    """Record lineage events within the block; yields None if the setting `lineage` is not set.

    At the end, unsent events are waited for at most SECONDS, and then reported in a note. Raises UsageError
    for an invalid setting.
    """
    target = context.settings.lineage
    if not target:
        yield None
        return
    if importlib.util.find_spec("openlineage") is None:
        context.note(f"lineage: no events sent, OpenLineage is not installed. {install_command('lineage')}")
        yield None
        return
    from dq.operations.openlineage_events import EventSender, Recording, transport

    sender = EventSender(transport(target, context.environment).emit)
    try:
        candidates = with_input_candidates(context.registries, contracts)
        yield Recording(
            context, sender, {contract.key: contract for contract in candidates}, inputs(candidates), server
        )
    finally:
        missing = sender.close(SECONDS)
        if missing is not None:
            context.note(f"lineage: {missing}. Other results are not affected.")
