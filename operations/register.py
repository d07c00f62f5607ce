"""`dq.register`: reconcile a catalog with the contracts: tables, and in AWS grants and schedules."""

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

from dq.contracts.access.data_location import (
    DataLocation,
    is_lake,
    resolve,
    select_server,
    server_for_environment,
)
from dq.contracts.access.files import POLICY_FILE, read, write
from dq.contracts.extension import dataset
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import (
    DqError,
    Finding,
    Location,
    ReadError,
    Severity,
    UsageError,
    join_limited,
    pluralize,
    suggestion,
)
from dq.contracts.schedule import clock
from dq.contracts.slo import NOT_IN_FORCE
from dq.contracts.subscriptions import Subscription
from dq.contracts.yaml.parse import parse
from dq.operations.key_ownership import resolve_key_owners
from dq.operations.registry_files import (
    RULE,
    LoadedContracts,
    load,
    parse_policy,
    read_policy_text,
    run_per_contract,
)
from dq.operations.runtime.context import (
    RuntimeContext,
    call_context,
    catalog_location,
    is_root,
    registry_root,
)
from dq.operations.runtime.spark import open_named_catalog
from dq.operations.subscriptions import AgreedSubscriptions, agreed_subscriptions, make_gather
from dq.registry.catalog import (
    Action,
    ActionKind,
    Catalog,
    CatalogPlan,
    Impact,
    ImpactAssessor,
    PlanStep,
    StepResult,
    TableChange,
)
from dq.registry.landing_zone import Domain, LandingZone, template
from dq.registry.plan import (
    ActionResult,
    CompleteRegistry,
    RegisterRun,
    RunLogEntry,
    apply,
    latest,
    load_applied_state,
    propose,
    prune_limit,
)
from dq.registry.schedules import service_of
from dq.registry.table import (
    CONTRACT,
    CONTRACT_VERSION,
    OBJECT,
    OPEN_FORMATS,
    RETIRED,
    Key,
    TableSpec,
    UnsupportedReaderOptions,
    specs,
)
from dq.registry.watcher_stack import WatcherStack, add_watcher
from dq.store.engine import Store
from dq.validators.compat.classification import Mode, Verdict
from dq.validators.compat.classified_change import ClassifiedChange, Concern
from dq.validators.git.repository import remote_name
from dq.validators.lint import Linter, load_rules
from dq.validators.policy.policy import Policy

if TYPE_CHECKING:
    from dq.registry.schedules import DesiredSchedules, SchedulePlan, ScheduleTerms


# Resources that `dq register` manages next to the tables of a catalog: steps, results, and their output.


@dataclass(frozen=True, slots=True)
class ManagedResources:
    """Plan for managed resources, with results and findings.

    `name` is the service, e.g. `Lake Formation`. `refused` names unmanaged resources in the way.
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
        blocking = any(finding.severity.blocks for finding in self.findings)
        return bool(blocking or self.refused or self.error) or any(result.error for result in self.results)


def resource_lines(resources: ManagedResources) -> list[str]:
    """Return a line for each step and each note."""
    notes = [f"! {note}" for note in (*resources.refused, *resources.notes)]
    return [*map(str, resources.steps), *notes, *([str(resources.error)] if resources.error else [])]


def resources_as_dict(resources: ManagedResources) -> Mapping[str, object]:
    """Return the resources as JSON values."""
    endings = {result.step: result for result in resources.results}
    return {
        "steps": [
            {
                "kind": step.kind,
                "description": str(step),
                "outcome": None if step not in endings else "failed" if endings[step].error else "done",
                "error": str(endings[step].error) if step in endings and endings[step].error else None,
            }
            for step in resources.steps
        ],
        "notes": [*resources.refused, *resources.notes],
        "error": str(resources.error) if resources.error else None,
    }


# Obstacles to registration, as findings with contract locations.


def registration_findings(plan: CatalogPlan, contracts: Iterable[Contract]) -> Iterator[Finding]:
    """Yield a finding for each obstacle of the plan, located at the column or object that causes it."""
    by_name = {(contract.id, contract.version): contract for contract in contracts}
    for action in plan.actions:
        for obstacle in action.blockers:
            assert action.desired is not None
            name = action.desired.parameter(CONTRACT), action.desired.parameter(CONTRACT_VERSION)
            if name not in by_name:
                # The last applied spec may be of a removed version; the plan reports it.
                continue
            contract = by_name[name]
            location = _location(contract, action.desired, obstacle.column)
            table = ".".join(action.key)
            message = f"{table}: {obstacle.reason}"
            yield Finding(RULE, Severity.ERROR, message, obstacle.hint, location, contract=contract.id)


def _location(contract: Contract, spec: TableSpec, column: str) -> Location:
    objects: Iterator[SchemaObject] = (
        schema_object for schema_object in contract.objects if schema_object.name == spec.parameter(OBJECT)
    )
    schema_object = next(objects, None)
    if schema_object is None:
        return contract.locate()
    return next(
        (prop.locate() for prop in schema_object.properties if prop.column.lower() == column),
        schema_object.locate(),
    )


# Classification of column changes, as by `dq diff` for the same change of a contract.

_TABLE = "t"
# Existing files lack a new column, which catalogs read as NULL: readers do not break.
_READABLE = frozenset({"column-added-required"})


def schema_judge(today: date) -> ImpactAssessor:
    """Return the classifier of column changes for a plan: breaks of `dq diff` are BREAKING, others ADDITIVE.

    Existing files are read with the new columns, so the mode is FULL; the engines are the default ones, since
    the readers of a table are unknown. Columns are compared with their positions, which identify columns in
    some formats.
    """

    def judge(live: TableSpec, desired: TableSpec) -> dict[str, tuple[Impact, str]]:
        # Imported here: slow to import, and most plans change no column.
        from dq.validators.compat.comparison import DiffTerms, diff

        terms = DiffTerms(today, Mode.FULL, format=desired.format)
        worst: dict[str, ClassifiedChange] = {}
        for change in diff(_contract(live, desired), _contract(desired, desired), terms).for_concern(
            Concern.COMPATIBILITY
        ):
            column = change.path.partition(".")[2]
            if column not in worst or worst[column].verdict.rank < change.verdict.rank:
                worst[column] = change
        return {column: (_grade(change), _rule(change)) for column, change in worst.items()}

    return judge


def _grade(change: ClassifiedChange) -> Impact:
    is_breaking = change.verdict is Verdict.BREAK and change.rule not in _READABLE
    return Impact.BREAKING if is_breaking else Impact.ADDITIVE


def _rule(change: ClassifiedChange) -> str:
    return f"{change.rule}: {change.note.rstrip('.')}" if change.note else change.rule


def _contract(spec: TableSpec, promises: TableSpec) -> Contract:
    """Return a contract with the table's columns, after a constant first column.

    Catalogs do not know which columns are required, so both sides of a comparison take that from `promises`.
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


