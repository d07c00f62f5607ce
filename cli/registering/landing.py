"""`dq register --emit-landing-zone`: the stack that these contracts and settings ask of an account."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dq.cli.world.environment import World
from dq.contracts.model import Contract
from dq.contracts.shared.errors import UsageError
from dq.registry.landing.template import LandingZone, template
from dq.registry.scheduler.entry import service_of
from dq.registry.table import TableSpec

_TOPIC = "dq-{domain}"
_LOCATION = re.compile("s3[an]?://[a-z0-9.-]{3,63}(/[^*?$]*)?")
_TOPIC_NAME = re.compile("[A-Za-z0-9_-]{1,256}", re.ASCII)


def landing_zone(
    world: World, contracts: Iterable[Contract], tables: Iterable[TableSpec]
) -> dict[str, object]:
    """The template. Raises UsageError for a setting, or a domain, that gives no name in AWS."""
    settings = world.settings
    if settings.schedule_target:
        service_of(settings.schedule_target)
    for one in settings.lake_formation_locations:
        if not _LOCATION.fullmatch(one):
            raise UsageError(f"lake_formation_locations has {one!r}.", "Write s3://bucket/prefix.")
    made = LandingZone(
        databases=[one.database for one in tables],
        topics=_topics(settings.topic, contracts),
        locations=settings.lake_formation_locations,
        target=settings.schedule_target,
        group=settings.schedule_group,
        queue=settings.schedule_dead_letters.rpartition(":")[2] or "dq-dead-letters",
        scheduler_role=settings.schedule_role.rpartition("/")[2] or "dq-scheduler",
        lake_role=settings.lake_formation_role.rpartition("/")[2] or "dq-lake-reader",
        governed=bool(settings.lake_formation),
    )
    return template(made)


def _topics(topic: str, contracts: Iterable[Contract]) -> list[str]:
    form = topic.rpartition(":")[2] or _TOPIC
    if "{domain}" not in form:
        return [form]
    found = []
    for contract in contracts:
        if contract.domain:
            name = form.replace("{domain}", contract.domain)
            if not _TOPIC_NAME.fullmatch(name):
                raise UsageError(
                    f"contract {contract.id!r}: its domain cannot stand in the name of a topic, {form}.",
                    "Write letters, digits, hyphens and underscores in 'domain'.",
                    at=contract.at("domain"),
                )
            found.append(name)
    return found
