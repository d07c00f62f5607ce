"""`dq register --emit-landing-zone`: the stack that these contracts and settings ask of an account."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dq.cli.world.environment import World
from dq.contracts.extension import dataset
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import UsageError
from dq.contracts.subscriptions import Subscription
from dq.registry.landing_zone.template import Domain, LandingZone, template
from dq.registry.scheduler.plan import service_of
from dq.registry.table import CONTRACT, CONTRACT_VERSION, OPEN_FORMATS, TableSpec

_TOPIC = "dq-{domain}"
_LOCATION = re.compile("s3[an]?://[a-z0-9.-]{3,63}(/[^*?$]*)?")
_TOPIC_NAME = re.compile("[A-Za-z0-9_-]{1,256}", re.ASCII)


def landing_zone(
    world: World,
    contracts: Iterable[Contract],
    tables: Iterable[TableSpec],
    subscriptions: Iterable[Subscription],
) -> dict[str, object]:
    """The template. Subscriptions that are not over may hear of deliveries from another account.

    Raises UsageError for a setting, or a domain, that gives no name in AWS, and for what no stack can hold.
    """
    settings = world.settings
    if settings.schedule_target:
        service_of(settings.schedule_target)
    for one in settings.lake_formation_locations:
        if not _LOCATION.fullmatch(one):
            raise UsageError(f"lake_formation_locations has {one!r}.", "Write s3://bucket/prefix.")
    specs = list(tables)
    today = world.now().date()
    made = LandingZone(
        domains=_domains(
            settings.topic, contracts, specs, [one for one in subscriptions if not one.over(today)]
        ),
        databases=[one.database for one in specs],
        locations=settings.lake_formation_locations,
        target=settings.schedule_target,
        group=settings.schedule_group,
        queue=settings.schedule_dead_letters.rpartition(":")[2] or "dq-dead-letters",
        scheduler_role=settings.schedule_role.rpartition("/")[2] or "dq-scheduler",
        lake_role=settings.lake_formation_role.rpartition("/")[2] or "dq-lake-reader",
        governed=bool(settings.lake_formation),
    )
    return template(made)


@dataclass(slots=True)
class _Parts:
    """What the contracts of one topic have, gathered contract by contract."""

    domain: str
    databases: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    markers: set[str] = field(default_factory=set)
    readers: set[str] = field(default_factory=set)


def _domains(
    topic: str,
    contracts: Iterable[Contract],
    tables: Iterable[TableSpec],
    subscriptions: Sequence[Subscription],
) -> list[Domain]:
    """One for each topic, with the tables and readers of its contracts."""
    form = topic.rpartition(":")[2] or _TOPIC
    by_contract: dict[tuple[str, str], list[TableSpec]] = {}
    for spec in tables:
        key = spec.parameter(CONTRACT), spec.parameter(CONTRACT_VERSION)
        by_contract.setdefault(key, []).append(spec)
    found: dict[str, _Parts] = {}
    for contract in contracts:
        domain = (contract.domain or "") if "{domain}" in form else ""
        if "{domain}" in form and not domain:
            # Nobody hears of what it publishes.
            continue
        name = form.replace("{domain}", domain)
        if not _TOPIC_NAME.fullmatch(name):
            raise UsageError(
                f"contract {contract.id!r}: its domain cannot stand in the name of a topic, {form}.",
                "Write letters, digits, hyphens and underscores in 'domain'.",
                at=contract.at("domain"),
            )
        parts = found.setdefault(name, _Parts(domain))
        for spec in by_contract.get((contract.id, contract.version), ()):
            parts.databases.add(spec.database)
            if re.match("s3[an]?://", spec.location):
                parts.folders.add(spec.location)
            if spec.format not in OPEN_FORMATS:
                parts.markers |= {dataset(one)[0].marker for one in contract.objects}
        parts.readers |= {
            account
            for one in subscriptions
            if one.identity == contract.identity and (account := _account(one))
        }
    return [
        Domain(
            parts.domain,
            name,
            sorted(parts.databases),
            sorted(parts.folders),
            sorted(parts.markers),
            sorted(parts.readers),
        )
        for name, parts in found.items()
    ]


def _account(one: Subscription) -> str:
    """Who reads in AWS, or "": the account of a role, which a topic would not take before it is there."""
    return one.reader.split(":")[4] if one.reader.startswith("arn:") else one.reader