# Saved plans: only actions that are unchanged since the plan was saved are applied.

_FORM = "dq register plan 1"


def save_plan(file: Path, plan: CatalogPlan, registry: str, catalog: str) -> None:
    """Write the actions of the plan, with fingerprints of the table states, to a file."""
    document = {
        "form": _FORM,
        "registry": registry,
        "catalog": catalog,
        "actions": {".".join(action.key): _row(action) for action in plan.actions if action.writes},
    }
    write(file, (json.dumps(document, indent=2, sort_keys=True) + "\n").encode())


def restrict_to_saved(
    file: Path, plan: CatalogPlan, registry: str, catalog: str
) -> tuple[CatalogPlan, list[DqError]]:
    """Restrict a new plan to the actions in the saved file; return it with an error per differing table.

    A table that is up to date by now does not differ. Raises UsageError for an invalid file, or a plan for
    another registry or catalog.
    """
    saved_actions = _saved_actions(file, registry, catalog)
    unchanged: list[Action] = []
    stale: list[DqError] = []
    for action in plan.actions:
        if not action.writes or saved_actions.get(".".join(action.key)) == _row(action):
            unchanged.append(action)
        else:
            is_saved = ".".join(action.key) in saved_actions
            stale.append(
                _stale_error(action, "changed since the plan was saved" if is_saved else "not in the plan")
            )
    return replace(plan, actions=tuple(unchanged)), stale


def _row(action: Action) -> dict[str, str]:
    return {"kind": action.kind, "impact": action.impact, "does": action.fingerprint}


def _stale_error(action: Action, why: str) -> DqError:
    return DqError(f"{'.'.join(action.key)}: {why}; skipped.", "Create a new plan with --out.")


def _saved_actions(file: Path, registry: str, catalog: str) -> dict[str, Any]:
    try:
        document = json.loads(read(file))
    except ValueError as error:
        raise UsageError(f"{file} is not JSON.", _HINT) from error
    if not isinstance(document, dict) or document.get("form") != _FORM:
        raise UsageError(f"{file} is not a plan of this version of dq.", _HINT)
    for key, expected in (("registry", registry), ("catalog", catalog)):
        if document.get(key) != expected:
            actual = document.get(key)
            raise UsageError(f"{file} is a plan for the {key} {actual!r}, not {expected!r}.", _HINT)
    actions = document.get("actions")
    return actions if isinstance(actions, dict) else {}


_HINT = "Create it with: dq register … --out plan.json"


# Orphaned tables are only known if the run has read the complete registry.

# Known statuses; the meaning of others for the tables is unknown.
_STATUSES = (None, "active", "deprecated", *NOT_IN_FORCE)
_NAMED = 3

Specify = Callable[[Contract, str | None], list[TableSpec]]
"""Returns the desired tables of a contract on a server. Raises DqError if they cannot be determined."""


ServerOf = Callable[[Contract], str | None]
"""Returns the registered server of a contract, or None for its only one. Raises UsageError if ambiguous."""


