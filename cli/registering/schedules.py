"""The schedules of EventBridge that `dq register` keeps, where settings name what they start."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from dq.cli.loading.contracts import NOT_IN_FORCE
from dq.cli.registering.governed import Governed
from dq.cli.world.environment import World
from dq.contracts.model import Contract
from dq.contracts.schedule import convert
from dq.contracts.shared.outcome import Unreadable, UsageError
from dq.registry.apply import Result
from dq.registry.diff import ActionKind, CatalogPlan
from dq.registry.plan import limit
from dq.registry.table import CONTRACT, CONTRACT_VERSION, OBJECT, RETIRED
from dq.store.engine import Store

if TYPE_CHECKING:
    from dq.registry.scheduler.plan import SchedulePlan, ScheduleTerms, WantedSchedules

_NAME = "Schedules"
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
    from dq.registry.scheduler.plan import ScheduleTerms, service_of

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
        return Governed(_NAME, findings=wanted.findings, error=error), []
    count = len(made.orphans)
    allowed = limit(made.ours) if most is None else most
    unpruned = []
    if prune and count > allowed:
        said = f"{count} of {made.ours} schedules would go, and {allowed} may"
        unpruned.append(f"{said}; if they shall, say --prune-limit {count}")
    done = apply_schedules(scheduler, notes, terms, made, prune=prune and not unpruned) if apply_it else []
    told = (*made.notes, *_clock_changes(world, wanted, made))
    return Governed(_NAME, made.steps, told, done, wanted.findings, made.foreign), unpruned


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
        other = next(convert.differences([slo.schedule], as_schedules(entries), now, now + _AHEAD), None)
        if other is not None:
            extra = "starts it" if other.first is None else "does not start it"
            yield f"{promise}: on {other.at:%Y-%m-%d %H:%M}Z, when clocks change, EventBridge {extra}."
