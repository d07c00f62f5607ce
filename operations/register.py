"""`dq.register`: a catalog made as the contracts say: tables, and in AWS grants and schedules."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dq.contracts.access.data_location import DataPlace, is_lake, resolve, server_in, server_of
from dq.contracts.access.files import POLICY_FILE, FileRefused, read, write
from dq.contracts.extension import dataset
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import (
    DqError,
    Finding,
    Location,
    Severity,
    Unreadable,
    UsageError,
    counted,
    first_of,
    suggestion,
)
from dq.contracts.schedule import clock
from dq.contracts.slo import NOT_IN_FORCE
from dq.contracts.subscriptions import Subscription
from dq.contracts.subscriptions import read as read_subscription
from dq.contracts.yaml.parse import parse
from dq.operations.gate import policy_of, written
from dq.operations.key_ownership import settled
from dq.operations.registry_files import RULE, Loaded, each, load
from dq.operations.runtime.context import World, called, is_root, located, registry_root
from dq.operations.runtime.spark import opened
from dq.operations.subscriptions import AgreedSubscriptions, gathered
from dq.registry.catalog import (
    Action,
    ActionKind,
    Catalog,
    CatalogPlan,
    Grade,
    PlanStep,
    SchemaJudge,
    StepResult,
    TableChange,
)
from dq.registry.landing_zone import Domain, LandingZone, template
from dq.registry.plan import Logged, RegisterRun, Result, WholeRegistry, apply, latest, limit, propose, recall
from dq.registry.schedules import service_of
from dq.registry.table import (
    CONTRACT,
    CONTRACT_VERSION,
    OBJECT,
    OPEN_FORMATS,
    RETIRED,
    Key,
    TableSpec,
    UnsayableTerms,
    specs,
)
from dq.store.engine import Store
from dq.validators.compat.classification import Mode, Verdict
from dq.validators.compat.classified_change import Aspect, Judged
from dq.validators.git.repository import remote_name
from dq.validators.lint import Gate, judge_subscriptions, rules_of
from dq.validators.policy.policy import Policy

if TYPE_CHECKING:
    from dq.registry.schedules import SchedulePlan, ScheduleTerms, WantedSchedules


# What `dq register` keeps beside the tables of a catalog: steps, results, and how they are shown.


@dataclass(frozen=True, slots=True)
class Governed:
    """The steps towards what contracts and subscriptions say, what became of them, and what keeps others out.

    `name` is of what is governed, such as `Lake Formation`. `refused` is what is not ours to touch.
    """

    name: str
    steps: Sequence[PlanStep] = ()
    notes: Sequence[str] = ()
    results: Sequence[StepResult[PlanStep]] = ()
    findings: Sequence[Finding] = ()
    refused: Sequence[str] = ()
    error: DqError | None = None

    @property
    def failed(self) -> bool:
        blocking = any(one.severity.blocks for one in self.findings)
        return bool(blocking or self.refused or self.error) or any(one.error for one in self.results)


def governed_lines(governed: Governed) -> list[str]:
    """A line for each step and each note."""
    notes = [f"! {note}" for note in (*governed.refused, *governed.notes)]
    return [*map(str, governed.steps), *notes, *([str(governed.error)] if governed.error else [])]


def governed_as_dict(governed: Governed) -> Mapping[str, object]:
    """The same for machines."""
    endings = {one.step: one for one in governed.results}
    return {
        "steps": [
            {
                "kind": step.kind,
                "what": str(step),
                "ending": None if step not in endings else "failed" if endings[step].error else "done",
                "error": str(endings[step].error) if step in endings and endings[step].error else None,
            }
            for step in governed.steps
        ],
        "notes": [*governed.refused, *governed.notes],
        "error": str(governed.error) if governed.error else None,
    }


# What a catalog cannot make of a contract's table, as findings at the contract's own lines.


def hindrances(plan: CatalogPlan, contracts: Iterable[Contract]) -> Iterator[Finding]:
    """One finding for each obstacle of the plan, at the column, else at the object, that asks for it."""
    by_name = {(one.id, one.version): one for one in contracts}
    for action in plan.actions:
        for obstacle in action.obstacles:
            assert action.wanted is not None
            name = action.wanted.parameter(CONTRACT), action.wanted.parameter(CONTRACT_VERSION)
            if name not in by_name:
                # What was applied last may be of a version that is no more; the plan says it.
                continue
            contract = by_name[name]
            at = _at(contract, action.wanted, obstacle.column)
            table = ".".join(action.key)
            said = f"{table}: {obstacle.why}"
            yield Finding(RULE, Severity.ERROR, said, obstacle.mend, at, contract=contract.id)


def _at(contract: Contract, spec: TableSpec, column: str) -> Location:
    objects: Iterator[SchemaObject] = (one for one in contract.objects if one.name == spec.parameter(OBJECT))
    one = next(objects, None)
    if one is None:
        return contract.at()
    return next((prop.at() for prop in one.properties if prop.column.lower() == column), one.at())


# What a change of a table's columns means, in the words of `dq diff` for the same change of a contract.

_TABLE = "t"
# The files that are there lack a new column, and catalogs read it as NULL: no reader breaks.
_READABLE = frozenset({"column-added-required"})


def schema_judge(today: date) -> SchemaJudge:
    """The judge for a plan: what is a break there is breaking here, and all else is additive.

    The files that are there are read through the new columns too, so the mode is FULL; the engines are the
    usual ones, for a table does not say who reads it. Columns are compared as a whole, with their places:
    in some formats a place is the identity of a column.
    """

    def judge(live: TableSpec, wanted: TableSpec) -> dict[str, tuple[Grade, str]]:
        # All that judges changes takes time to load, and most plans change no column.
        from dq.validators.compat.comparison import DiffTerms, diff

        terms = DiffTerms(today, Mode.FULL, format=wanted.format)
        worst: dict[str, Judged] = {}
        for change in diff(_contract(live, wanted), _contract(wanted, wanted), terms).of(
            Aspect.COMPATIBILITY
        ):
            column = change.path.partition(".")[2]
            if column not in worst or worst[column].verdict.rank < change.verdict.rank:
                worst[column] = change
        return {column: (_grade(change), _rule(change)) for column, change in worst.items()}

    return judge


def _grade(change: Judged) -> Grade:
    breaks = change.verdict is Verdict.BREAK and change.rule not in _READABLE
    return Grade.BREAKING if breaks else Grade.ADDITIVE


def _rule(change: Judged) -> str:
    return f"{change.rule}: {change.note.rstrip('.')}" if change.note else change.rule


def _contract(spec: TableSpec, promises: TableSpec) -> Contract:
    """A contract of the table's columns behind one that is always there.

    No catalog knows which columns are required, so both sides of a comparison have that from `promises`.
    """
    columns: list[dict[str, object]] = [{"name": "__first", "physicalType": "int"}]
    for column in spec.columns:
        promise = promises.column(column.name)
        required = {"required": True} if promise is not None and promise.promised else {}
        columns.append({"name": column.name, "physicalType": column.type, **required})
    document = {
        "apiVersion": "v3.2.0",
        "kind": "DataContract",
        "id": _TABLE,
        "version": "1.0.0",
        "status": "active",
        "schema": [{"name": _TABLE, "properties": columns}],
    }
    contract = parse(json.dumps(document).encode(), "t.json").contract
    assert contract is not None
    return contract


# A plan kept in a file: what was seen and agreed on is applied, and what has moved since is not.

_FORM = "dq register plan 1"


def save(file: Path, plan: CatalogPlan, registry: str, catalog: str) -> None:
    """Writes down what the plan would do to which state of each table."""
    document = {
        "form": _FORM,
        "registry": registry,
        "catalog": catalog,
        "actions": {".".join(action.key): _row(action) for action in plan.actions if action.writes},
    }
    write(file, (json.dumps(document, indent=2, sort_keys=True) + "\n").encode())


def agreed(file: Path, plan: CatalogPlan, registry: str, catalog: str) -> tuple[CatalogPlan, list[DqError]]:
    """Of a plan that was made now, what the file says as well, and an error for each table that differs.

    A table that is as it should be by now is no difference. Raises UsageError for a file that is no plan, or
    one for another registry or catalog.
    """
    wanted = _actions(file, registry, catalog)
    kept: list[Action] = []
    stale: list[DqError] = []
    for action in plan.actions:
        if not action.writes or wanted.get(".".join(action.key)) == _row(action):
            kept.append(action)
        else:
            known = ".".join(action.key) in wanted
            stale.append(_stale(action, "it has moved since" if known else "it is not in the plan"))
    return replace(plan, actions=tuple(kept)), stale


def _row(action: Action) -> dict[str, str]:
    return {"kind": action.kind, "grade": action.grade, "does": action.fingerprint}


def _stale(action: Action, why: str) -> DqError:
    return DqError(f"{'.'.join(action.key)}: {why}, so it is left alone.", "Make the plan anew with --out.")


def _actions(file: Path, registry: str, catalog: str) -> dict[str, Any]:
    try:
        document = json.loads(read(file))
    except ValueError as error:
        raise UsageError(f"{file} is no JSON.", _MEND) from error
    if not isinstance(document, dict) or document.get("form") != _FORM:
        raise UsageError(f"{file} is no plan of this version of dq.", _MEND)
    for what, here in (("registry", registry), ("catalog", catalog)):
        if document.get(what) != here:
            there = document.get(what)
            raise UsageError(f"{file} is a plan for the {what} {there!r}, and this is {here!r}.", _MEND)
    actions = document.get("actions")
    return actions if isinstance(actions, dict) else {}


_MEND = "Make it with: dq register … --out plan.json"


# Whether a run may say which tables no contract wants: only when it has read and understood them all.

# In force, or known not to be; of any other word nobody knows what it means for the tables.
_STATUSES = (None, "active", "deprecated", *NOT_IN_FORCE)
_NAMED = 3

Specify = Callable[[Contract, str | None], list[TableSpec]]
"""The tables that a contract wants on a server. Raises DqError where that cannot be told."""


ServerOf = Callable[[Contract], str | None]
"""The server of a contract that is registered: None for its only one. Raises UsageError where it is open."""


def doubts(paths: Sequence[Path], loaded: Loaded, findings: Sequence[Finding]) -> list[str]:
    """Why nobody can say which tables are orphans; empty when all of the registry is understood."""
    found = [reason for reason in (_not_whole(paths),) if reason]
    broken = list(dict.fromkeys(finding.at.file for finding in findings))
    if broken:
        count = counted(len(broken), "contract")
        found.append(f"{count} could not be read or registered: {first_of(broken, _NAMED)}")
    found += [
        f"{one.at('status')}: nobody knows what status {one.status!r} means"
        for one in loaded.contracts
        if one.status not in _STATUSES
    ]
    return found


def _not_whole(paths: Sequence[Path]) -> str:
    if len(paths) != 1:
        return f"{len(paths)} paths were named, and only one can be the whole registry"
    (path,) = paths
    root = registry_root(path)
    if not is_root(root):
        return f"nothing says where the registry begins: {root} holds neither {POLICY_FILE} nor .git"
    # pathlib raises for links that lead to each other.
    if Path(os.path.realpath(path)) != root:
        return f"{path} is not the whole registry, which begins at {root}"
    return ""


def whole(
    registry: str, contracts: Sequence[Contract], server_of: ServerOf, specify: Specify
) -> WholeRegistry:
    """The registry, with the tables that stay although this run does not want them.

    Those of contracts that are not in force or have no object now, and those that a contract has on
    another of its servers.
    """
    held: dict[Key, str] = {}
    by_contract: dict[str, str] = {}
    for contract in contracts:
        if contract.status in NOT_IN_FORCE:
            by_contract[contract.id] = f"Contract {contract.id!r} is {contract.status}, and its tables stay."
        elif not contract.objects:
            by_contract[contract.id] = f"Contract {contract.id!r} has no schema, and its tables stay."
        elif (server := server_of(contract)) is not None:
            for other in contract.servers:
                if other.server != server and is_lake(other):
                    _elsewhere(contract, other.server, specify, held, by_contract)
    return WholeRegistry(registry, held, by_contract)


def _elsewhere(
    contract: Contract, server: str, specify: Specify, held: dict[Key, str], by_contract: dict[str, str]
) -> None:
    try:
        specs = specify(contract, server)
    except DqError as error:
        by_contract[contract.id] = f"What contract {contract.id!r} has on {server!r} cannot be told: {error}"
        return
    held |= {spec.key: f"Contract {contract.id!r} has it on server {server!r}." for spec in specs}


# The tables that contracts want of a catalog, and what keeps a contract out.


def applied_last(world: World, wanted: Iterable[TableSpec], store: Store, catalog: str) -> list[TableSpec]:
    """What dq applied last to these tables, as far as the store remembers."""
    applied = recall(store, catalog)
    wanted = list(wanted)
    unknown = sum(spec.key not in applied for spec in wanted)
    if unknown:
        world.note(f"this store remembers nothing of {unknown} of {len(wanted)} tables.")
    return [applied[spec.key] for spec in wanted if spec.key in applied]


def tables(
    world: World, contracts: Iterable[Contract], server_of: ServerOf, specify: Specify
) -> tuple[list[TableSpec], list[Finding]]:
    """The tables that these contracts want, and what is wrong with those that cannot be registered.

    Drafts want none. Retired ones want no more than that theirs say so, where no contract in force wants
    the same table; what cannot be told of them is nobody's fault.
    """
    in_force, retired = [], []
    for contract in contracts:
        if contract.status == RETIRED:
            world.note(f"{contract.id} is retired: its tables stay, and say so.")
            retired.append(contract)
        elif contract.status in NOT_IN_FORCE:
            world.note(f"{contract.id} is {contract.status}, so it is not registered.")
        else:
            in_force.append(contract)
    found, refused = each(in_force, lambda one: one, lambda one: specify(one, server_of(one)))
    over, _ = each(retired, lambda one: one, lambda one: specify(one, server_of(one)))
    wanted = [spec for specs in found for spec in specs]
    taken = {spec.key for spec in wanted}
    return wanted + [spec for specs in over for spec in specs if spec.key not in taken], refused


def specified(
    world: World, registry: str, catalog: str, target: Catalog | None, contract: Contract, server: str | None
) -> list[TableSpec]:
    """The tables that a contract wants on a server. Raises UsageError where the target cannot have them."""

    def place(one: SchemaObject) -> DataPlace:
        return located(world, resolve(contract, one, server, world.reach), catalog)

    made = specs(contract, place, registry)
    for spec, one in zip(made, contract.objects, strict=True):
        try:
            if target is not None:
                target.vet(spec)
        except UnsayableTerms as error:
            at = server_of(contract, place(one).server).at()
            raise UsageError(error.what, error.mend, error.details, at=at) from error
        except UsageError as error:
            raise UsageError(error.what, error.mend, error.details, at=one.at()) from error
    return made


# What a registry is called in catalogs: the mark by which dq knows its tables again.


def registry_name(root: Path) -> str:
    """The policy's `registry`, else the remote `origin` of the Git repository, else the folder's name.

    The first two are the same in every checkout. Raises UsageError for a policy that cannot be understood.
    """
    return _policy(root).registry or remote_name(root) or root.name


def server_choice(
    root: Path, server: str | None, environment: str | None
) -> Callable[[Contract], str | None]:
    """Which server of a contract is meant: this one, that of the environment, else its only one.

    The environment's odd servers are those of the policy. Raises UsageError for both at once and as
    `registry_name`, and what it gives does as `server_in`.
    """
    if environment is None:
        return lambda _: server
    if server is not None:
        raise UsageError("--server and --env both say which server.", "Choose one of the two.")
    named = _policy(root).servers.get(environment, {})
    return lambda contract: server_in(contract, environment, named)


def _policy(root: Path) -> Policy:
    return policy_of(written(root, None), rules_of())


# The subscriptions that may be acted on, for commands that give access by them.

EXPIRED = "subscription-expired"


def approved_subscriptions(world: World, root: Path, ids: Collection[str]) -> AgreedSubscriptions:
    """The subscriptions of a registry as the gate sees them now; `ids` are those of its contracts."""
    given, today = gathered(root, [root])(ids), world.now().date()
    judged = judge_subscriptions(Gate(rules_of(), _policy(root), today), given, ids)
    # A policy may make an error of it; it is acted on all the same.
    findings = tuple(one for one in judged if one.severity.blocks and one.rule != EXPIRED)
    wrong = {one.at.file for one in findings}
    found: list[Subscription] = []
    unclear: set[str] = set()
    for file, data in given.files.items():
        made, form = (None, []) if isinstance(data, FileRefused) else read_subscription(data, file)
        typed = made is not None and not any(one.severity.blocks for one in form)
        # One that is over is over, whatever else is wrong with it.
        if made is not None and typed and (file not in wrong or made.over(today)):
            found.append(made)
        else:
            unclear.add(file)
    return AgreedSubscriptions(tuple(found), findings, frozenset(unclear))


@dataclass(frozen=True, slots=True)
class TablesRun:
    """A run of `dq register` whose tables are planned, and applied where that was asked for."""

    world: World
    store: Store
    request: RegisterRequest
    catalog_id: str
    contracts: Sequence[Contract]
    plan: CatalogPlan
    results: Sequence[Result]

    @property
    def behind(self) -> frozenset[Key]:
        """The tables that could not be made as their contracts say."""
        return frozenset(result.action.key for result in self.results if result.error is not None)


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
    from dq.registry.schedules import ScheduleTerms

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


def keep_schedules(run: TablesRun, terms: ScheduleTerms, *, whole: bool) -> tuple[Governed, list[str]]:
    """Plan the schedules of promises, and apply that where asked; and give why none is pruned.

    Without the `whole` registry none is pruned.
    """
    from dq.registry.aws.scheduler import connect_scheduler
    from dq.registry.schedules import ScheduleNotes, apply_schedules, plan_schedules, wanted_schedules

    request, contracts = run.request, run.contracts
    in_force = [one for one in contracts if one.status not in NOT_IN_FORCE or one.status == RETIRED]
    wanted = wanted_schedules(in_force, terms.registry)
    notes = ScheduleNotes(run.store, run.catalog_id, terms.group, terms.registry)
    try:
        scheduler = connect_scheduler(request.role_arn)
        made = plan_schedules(
            scheduler,
            terms,
            wanted,
            notes.all(),
            held={one.key for one in contracts if one not in in_force},
            waiting=_waiting(wanted, run),
            whole=whole,
        )
    except Unreadable as error:
        # What became of the tables is told all the same.
        return Governed(_SCHEDULES, findings=wanted.findings, error=error), []
    prune = request.prune and whole
    unpruned = _too_many("schedules", len(made.orphans), made.ours, request.prune_limit) if prune else []
    prune = prune and not unpruned
    done = apply_schedules(scheduler, notes, terms, made, prune=prune) if request.apply else []
    told = (*made.notes, *_clock_changes(run.world, wanted, made))
    return Governed(_SCHEDULES, made.steps, told, done, wanted.findings, made.foreign), unpruned


def _waiting(wanted: WantedSchedules, run: TablesRun) -> set[str]:
    """The entries whose table is not as its contract says, or will not be after this run."""
    ready = {
        tuple(action.wanted.parameter(name) for name in (CONTRACT, CONTRACT_VERSION, OBJECT))
        for action in run.plan.actions
        if action.wanted is not None and action.kind in _READY and action.key not in run.behind
    }
    return {
        name
        for name, slo in wanted.slos.items()
        if (slo.contract.id, slo.contract.version, slo.object.name) not in ready
    }


def _clock_changes(world: World, wanted: WantedSchedules, plan: SchedulePlan) -> Iterator[str]:
    """Of each promise that is scheduled anew, the first night on which EventBridge counts otherwise."""
    from dq.registry.schedules import RemoveSchedule, as_schedules

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


def govern(run: TablesRun, agreed: AgreedSubscriptions) -> Governed:
    """Plan Lake Formation for the tables of a plan of the catalog, and apply it where asked."""
    from dq.registry.aws.lake_formation import (
        LakeNotes,
        LakeTerms,
        apply_lake,
        connect_lake,
        plan_lake,
        wanted_grants,
        wanted_tags,
    )

    settings, today = run.world.settings, run.world.now().date()
    parts, contracts, request = settings.lake_formation, run.contracts, run.request
    tables, orphans = _tables(run.plan), {action.key for action in run.plan.orphans}
    wanted = {key: spec for key, spec in tables.items() if key not in orphans}
    current = {key: spec for key, spec in wanted.items() if key not in run.behind}
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
        behind=run.behind,
    )
    notes = LakeNotes(run.store, run.catalog_id)
    try:
        lake = connect_lake(request.role_arn, request.catalog_id, run.catalog_id.split(":")[1])
        made = plan_lake(lake, notes, terms)
    except Unreadable as error:
        # What became of the tables is told all the same.
        return Governed(_LAKE_FORMATION, findings=agreed.findings, error=error)
    done = apply_lake(lake, notes, made) if request.apply else []
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
    by_domain: dict[str, list[Contract]] = {}
    for contract in contracts:
        domain = (contract.domain or "") if "{domain}" in form else ""
        if "{domain}" in form and not domain:
            # Nobody hears of what it publishes.
            continue
        if not _TOPIC_NAME.fullmatch(form.replace("{domain}", domain)):
            raise UsageError(
                f"contract {contract.id!r}: its domain cannot stand in the name of a topic, {form}.",
                "Write letters, digits, hyphens and underscores in 'domain'.",
                at=contract.at("domain"),
            )
        by_domain.setdefault(domain, []).append(contract)
    found = []
    for domain, published in by_domain.items():
        identities = {contract.identity for contract in published}
        specs = [
            (contract, spec)
            for contract in published
            for spec in by_contract.get((contract.id, contract.version), ())
        ]
        marked = [contract for contract, spec in specs if spec.format not in OPEN_FORMATS]
        found.append(
            Domain(
                domain,
                form.replace("{domain}", domain),
                databases=sorted({spec.database for _, spec in specs}),
                folders=sorted({spec.location for _, spec in specs if re.match("s3[an]?://", spec.location)}),
                markers=sorted({dataset(one)[0].marker for contract in marked for one in contract.objects}),
                readers=sorted({_account(one) for one in subscriptions if one.identity in identities} - {""}),
            )
        )
    return found


def _account(one: Subscription) -> str:
    """Who reads in AWS, or "": the account of a role, which a topic would not take before it is there."""
    return one.reader.split(":")[4] if one.reader.startswith("arn:") else one.reader


@dataclass(frozen=True, slots=True)
class RegisterRequest:
    """Which contracts are registered where, and what may be done.

    `catalog` is `local`, `hive`, `glue` or `iceberg`; `role_arn` and `catalog_id` name another account's in
    AWS. `server` or `environment` choose among the servers of a contract. `apply` makes the catalog so;
    `adopt` takes over tables that are nobody's, `prune` removes ours that no contract wants, at most
    `prune_limit` of them. `allow` are the grades of changes that may be made besides harmless ones. `out`
    keeps the plan in a file, `plan` applies such a file. `refresh_only` compares with what was applied last.
    """

    paths: tuple[Path, ...] = (Path(),)
    apply: bool = False
    catalog: str = "local"
    role_arn: str = ""
    catalog_id: str = ""
    server: str | None = None
    environment: str | None = None
    adopt: bool = False
    prune: bool = False
    prune_limit: int | None = None
    allow: frozenset[Grade] = frozenset()
    out: Path | None = None
    plan: Path | None = None
    refresh_only: bool = False

    def refuse_together(self) -> None:
        """Raises UsageError for what excludes each other, in the words of the command line."""
        if self.refresh_only and (self.apply or self.adopt or self.prune or self.out or self.plan):
            raise UsageError("--refresh-only writes nothing.", "Leave the other options out.")
        if self.plan is not None and not self.apply:
            raise UsageError("--plan says what --apply may do.", "Add --apply.")
        if self.plan is not None and self.out is not None:
            raise UsageError("--out keeps a plan, and --plan applies one.", "Choose one of the two.")
        if self.prune_limit is not None and self.prune_limit < 0:
            raise UsageError(f"--prune-limit {self.prune_limit} is below 0.", "Give 0 or more.")


@dataclass(frozen=True, slots=True)
class RegisterOutcome:
    """The plan for the tables of a catalog, and what became of it.

    `results` are those of the plan's actions, none where nothing was to be applied. `governed` is what is
    kept in AWS besides tables. `findings` are contracts that could not be registered. `unclear` is why it is
    not known which tables no contract wants, `unpruned` why nothing was pruned although it was asked for.
    `stale` is what has moved since the plan was kept.
    """

    plan: CatalogPlan
    results: tuple[Result, ...] = ()
    governed: tuple[Governed, ...] = ()
    findings: tuple[Finding, ...] = ()
    unclear: tuple[str, ...] = ()
    unpruned: tuple[str, ...] = ()
    stale: tuple[DqError, ...] = ()
    applied: bool = False
    notes: tuple[str, ...] = ()

    @property
    def pending(self) -> bool:
        """Whether there are changes, applied or not."""
        actions = any(action.writes for action in self.plan.actions)
        return actions or any(governed.steps for governed in self.governed)

    @property
    def exit_code(self) -> int:
        """0, or 3 where something was refused, is not ours to touch, has moved, or could not be read."""
        beside = {finding for governed in self.governed for finding in governed.findings}
        refused = any(finding not in beside for finding in self.findings)
        failed = any(governed.failed for governed in self.governed)
        wrong = self.unpruned or refused or self.stale or self.plan.conflicts or failed
        return 3 if wrong or any(result.error is not None for result in self.results) else 0

    def as_dict(self) -> dict[str, object]:
        """What `dq register --format json` prints."""
        return {
            **plan_as_dict(self.plan, self.results),
            **{
                governed.name.lower().replace(" ", "_"): governed_as_dict(governed)
                for governed in self.governed
            },
            "orphans": {"judged": not self.unclear, "reasons": list(self.unclear or self.unpruned)},
            "findings": [finding.as_dict() for finding in self.findings],
        }


def register(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    apply: bool = False,
    catalog: str = "local",
    role_arn: str = "",
    catalog_id: str = "",
    server: str | None = None,
    environment: str | None = None,
    adopt: bool = False,
    prune: bool = False,
    prune_limit: int | None = None,
    allow_breaking: bool = False,
    allow_destructive: bool = False,
    out: Path | str | None = None,
    plan: Path | str | None = None,
    refresh_only: bool = False,
    folder: Path | str | None = None,
) -> RegisterOutcome:
    """What a catalog lacks to be as the contracts say; with `apply`, it is made so, as `dq register` does.

    `folder` stands for the working folder, where settings and store are, and from which relative paths lead.
    The other arguments are those of `RegisterRequest`, and each is the option of that name.

    Raises UsageError for what does not fit or excludes each other, MissingTool where the catalog's packages
    are not installed, and Unreadable for a path without contracts. What is wrong with a contract or a table
    is in the outcome.
    """
    world, places = called(paths, folder)
    request = RegisterRequest(
        places,
        apply,
        catalog,
        role_arn,
        catalog_id,
        server,
        environment,
        adopt,
        prune,
        prune_limit,
        allowed(allow_breaking, allow_destructive),
        world.folder / out if out is not None else None,
        world.folder / plan if plan is not None else None,
        refresh_only,
    )
    with closing(world.store()) as store:
        outcome = run(world, store, request)
    return replace(outcome, notes=tuple(world.messages.notes))


def run(world: World, store: Store, request: RegisterRequest) -> RegisterOutcome:
    """The operation itself. Raises as `register`."""
    request.refuse_together()
    root = registry_root(request.paths[0])
    registry, server_of = registry_name(root), server_choice(root, request.server, request.environment)
    parts = kept_parts(world, request.catalog)
    timing = schedule_terms(world, request.catalog, registry)
    loaded = settled(world, store, load(request.paths, world.note))
    target = opened(world, store, request.catalog, request.role_arn, request.catalog_id)
    specify = partial(specified, world, registry, request.catalog, target)
    wanted, refused = tables(world, loaded.contracts, server_of, specify)
    findings = [*loaded.findings, *refused]
    unclear = doubts(request.paths, loaded, findings)
    all_of_it = None if unclear else whole(registry, loaded.contracts, server_of, specify)
    if request.refresh_only:
        wanted, all_of_it = applied_last(world, wanted, store, target.id), None
    judge = schema_judge(world.now().date())
    plan = propose(target, wanted, store, adopt=request.adopt, whole=all_of_it, judge=judge)
    findings += hindrances(plan, loaded.contracts)
    if request.out is not None:
        save(request.out, plan, registry, target.id)
    stale: list[DqError] = []
    if request.plan is not None:
        plan, stale = agreed(request.plan, plan, registry, target.id)
    unpruned = []
    if request.prune:
        unpruned = unclear or _too_many("tables", len(plan.orphans), plan.ours, request.prune_limit)
    results: list[Result] = []
    if request.apply:
        results = apply(
            target,
            plan,
            store,
            allow=request.allow,
            prune=request.prune and not unpruned,
            run=RegisterRun(str(uuid.uuid4()), world.now(), registry),
        )
    governed: list[Governed] = []
    whole_plan = not request.refresh_only and request.plan is None
    tables_run = TablesRun(world, store, request, target.id, loaded.contracts, plan, results)
    if parts and whole_plan:
        # Without grants, nothing is asked of who subscribes.
        ids = {contract.id for contract in loaded.contracts}
        agreeing = approved_subscriptions(world, root, ids) if "grants" in parts else AgreedSubscriptions()
        governed.append(govern(tables_run, agreeing))
    if timing is not None and whole_plan:
        scheduled, kept = keep_schedules(tables_run, timing, whole=not unclear)
        governed.append(scheduled)
        unpruned = [*unpruned, *kept]
    if (parts or timing is not None) and not whole_plan:
        world.note("only the tables are looked at: a kept plan and --refresh-only are about nothing else.")
    return RegisterOutcome(
        plan,
        tuple(results),
        tuple(governed),
        (*findings, *(finding for part in governed for finding in part.findings)),
        tuple(unclear),
        tuple(unpruned),
        tuple(stale),
        applied=request.apply,
    )


def changes(world: World, store: Store, request: RegisterRequest, most: int) -> Sequence[Logged]:
    """The last changes, at most so many, that runs made to the catalog, oldest first."""
    target = opened(world, store, request.catalog, request.role_arn, request.catalog_id)
    return latest(store, target.id, most)


@dataclass(frozen=True, slots=True)
class LandingZoneOutcome:
    """A stack of CloudFormation; None where a contract or a subscription is refused: it would lack names."""

    stack: Mapping[str, object] | None
    findings: tuple[Finding, ...]


def emit_landing_zone(world: World, store: Store, request: RegisterRequest) -> LandingZoneOutcome:
    """What an account needs so that `dq register` can work in it, from contracts and subscriptions alone."""
    root = registry_root(request.paths[0])
    server_of = server_choice(root, request.server, request.environment)
    loaded: Loaded = settled(world, store, load(request.paths, world.note))
    specify = partial(specified, world, registry_name(root), "glue", None)
    wanted, refused = tables(world, loaded.contracts, server_of, specify)
    approved = approved_subscriptions(world, root, {contract.id for contract in loaded.contracts})
    findings = (*loaded.findings, *refused, *approved.findings)
    if findings:
        return LandingZoneOutcome(None, findings)
    return LandingZoneOutcome(landing_zone(world, loaded.contracts, wanted, approved.subscriptions), ())


def allowed(breaking: bool, destructive: bool) -> frozenset[Grade]:
    """The grades of changes that may be made."""
    grades = {Grade.BREAKING: breaking, Grade.DESTRUCTIVE: destructive}
    return frozenset(grade for grade, permitted in grades.items() if permitted)


def _too_many(what: str, count: int, ours: int, most: int | None) -> list[str]:
    """Why so many of ours may not go, if so; `most` is how many may, by default as `limit` says."""
    most = limit(ours) if most is None else most
    if count <= most:
        return []
    return [f"{count} of {ours} {what} would go, and {most} may; if they shall, say --prune-limit {count}"]


def plan_as_dict(plan: CatalogPlan, results: Sequence[Result]) -> dict[str, object]:
    """The plan and its results for machines."""
    # Several actions may be about one table, where several contracts want it.
    endings: list[Result | None] = [*results] or [None] * len(plan.actions)
    return {
        "actions": [
            {
                "table": ".".join(action.key),
                "kind": action.kind,
                "grade": action.grade,
                "note": action.note,
                "changes": [_changed(change) for change in action.changes],
                "ending": result.ending if result else None,
                "error": str(result.error) if result and result.error else None,
            }
            for action, result in zip(plan.actions, endings, strict=True)
        ]
    }


def _changed(change: TableChange) -> dict[str, object]:
    return {
        "field": change.field,
        "name": change.name,
        "before": change.before,
        "after": change.after,
        "grade": change.grade,
        "rule": change.rule,
        "drift": change.drift,
    }