def incompleteness_reasons(
    paths: Sequence[Path], loaded: LoadedContracts, findings: Sequence[Finding]
) -> list[str]:
    """Return the reasons why orphaned tables are unknown; empty if the complete registry was read."""
    reasons = [reason for reason in (_incomplete_reason(paths),) if reason]
    broken = list(dict.fromkeys(finding.at.file for finding in findings))
    if broken:
        count = pluralize(len(broken), "contract")
        reasons.append(f"{count} could not be read or registered: {join_limited(broken, _NAMED)}")
    reasons += [
        f"{contract.locate('status')}: unknown status {contract.status!r}"
        for contract in loaded.contracts
        if contract.status not in _STATUSES
    ]
    return reasons


def _incomplete_reason(paths: Sequence[Path]) -> str:
    if len(paths) != 1:
        return f"{len(paths)} paths were given, but only one can be the whole registry"
    (path,) = paths
    root = registry_root(path)
    if not is_root(root):
        return f"the root of the registry is unknown: {root} contains neither {POLICY_FILE} nor .git"
    # pathlib raises for links that lead to each other.
    if Path(os.path.realpath(path)) != root:
        return f"{path} is not the whole registry, whose root is {root}"
    return ""


def whole_registry(
    registry: str, contracts: Sequence[Contract], server_of: ServerOf, specify: Specify
) -> CompleteRegistry:
    """Return the registry, with the tables that are protected although this run does not want them.

    These are tables of contracts that are not in force or have no objects, and tables on another server of a
    contract.
    """
    protected_tables: dict[Key, str] = {}
    by_contract: dict[str, str] = {}
    for contract in contracts:
        if contract.status in NOT_IN_FORCE:
            by_contract[contract.id] = f"Contract {contract.id!r} is {contract.status}; its tables are kept."
        elif not contract.objects:
            by_contract[contract.id] = f"Contract {contract.id!r} has no schema; its tables are kept."
        elif (server := server_of(contract)) is not None:
            for other_server in contract.servers:
                if other_server.server != server and is_lake(other_server):
                    _protect_other_server(
                        contract, other_server.server, specify, protected_tables, by_contract
                    )
    return CompleteRegistry(registry, protected_tables, by_contract)


def _protect_other_server(
    contract: Contract,
    server: str,
    specify: Specify,
    protected_tables: dict[Key, str],
    by_contract: dict[str, str],
) -> None:
    try:
        specs = specify(contract, server)
    except DqError as error:
        by_contract[contract.id] = f"Tables of contract {contract.id!r} on {server!r} are unknown: {error}"
        return
    protected_tables |= {
        spec.key: f"Declared by contract {contract.id!r} on server {server!r}." for spec in specs
    }


# Desired tables of contracts, and findings of contracts that cannot be registered.


def last_applied_specs(
    context: RuntimeContext, desired: Iterable[TableSpec], store: Store, catalog: str
) -> list[TableSpec]:
    """Return the last applied specs of these tables, as far as they are in the store."""
    applied = load_applied_state(store, catalog)
    desired = list(desired)
    unknown = sum(spec.key not in applied for spec in desired)
    if unknown:
        context.note(f"this store has no applied state for {unknown} of {len(desired)} tables.")
    return [applied[spec.key] for spec in desired if spec.key in applied]


def desired_tables(
    context: RuntimeContext, contracts: Iterable[Contract], server_of: ServerOf, specify: Specify
) -> tuple[list[TableSpec], list[Finding]]:
    """Return the desired tables of these contracts, and findings for those that cannot be registered.

    Drafts have none. Retired contracts only mark their tables as retired, unless a contract in force has the
    same table; their errors are ignored.
    """
    in_force, retired = [], []
    for contract in contracts:
        if contract.status == RETIRED:
            context.note(f"{contract.id} is retired: its tables are kept and marked as retired.")
            retired.append(contract)
        elif contract.status in NOT_IN_FORCE:
            context.note(f"{contract.id} is {contract.status}, so it is not registered.")
        else:
            in_force.append(contract)
    in_force_specs, refused = run_per_contract(
        in_force, lambda contract: contract, lambda contract: specify(contract, server_of(contract))
    )
    retired_specs, _ = run_per_contract(
        retired, lambda contract: contract, lambda contract: specify(contract, server_of(contract))
    )
    desired = [spec for specs in in_force_specs for spec in specs]
    desired_keys = {spec.key for spec in desired}
    return desired + [
        spec for specs in retired_specs for spec in specs if spec.key not in desired_keys
    ], refused


def table_specs(
    context: RuntimeContext,
    registry: str,
    catalog: str,
    target: Catalog | None,
    contract: Contract,
    server: str | None,
) -> list[TableSpec]:
    """Return the desired tables of a contract on a server. Raises UsageError if the target does not support
    them.
    """

    def place(schema_object: SchemaObject) -> DataLocation:
        return catalog_location(context, resolve(contract, schema_object, server, context.reach), catalog)

    desired = specs(contract, place, registry)
    for spec, schema_object in zip(desired, contract.objects, strict=True):
        try:
            if target is not None:
                target.vet(spec)
        except UnsupportedReaderOptions as error:
            location = select_server(contract, place(schema_object).server).locate()
            raise UsageError(error.what, error.hint, error.details, at=location) from error
        except UsageError as error:
            raise UsageError(error.what, error.hint, error.details, at=schema_object.locate()) from error
    return desired


