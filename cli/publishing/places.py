"""The places at which consumers are told: the operator's topic of SNS, else a file in the state folder."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dq.cli.world.environment import World
from dq.contracts.model import Contract
from dq.contracts.shared.install import needing
from dq.contracts.shared.outcome import UsageError
from dq.registry.publishing.notices import JsonLines, Notifier

NOTICES = "published.jsonl"

_DOMAIN = "{domain}"
_NAME = "[A-Za-z0-9_-]+"


def notifiers(world: World, contract: Contract) -> dict[str, Notifier]:
    """Who tells the consumers of this contract, by place.

    Raises UsageError where the contract's domain is no part of a topic's name, MissingTool without boto3.
    """
    topic = world.settings.topic
    if not topic:
        return _file(world)
    domain = contract.domain or ""
    if _DOMAIN in topic and not re.fullmatch(_NAME, domain):
        raise UsageError(
            f"contract {contract.id!r}: its domain {domain!r} cannot stand in the name of a topic, {topic}.",
            "Write letters, digits, hyphens and underscores in 'domain'.",
            at=contract.at("domain"),
        )
    return {topic.replace(_DOMAIN, domain): _teller()}


def senders(world: World, places: Iterable[str]) -> dict[str, Notifier]:
    """Who sends to those of these places that are this folder's or the operator's; the others are left out.

    A store may be shared: what waits for a file of another machine is that machine's.
    """
    topic, files = world.settings.topic, _file(world)
    ours = re.escape(topic).replace(re.escape(_DOMAIN), _NAME)
    topics = [place for place in places if topic and re.fullmatch(ours, place)]
    return {place: files[place] for place in places if place in files} | (
        dict.fromkeys(topics, _teller()) if topics else {}
    )


def _teller() -> Notifier:
    with needing("A topic of SNS needs boto3", "aws"):
        from dq.registry.sns.topic import tell_topic
    return tell_topic


def _file(world: World) -> dict[str, Notifier]:
    path = world.state().absolute() / NOTICES
    return {f"file:{path}": JsonLines(path)}
