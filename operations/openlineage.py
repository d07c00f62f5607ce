"""What operations call: events of OpenLineage for what they do, where the operator asks for them."""

from __future__ import annotations

import importlib.util
import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access.discovery import discover
from dq.contracts.access.files import FileRefused, read
from dq.contracts.install import install_command
from dq.contracts.lineage import declared, inputs
from dq.contracts.model import Contract
from dq.contracts.outcome import Unreadable
from dq.contracts.yaml.parse import parse
from dq.operations.runtime.context import World

if TYPE_CHECKING:
    from dq.operations.openlineage_events import Recording

# The contracts that others are made from, found in their registry without reading all of it.


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


SECONDS = 5.0
"""How long the end of a command waits for events that are not sent yet."""


@contextmanager
def recording(
    world: World, contracts: Sequence[Contract], server: str | None = None
) -> Iterator[Recording | None]:
    """Where events go until the end of the block; None where the setting `lineage` names no place.

    At its end, what is left is waited for at most SECONDS; what was not sent is said in one line. Raises
    UsageError for a setting that cannot be understood.
    """
    target = world.settings.lineage
    if not target:
        yield None
        return
    if importlib.util.find_spec("openlineage") is None:
        world.note(f"lineage: no event is sent, OpenLineage is not installed. {install_command('lineage')}")
        yield None
        return
    from dq.operations.openlineage_events import EventSender, Recording, transport

    sender = EventSender(transport(target, world.environment).emit)
    try:
        known = beside(world.registries, contracts)
        yield Recording(world, sender, {one.key: one for one in known}, inputs(known), server)
    finally:
        missing = sender.close(SECONDS)
        if missing is not None:
            world.note(f"lineage: {missing}. What was done is not affected.")