# Registry name: marks managed tables in catalogs.


def registry_name(root: Path) -> str:
    """Return the policy's `registry`, else the Git remote `origin`, else the folder's name.

    The first two are the same in every checkout. Raises UsageError for an invalid policy.
    """
    return _policy(root).registry or remote_name(root) or root.name


def server_choice(
    root: Path, server: str | None, environment: str | None
) -> Callable[[Contract], str | None]:
    """Return a function from a contract to the name of its server: `server`, or that of the environment.

    The name is None without either option. The policy may set servers of the environment per contract.
    Raises UsageError for both options, or for an invalid policy; the function raises as
    `server_for_environment`.
    """
    if environment is None:
        return lambda _: server
    if server is not None:
        raise UsageError("--server and --env exclude each other.", "Pass one of them.")
    servers = _policy(root).servers.get(environment, {})
    return lambda contract: server_for_environment(contract, environment, servers)


def _policy(root: Path) -> Policy:
    return parse_policy(read_policy_text(root, None))


# Approved subscriptions, for commands that grant access.


def approved_subscriptions(context: RuntimeContext, root: Path, ids: Collection[str]) -> AgreedSubscriptions:
    """Return the approved subscriptions of a registry; `ids` are those of its contracts."""
    today = context.now().date()
    linter = Linter(load_rules(), _policy(root), today)
    return agreed_subscriptions(linter, make_gather(root, [root], today)(ids), ids)


@dataclass(frozen=True, slots=True)
class TablesRun:
    """A run of `dq register` after planning its tables, and applying them if requested."""

    context: RuntimeContext
    store: Store
    request: RegisterRequest
    catalog_id: str
    contracts: Sequence[Contract]
    plan: CatalogPlan
    results: Sequence[ActionResult]

    @property
    def failed_keys(self) -> frozenset[Key]:
        """Keys of tables that could not be applied."""
        return frozenset(result.action.key for result in self.results if result.error is not None)


# EventBridge schedules that `dq register` manages, if settings name a target.

_SCHEDULES = "Schedules"
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=,.@/-]+", re.ASCII)
_GROUP = re.compile(r"[0-9a-zA-Z._-]{1,64}", re.ASCII)
_QUEUE = re.compile(r"arn:aws[a-z-]*:sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,80}", re.ASCII)
_LONGEST_WINDOW = 1440
# Clock changes are compared this far ahead.
_AHEAD = timedelta(days=731)
_READY = (ActionKind.CREATE, ActionKind.UPDATE, ActionKind.NOOP, ActionKind.ADOPT, ActionKind.DRIFT)


def schedule_terms(context: RuntimeContext, catalog: str, registry: str) -> ScheduleTerms | None:
    """Return the schedule settings, or None without a target, or for a catalog other than Glue.

    Raises UsageError for a setting that is missing or invalid in AWS.
    """
    settings = context.settings
    if not settings.schedule_target:
        return None
    from dq.registry.schedules import ScheduleTerms

    service_of(settings.schedule_target)
    forms = (
        ("schedule_role", settings.schedule_role, _ROLE, "the ARN of the role that starts the target"),
        ("schedule_group", settings.schedule_group, _GROUP, "the name of a schedule group"),
        ("schedule_dead_letters", settings.schedule_dead_letters or None, _QUEUE, "a standard queue's ARN"),
    )
    for name, text, form, description in forms:
        if text is not None and not form.fullmatch(text):
            raise UsageError(f"{name} {text!r} is not {description}.", f"Set {name}.")
    minutes = settings.schedule_window_minutes
    if minutes > _LONGEST_WINDOW:
        raise UsageError(
            f"schedule_window_minutes is {minutes}, more than AWS's maximum of {_LONGEST_WINDOW}.",
            "Set fewer minutes, or 0 to start exactly on time.",
        )
    terms = ScheduleTerms(
        registry,
        settings.schedule_target,
        settings.schedule_role,
        settings.schedule_group,
        settings.schedule_dead_letters,
        minutes,
    )
    return terms if catalog == "glue" else None


def sync_schedules(
    run: TablesRun, terms: ScheduleTerms, *, is_complete: bool
) -> tuple[ManagedResources, list[str]]:
    """Plan the schedules of SLOs, and apply them if requested; return also the reasons for not pruning.

    Nothing is pruned unless the registry `is_complete`.
    """
    from dq.registry.aws.scheduler import connect_scheduler
    from dq.registry.schedules import (
        ScheduleAt,
        ScheduleState,
        apply_schedules,
        desired_schedules,
        plan_schedules,
    )

    request, contracts = run.request, run.contracts
    at = ScheduleAt(run.context.settings.schedule_at)
    in_force = [
        contract
        for contract in contracts
        if contract.status not in NOT_IN_FORCE or contract.status == RETIRED
    ]
    desired = desired_schedules(in_force, terms.registry, at, run.context.now().year)
    notes = ScheduleState(run.store, run.catalog_id, terms.group, terms.registry)
    try:
        scheduler = connect_scheduler(request.role_arn)
        plan = plan_schedules(
            scheduler,
            terms,
            desired,
            notes.schedules(),
            retained={contract.key for contract in contracts if contract not in in_force},
            pending=_waiting(desired, run),
            complete=is_complete,
        )
    except ReadError as error:
        # The results of the tables are still reported.
        return ManagedResources(_SCHEDULES, findings=desired.findings, error=error), []
    prune = request.prune and is_complete
    unpruned = (
        _too_many("schedules", len(plan.orphans), plan.managed_count, request.prune_limit) if prune else []
    )
    prune = prune and not unpruned
    results = apply_schedules(scheduler, notes, terms, plan, prune=prune) if request.apply else []
    clock_changes = _clock_changes(run.context, desired, plan) if at is ScheduleAt.DUE else ()
    messages = (*plan.notes, *clock_changes)
    return ManagedResources(
        _SCHEDULES, plan.steps, messages, results, desired.findings, plan.foreign
    ), unpruned


