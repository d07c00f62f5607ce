"""The places at which consumers are told."""

from __future__ import annotations

from collections.abc import Iterable

from dq.cli.world.environment import World
from dq.contracts.model import Contract
from dq.registry.publishing.notify import JsonLines
from dq.registry.publishing.tell import Notifier

NOTICES = "published.jsonl"


def notifiers(world: World, contract: Contract) -> dict[str, Notifier]:  # noqa: ARG001
    """Who tells the consumers of this contract, by place."""
    return _file(world)


def senders(world: World, places: Iterable[str]) -> dict[str, Notifier]:
    """Who sends to those of these places that are this folder's or the operator's; the others are left out.

    A store may be shared: what waits for a file of another machine is that machine's.
    """
    known = _file(world)
    return {place: known[place] for place in places if place in known}


def _file(world: World) -> dict[str, Notifier]:
    path = world.state().absolute() / NOTICES
    return {f"file:{path}": JsonLines(path)}
