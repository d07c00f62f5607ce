"""What `dq register` keeps in AWS besides tables: grants, schedules, the landing zone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from dq.contracts.extension import dataset
from dq.contracts.model import Contract
from dq.contracts.schedule import clock
from dq.contracts.shared.outcome import Unreadable, UsageError, suggestion
from dq.contracts.slo import NOT_IN_FORCE
from dq.contracts.subscriptions import Subscription
from dq.operations.catalog_tables import Governed
from dq.operations.runtime.context import World
from dq.operations.subscriptions import AgreedSubscriptions
from dq.registry.apply import Result
from dq.registry.diff import ActionKind, CatalogPlan
from dq.registry.landing_zone.template import Domain, LandingZone, template
from dq.registry.plan import limit
from dq.registry.scheduler.plan import service_of
from dq.registry.table import CONTRACT, CONTRACT_VERSION, OBJECT, OPEN_FORMATS, RETIRED, Key, TableSpec
from dq.store.engine import Store

if TYPE_CHECKING:
    from dq.registry.scheduler.plan import SchedulePlan, ScheduleTerms, WantedSchedules


# The schedules of EventBridge that `dq register` keeps, where settings name what they start.

_SCHEDULES = "Schedules"
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=,.@/-]+", re.ASCII)
_GROUP = re.compile(r"[0-9a-zA-Z._-]{1,64}", re.ASCII)
_QUEUE = re.compile(r"arn:aws[a-z-]*:sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,80}", re.ASCII)
_LONGEST_WINDOW = 1440
# Nights on which clocks change are compared this far ahead.
_AHEAD = timedelta(days=731)
_READY = (ActionKind.CREATE, ActionKind.UPDATE, ActionKind.NOOP, ActionKind.ADOPT, ActionKind.DRIFT)


def schedule_terms(world: World, catalog: str, registry: str) -> ScheduleTerms | None:
    """What the settings say of schedules; None where they name no target, and for another catalog than Glue.

    Raises UsageError for a setting that lacks or that AWS would not take.
    """
    settings = world.settings
    if not settings.schedule_target:
        return None
    from dq.registry.scheduler.plan import ScheduleTerms

    service_of(settings.schedule_target)
    forms = (
        ("schedule_role", settings.schedule_role, _ROLE, "the ARN of the role that starts the target"),
        ("schedule_group", settings.schedule_group, _GROUP, "the name of a schedule group"),
        ("schedule_dead_letters", settings.schedule_dead_letters or None, _QUEUE, "a standard queue's ARN"),
    )
    for name, text, form, wanted in forms:
        if text is not None and not form.fullmatch(text):
            raise UsageError(f"{name} is {text!r}, which is not {wanted}.", f"Set {name}.")
    minutes = settings.schedule_window_minutes
    if minutes > _LONGEST_WINDOW:
        raise UsageError(
            f"schedule_window_minutes is {minutes}, and AWS takes {_LONGEST_WINDOW} at most.",
            "Set fewer minutes, or 0 to start at the time itself.",
        )
    made = ScheduleTerms(
        registry,
        settings.schedule_target,
        settings.schedule_role,
        settings.schedule_group,
        settings.schedule_dead_letters,
        minutes,
    )
    return made if catalog == "glue" else None


def keep_schedules(
    world: World,
    terms: ScheduleTerms,
    contracts: Sequence[Contract],
    plan: CatalogPlan,
    results: Sequence[Result],
    store: Store,
    catalog_id: str,
    *,
    role: str,
    whole: bool,
    apply_it: bool,
    prune: bool,
    most: int | None,
) -> tuple[Governed, list[str]]:
    """Plans the schedules of promises, and applies that where asked; and gives why none is pruned."""
    from dq.registry.scheduler.client import connect_scheduler
    from dq.registry.scheduler.plan import ScheduleNotes, apply_schedules, plan_schedules, wanted_schedules

    in_force = [one for one in contracts if one.status not in NOT_IN_FORCE or one.status == RETIRED]
    wanted = wanted_schedules(in_force, terms.registry)
    notes = ScheduleNotes(store, catalog_id, terms.group, terms.registry)
    try:
        scheduler = connect_scheduler(role)
        made = plan_schedules(
            scheduler,
            terms,
            wanted,
            notes.all(),
            held={one.key for one in contracts if one not in in_force},
            waiting=_waiting(wanted, plan, results),
            whole=whole,
        )
    except Unreadable as error:
        # What became of the tables is told all the same.
        return Governed(_SCHEDULES, findings=wanted.findings, error=error), []
    count = len(made.orphans)
    allowed = limit(made.ours) if most is None else most
    unpruned = []
    if prune and count > allowed:
        said = f"{count} of {made.ours} schedules would go, and {allowed} may"
        unpruned.append(f"{said}; if they shall, say --prune-limit {count}")
    done = apply_schedules(scheduler, notes, terms, made, prune=prune and not unpruned) if apply_it else []
    told = (*made.notes, *_clock_changes(world, wanted, made))
    return Governed(_SCHEDULES, made.steps, told, done, wanted.findings, made.foreign), unpruned


def _waiting(wanted: WantedSchedules, plan: CatalogPlan, results: Sequence[Result]) -> set[str]:
    """The entries whose table is not as its contract says, or will not be after this run."""
    behind = {one.action.key for one in results if one.error is not None}
    ready = {
        tuple(action.wanted.parameter(name) for name in (CONTRACT, CONTRACT_VERSION, OBJECT))
        for action in plan.actions
        if action.wanted is not None and action.kind in _READY and action.key not in behind
    }
    return {
        name
        for name, slo in wanted.slos.items()
        if (slo.contract.id, slo.contract.version, slo.object.name) not in ready
    }


def _clock_changes(world: World, wanted: WantedSchedules, plan: SchedulePlan) -> Iterator[str]:
    """Of each promise that is scheduled anew, the first night on which EventBridge counts otherwise."""
    from dq.registry.scheduler.plan import RemoveSchedule, as_schedules

    written = [step.entry for step in plan.steps if not isinstance(step, RemoveSchedule)]
    for promise in dict.fromkeys(one.promise for one in written if one.enabled):
        entries = [one for one in wanted.entries.values() if one.promise == promise]
        slo, now = wanted.slos[entries[0].name], world.now()
        other = next(clock.differences([slo.schedule], as_schedules(entries), now, now + _AHEAD), None)
        if other is not None:
            extra = "starts it" if other.first is None else "does not start it"
            yield f"{promise}: on {other.at:%Y-%m-%d %H:%M}Z, when clocks change, EventBridge {extra}."


# What `dq register` keeps in Lake Formation, where the operator's settings say so.

_LAKE_FORMATION = "Lake Formation"
PARTS = ("locations", "tags", "grants")
# Of these, the table is not there or not ours.
_NOT_OURS = (ActionKind.CONFLICT, ActionKind.WAIT)


def kept_parts(world: World, catalog: str) -> tuple[str, ...]:
    """The parts of Lake Formation that the settings keep in step; none for another catalog than Glue.

    Raises UsageError for a part that there is not, and for one that lacks a setting.
    """
    parts = world.settings.lake_formation
    for one in parts:
        if one not in PARTS:
            mend = suggestion(one, PARTS, f"Choose from {', '.join(PARTS)}.")
            raise UsageError(f"lake_formation names {one!r}, which dq does not keep.", mend)
    if "locations" in parts and not (
        world.settings.lake_formation_locations and world.settings.lake_formation_role
    ):
        raise UsageError(
            "lake_formation keeps locations, and nobody says which.",
            "Set lake_formation_locations and lake_formation_role.",
        )
    return parts if catalog == "glue" else ()


def govern(
    world: World,
    agreed: AgreedSubscriptions,
    contracts: Sequence[Contract],
    plan: CatalogPlan,
    results: Sequence[Result],
    store: Store,
    catalog_id: str,
    *,
    role: str,
    account: str,
    apply_it: bool,
) -> Governed:
    """Plans Lake Formation for the tables of a plan of the catalog, and applies it where asked."""
    from dq.registry.lake_formation.client import connect_lake
    from dq.registry.lake_formation.desired import wanted_grants, wanted_tags
    from dq.registry.lake_formation.plan import LakeTerms, apply_lake, plan_lake

    settings, today = world.settings, world.now().date()
    parts = settings.lake_formation
    behind = frozenset(one.action.key for one in results if one.error is not None)
    tables = _tables(plan)
    wanted = {key: spec for key, spec in tables.items() if key not in {one.key for one in plan.orphans}}
    current = {key: spec for key, spec in wanted.items() if key not in behind}
    over = [one for one in agreed.subscriptions if one.over(today)]
    terms = LakeTerms(
        {key: spec.location for key, spec in tables.items()},
        locations=settings.lake_formation_locations if "locations" in parts else None,
        role=settings.lake_formation_role,
        tag=settings.lake_formation_tag,
        tags=wanted_tags(contracts, current) if "tags" in parts else None,
        grants=wanted_grants(agreed.subscriptions, contracts, wanted, today) if "grants" in parts else None,
        ended=wanted_grants(over, contracts, wanted),
        unclear=agreed.unclear,
        behind=behind,
    )
    try:
        lake = connect_lake(role, account, catalog_id.split(":")[1])
        made = plan_lake(lake, store, catalog_id, terms)
    except Unreadable as error:
        # What became of the tables is told all the same.
        return Governed(_LAKE_FORMATION, findings=agreed.findings, error=error)
    done = apply_lake(lake, store, catalog_id, made) if apply_it else []
    return Governed(_LAKE_FORMATION, made.steps, made.notes, done, agreed.findings)


def _tables(plan: CatalogPlan) -> dict[Key, TableSpec]:
    """The tables that are ours, or will be, as the plan has them."""
    found: dict[Key, TableSpec] = {}
    for action in plan.actions:
        spec = action.wanted or (action.before.spec if action.before else None)
        if spec is not None and action.kind not in _NOT_OURS:
            found[action.key] = spec
    return found


# `dq register --emit-landing-zone`: the stack that these contracts and settings ask of an account.

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