def _waiting(desired: DesiredSchedules, run: TablesRun) -> set[str]:
    """Return the entries whose table does not match its contract after this run."""
    ready = {
        tuple(action.desired.parameter(name) for name in (CONTRACT, CONTRACT_VERSION, OBJECT))
        for action in run.plan.actions
        if action.desired is not None and action.kind in _READY and action.key not in run.failed_keys
    }
    return {
        name
        for name, slo in desired.slos.items()
        if (slo.contract.id, slo.contract.version, slo.object.name) not in ready
    }


def _clock_changes(context: RuntimeContext, desired: DesiredSchedules, plan: SchedulePlan) -> Iterator[str]:
    """Yield a note per changed schedule with the first clock change at which EventBridge differs."""
    from dq.registry.schedules import DeleteSchedule, as_schedules

    new_entries = [step.entry for step in plan.steps if not isinstance(step, DeleteSchedule)]
    for promise in dict.fromkeys(entry.promise for entry in new_entries if entry.enabled):
        entries = [entry for entry in desired.entries.values() if entry.promise == promise]
        slo, now = desired.slos[entries[0].name], context.now()
        difference = next(clock.differences([slo.schedule], as_schedules(entries), now, now + _AHEAD), None)
        if difference is not None:
            extra = "also starts it" if difference.first is None else "does not start it"
            yield f"{promise}: EventBridge {extra} on {difference.at:%Y-%m-%d %H:%M}Z (DST change)."


# Lake Formation resources that `dq register` manages, if settings enable them.

_LAKE_FORMATION = "Lake Formation"
PARTS = ("locations", "tags", "grants")
# Actions whose table is missing or unmanaged.
_NOT_OURS = (ActionKind.CONFLICT, ActionKind.WAIT)


def managed_parts(context: RuntimeContext, catalog: str) -> tuple[str, ...]:
    """Return the managed parts of Lake Formation; empty for a catalog other than Glue.

    Raises UsageError for an unknown part, or a missing setting.
    """
    parts = context.settings.lake_formation
    for part in parts:
        if part not in PARTS:
            hint = suggestion(part, PARTS, f"Choose from {', '.join(PARTS)}.")
            raise UsageError(f"lake_formation has {part!r}, which dq does not manage.", hint)
    if "locations" in parts and not (
        context.settings.lake_formation_locations and context.settings.lake_formation_role
    ):
        raise UsageError(
            "lake_formation has 'locations', but no locations are set.",
            "Set lake_formation_locations and lake_formation_role.",
        )
    return parts if catalog == "glue" else ()


def sync_lake_formation(run: TablesRun, approved: AgreedSubscriptions) -> ManagedResources:
    """Plan Lake Formation for the tables of a catalog plan, and apply it if requested."""
    from dq.registry.aws.lake_formation import (
        LakeState,
        LakeTerms,
        apply_lake,
        connect_lake,
        desired_grants,
        desired_tags,
        plan_lake,
        with_origins,
    )

    settings, today = run.context.settings, run.context.now().date()
    parts, contracts, request = settings.lake_formation, run.contracts, run.request
    tables, orphans = _managed_tables(run.plan), {action.key for action in run.plan.orphans}
    desired = {key: spec for key, spec in tables.items() if key not in orphans}
    current = {key: spec for key, spec in desired.items() if key not in run.failed_keys}
    expired = [subscription for subscription in approved.subscriptions if subscription.is_expired(today)]
    terms = LakeTerms(
        {key: spec.location for key, spec in tables.items()},
        locations=settings.lake_formation_locations if "locations" in parts else None,
        role=settings.lake_formation_role,
        tag=settings.lake_formation_tag,
        tags=desired_tags(contracts, current) if "tags" in parts else None,
        grants=desired_grants(approved.subscriptions, contracts, desired, today)
        if "grants" in parts
        else None,
        expired=desired_grants(expired, contracts, desired),
        unreadable=approved.unclear,
        outdated=run.failed_keys,
    )
    notes = LakeState(run.store, run.catalog_id)
    try:
        lake = connect_lake(request.role_arn, request.catalog_id, run.catalog_id.split(":")[1])
        plan = plan_lake(lake, notes, terms)
    except ReadError as error:
        # The results of the tables are still reported.
        return ManagedResources(_LAKE_FORMATION, findings=approved.findings, error=error)
    plan = with_origins(plan, approved.origin)
    results = apply_lake(lake, notes, plan) if request.apply else []
    return ManagedResources(_LAKE_FORMATION, plan.steps, plan.notes, results, approved.findings)


