"""What helps whoever is woken: who owns it, what to read, and where to look closer."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

from dq.alerts.incident import Facts
from dq.cli.world.environment import World
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Breach

Help = Callable[[Contract, Breach], Facts]


def helper(world: World, server: str | None = None) -> Help:
    """What adds the lines of help to a breach of a contract.

    `server` is what the command was given as `--server`: whoever looks closer has to look there too.
    """

    def facts(contract: Contract, event: Breach) -> Facts:
        return (*_people(contract), ("look closer", _command(world, contract, event, server)))

    return facts


def _people(contract: Contract) -> Facts:
    owner = next((one.username for one in contract.members() if (one.role or "").lower() == "owner"), None)
    runbook = next((one.url for one in contract.authoritative_definitions if one.type == "runbook"), None)
    found = (("owner", owner), ("runbook", runbook))
    return tuple((label, value) for label, value in found if value)


def _command(world: World, contract: Contract, event: Breach, server: str | None) -> str:
    """The command that shows more, for a shell in the folder in which this one ran."""
    quality = event.key.group == "quality"
    config = ["--config", _relative(world, world.settings.file)] if world.settings.file else []
    chosen = ["--server", server] if server and quality else []
    # Whoever is woken pastes it, and a stranger may have named the file: one may begin with a dash.
    words = ["dq", *config, "check" if quality else "status", *chosen, _named(world, contract)]
    return shlex.join(words)


def _named(world: World, contract: Contract) -> str:
    file = _relative(world, Path(contract.file))
    return f"./{file}" if file.startswith("-") else file


def _relative(world: World, path: Path) -> str:
    """The path as seen from the folder of the command; another machine's folders are nobody's business."""
    # Behind a link `..` leads elsewhere than the text says.
    if not path.is_absolute() or ".." in path.parts:
        return str(path)
    shared = os.path.commonpath([world.folder, path])
    return str(path) if shared == os.path.sep else os.path.relpath(path, world.folder)