def _managed_tables(plan: CatalogPlan) -> dict[Key, TableSpec]:
    """Return the tables of the plan that are or will be managed."""
    by_key: dict[Key, TableSpec] = {}
    for action in plan.actions:
        spec = action.desired or (action.before.spec if action.before else None)
        if spec is not None and action.kind not in _NOT_OURS:
            by_key[action.key] = spec
    return by_key


# `dq register --emit-landing-zone`: CloudFormation stack required by contracts and settings.

_TOPIC = "dq-{domain}"
_LOCATION = re.compile("s3[an]?://[a-z0-9.-]{3,63}(/[^*?$]*)?")
_TOPIC_NAME = re.compile("[A-Za-z0-9_-]{1,256}", re.ASCII)


def landing_zone(
    context: RuntimeContext,
    contracts: Iterable[Contract],
    tables: Iterable[TableSpec],
    subscriptions: Iterable[Subscription],
    *,
    watcher: bool = False,
) -> dict[str, object]:
    """Return the CloudFormation template. Active subscriptions in other accounts get access to the topics.

    `watcher` adds the function that watches the deliveries.

    Raises UsageError for a setting or domain that is invalid as an AWS name, and for limits of a stack.
    """
    settings = context.settings
    if settings.schedule_target:
        service_of(settings.schedule_target)
    for location in settings.lake_formation_locations:
        if not _LOCATION.fullmatch(location):
            raise UsageError(
                f"invalid location {location!r} in lake_formation_locations.", "Use s3://bucket/prefix."
            )
    specs = list(tables)
    today = context.now().date()
    zone = LandingZone(
        domains=_domains(
            settings.topic,
            contracts,
            specs,
            [subscription for subscription in subscriptions if not subscription.is_expired(today)],
        ),
        databases=[spec.database for spec in specs],
        locations=settings.lake_formation_locations,
        target=settings.schedule_target,
        group=settings.schedule_group,
        queue=settings.schedule_dead_letters.rpartition(":")[2] or "dq-dead-letters",
        scheduler_role=settings.schedule_role.rpartition("/")[2] or "dq-scheduler",
        lake_role=settings.lake_formation_role.rpartition("/")[2] or "dq-lake-reader",
        governed=bool(settings.lake_formation),
        watcher=watcher,
    )
    if not watcher:
        return template(zone)
    folders = sorted({spec.location for spec in specs if re.match("s3[an]?://", spec.location)})
    roots = [root for root in settings.lake_roots or folders if re.match("s3[an]?://", root)]
    variables = {"DQ_LAKE_ROOTS": ",".join(roots)}
    databases = zone.databases if settings.watch_catalog == "glue" else ()
    return add_watcher(template(zone), WatcherStack(folders, variables, databases))


def _domains(
    topic: str,
    contracts: Iterable[Contract],
    tables: Iterable[TableSpec],
    subscriptions: Sequence[Subscription],
) -> list[Domain]:
    """Return a domain for each topic, with the tables and readers of its contracts."""
    form = topic.rpartition(":")[2] or _TOPIC
    by_contract: dict[tuple[str, str], list[TableSpec]] = {}
    for spec in tables:
        key = spec.parameter(CONTRACT), spec.parameter(CONTRACT_VERSION)
        by_contract.setdefault(key, []).append(spec)
    by_domain: dict[str, list[Contract]] = {}
    for contract in contracts:
        domain = (contract.domain or "") if "{domain}" in form else ""
        if "{domain}" in form and not domain:
            # Without a domain there is no topic to publish to.
            continue
        if not _TOPIC_NAME.fullmatch(form.replace("{domain}", domain)):
            raise UsageError(
                f"contract {contract.id!r}: its domain is not allowed in the topic name {form}.",
                "Use letters, digits, hyphens and underscores in 'domain'.",
                at=contract.locate("domain"),
            )
        by_domain.setdefault(domain, []).append(contract)
    domains = []
    for domain, published in by_domain.items():
        identities = {contract.identity for contract in published}
        specs = [
            (contract, spec)
            for contract in published
            for spec in by_contract.get((contract.id, contract.version), ())
        ]
        marked = [contract for contract, spec in specs if spec.format not in OPEN_FORMATS]
        domains.append(
            Domain(
                domain,
                form.replace("{domain}", domain),
                databases=sorted({spec.database for _, spec in specs}),
                folders=sorted({spec.location for _, spec in specs if re.match("s3[an]?://", spec.location)}),
                markers=sorted(
                    {
                        dataset(schema_object)[0].marker
                        for contract in marked
                        for schema_object in contract.objects
                    }
                ),
                readers=sorted(
                    {
                        _account(subscription)
                        for subscription in subscriptions
                        if subscription.identity in identities
                    }
                    - {""}
                ),
            )
        )
    return domains


def _account(subscription: Subscription) -> str:
    """Return the reader's AWS account, or "".

    A role's account, since topics reject roles that do not exist.
    """
    return (
        subscription.reader.split(":")[4] if subscription.reader.startswith("arn:") else subscription.reader
    )


@dataclass(frozen=True, slots=True)
class RegisterRequest:
    """Contracts to register, the catalog, and permitted actions.

    `catalog` is `local`, `hive`, `glue` or `iceberg`; `role_arn` and `catalog_id` are for another account in
    AWS. `server` or `environment` select the server of a contract. `apply` executes the plan; `adopt` takes
    over unmanaged tables, `prune` deletes managed tables without a contract, at most `prune_limit`. `allow`
    are the permitted grades of changes besides additive ones. `out` saves the plan in a file, `plan` applies
    such a file. `refresh_only` compares with what was applied last. `watcher` adds the watcher to the stack
    of the landing zone.
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
    allow: frozenset[Impact] = frozenset()
    out: Path | None = None
    plan: Path | None = None
    refresh_only: bool = False
    watcher: bool = False

    def validate(self) -> None:
        """Raise UsageError for mutually exclusive options, named as on the command line."""
        if self.refresh_only and (self.apply or self.adopt or self.prune or self.out or self.plan):
            raise UsageError("--refresh-only changes nothing.", "Remove the other options.")
        if self.plan is not None and not self.apply:
            raise UsageError("--plan needs --apply.", "Add --apply.")
        if self.plan is not None and self.out is not None:
            raise UsageError("--out and --plan exclude each other.", "Pass one of them.")
        if self.prune_limit is not None and self.prune_limit < 0:
            raise UsageError(f"--prune-limit {self.prune_limit} is below 0.", "Use 0 or more.")


@dataclass(frozen=True, slots=True)
class RegisterOutcome:
    """Plan for the tables of a catalog, and its results.

    `results` are those of the plan's actions, empty if nothing was to be applied. `governed` are the managed
    AWS resources next to tables. `findings` are contracts that could not be registered. `unclear` are the
    reasons why orphaned tables are unknown, `unpruned` why nothing was pruned although requested. `stale` are
    tables that changed since the plan was saved.
    """

    plan: CatalogPlan
    results: tuple[ActionResult, ...] = ()
    governed: tuple[ManagedResources, ...] = ()
    findings: tuple[Finding, ...] = ()
    unclear: tuple[str, ...] = ()
    unpruned: tuple[str, ...] = ()
    stale: tuple[DqError, ...] = ()
    applied: bool = False
    notes: tuple[str, ...] = ()

    @property
    def pending(self) -> bool:
        """True if there are changes, applied or not."""
        actions = any(action.writes for action in self.plan.actions)
        return actions or any(governed.steps for governed in self.governed)

    @property
    def exit_code(self) -> int:
        """Exit code: 0, or 3 if something was rejected, unmanaged, stale, or unreadable."""
        governed_findings = {finding for governed in self.governed for finding in governed.findings}
        refused = any(finding not in governed_findings for finding in self.findings)
        failed = any(governed.failed for governed in self.governed)
        has_problem = self.unpruned or refused or self.stale or self.plan.conflicts or failed
        return 3 if has_problem or any(result.error is not None for result in self.results) else 0

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq register --format json` as JSON values."""
        return {
            **plan_as_dict(self.plan, self.results),
            **{
                governed.name.lower().replace(" ", "_"): resources_as_dict(governed)
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
    """Plan the changes of a catalog to match the contracts; with `apply`, execute them, as `dq register`
    does.

    `folder` replaces the working folder, which has settings and store, and is the base of relative paths. The
    other arguments are those of `RegisterRequest`, and the options of that name.

    Raises UsageError for invalid or mutually exclusive arguments, MissingTool if the catalog's packages are
    not installed, and ReadError for a path without contracts. Problems of contracts or tables are in the
    outcome.
    """
    context, places = call_context(paths, folder)
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
        allowed_grades(allow_breaking, allow_destructive),
        context.folder / out if out is not None else None,
        context.folder / plan if plan is not None else None,
        refresh_only,
    )
    with closing(context.store()) as store:
        outcome = run(context, store, request)
    return replace(outcome, notes=tuple(context.messages.notes))


def run(context: RuntimeContext, store: Store, request: RegisterRequest) -> RegisterOutcome:
    """Run the operation. Raises as `register`."""
    request.validate()
    root = registry_root(request.paths[0])
    registry, server_of = registry_name(root), server_choice(root, request.server, request.environment)
    parts = managed_parts(context, request.catalog)
    timing = schedule_terms(context, request.catalog, registry)
    loaded = resolve_key_owners(context, store, load(request.paths, context.note))
    target = open_named_catalog(context, store, request.catalog, request.role_arn, request.catalog_id)
    specify = partial(table_specs, context, registry, request.catalog, target)
    desired, refused = desired_tables(context, loaded.contracts, server_of, specify)
    findings = [*loaded.findings, *refused]
    unclear = incompleteness_reasons(request.paths, loaded, findings)
    complete_registry = None if unclear else whole_registry(registry, loaded.contracts, server_of, specify)
    if request.refresh_only:
        desired, complete_registry = last_applied_specs(context, desired, store, target.id), None
    judge = schema_judge(context.now().date())
    plan = propose(
        target, desired, store, adopt=request.adopt, complete=complete_registry, assess_impact=judge
    )
    findings += registration_findings(plan, loaded.contracts)
    if request.out is not None:
        save_plan(request.out, plan, registry, target.id)
    stale: list[DqError] = []
    if request.plan is not None:
        plan, stale = restrict_to_saved(request.plan, plan, registry, target.id)
    unpruned = []
    if request.prune:
        unpruned = unclear or _too_many("tables", len(plan.orphans), plan.managed_count, request.prune_limit)
    results: list[ActionResult] = []
    if request.apply:
        results = apply(
            target,
            plan,
            store,
            allow=request.allow,
            prune=request.prune and not unpruned,
            run=RegisterRun(str(uuid.uuid4()), context.now(), registry),
        )
    governed: list[ManagedResources] = []
    whole_plan = not request.refresh_only and request.plan is None
    tables_run = TablesRun(context, store, request, target.id, loaded.contracts, plan, results)
    if parts and whole_plan:
        # Subscriptions are only needed for grants.
        ids = {contract.id for contract in loaded.contracts}
        approved = approved_subscriptions(context, root, ids) if "grants" in parts else AgreedSubscriptions()
        governed.append(sync_lake_formation(tables_run, approved))
    if timing is not None and whole_plan:
        scheduled, not_pruned = sync_schedules(tables_run, timing, is_complete=not unclear)
        governed.append(scheduled)
        unpruned = [*unpruned, *not_pruned]
    if (parts or timing is not None) and not whole_plan:
        context.note("only tables are planned: saved plans and --refresh-only do not cover anything else.")
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


def changes(
    context: RuntimeContext, store: Store, request: RegisterRequest, max_count: int
) -> Sequence[RunLogEntry]:
    """Return the last changes of the catalog by dq, at most `max_count`, oldest first."""
    target = open_named_catalog(context, store, request.catalog, request.role_arn, request.catalog_id)
    return latest(store, target.id, max_count)


@dataclass(frozen=True, slots=True)
class LandingZoneOutcome:
    """CloudFormation stack, or None if a contract or a subscription is rejected, as it would be
    incomplete.
    """

    stack: Mapping[str, object] | None
    findings: tuple[Finding, ...]


def emit_landing_zone(context: RuntimeContext, store: Store, request: RegisterRequest) -> LandingZoneOutcome:
    """Return the stack that `dq register` needs in an account, from contracts and subscriptions alone."""
    root = registry_root(request.paths[0])
    server_of = server_choice(root, request.server, request.environment)
    loaded: LoadedContracts = resolve_key_owners(context, store, load(request.paths, context.note))
    specify = partial(table_specs, context, registry_name(root), "glue", None)
    desired, refused = desired_tables(context, loaded.contracts, server_of, specify)
    approved = approved_subscriptions(context, root, {contract.id for contract in loaded.contracts})
    findings = (*loaded.findings, *refused, *approved.findings)
    if findings:
        return LandingZoneOutcome(None, findings)
    stack = landing_zone(context, loaded.contracts, desired, approved.subscriptions, watcher=request.watcher)
    return LandingZoneOutcome(stack, ())


def allowed_grades(breaking: bool, destructive: bool) -> frozenset[Impact]:
    """Return the permitted grades of changes."""
    grades = {Impact.BREAKING: breaking, Impact.DESTRUCTIVE: destructive}
    return frozenset(grade for grade, permitted in grades.items() if permitted)


def _too_many(kind: str, count: int, managed: int, max_removals: int | None) -> list[str]:
    """Return the reason if more than `max_removals` would be removed, by default as `limit` says."""
    max_removals = prune_limit(managed) if max_removals is None else max_removals
    if count <= max_removals:
        return []
    return [
        f"{count} of {managed} {kind} would be deleted, limit {max_removals}; to allow it, pass "
        f"--prune-limit {count}"
    ]


def plan_as_dict(plan: CatalogPlan, results: Sequence[ActionResult]) -> dict[str, object]:
    """Return the plan and its results as JSON values."""
    # Several contracts may have actions for the same table.
    endings: list[ActionResult | None] = [*results] or [None] * len(plan.actions)
    return {
        "actions": [
            {
                "table": ".".join(action.key),
                "kind": action.kind,
                "impact": action.impact,
                "note": action.note,
                "changes": [_change_as_dict(change) for change in action.changes],
                "outcome": result.outcome if result else None,
                "error": str(result.error) if result and result.error else None,
            }
            for action, result in zip(plan.actions, endings, strict=True)
        ]
    }


def _change_as_dict(change: TableChange) -> dict[str, object]:
    return {
        "field": change.field,
        "name": change.name,
        "before": change.before,
        "after": change.after,
        "impact": change.impact,
        "rule": change.rule,
        "drift": change.drift,
    }
