"""The tables that contracts want of a catalog, what stands in their way, and plans that are kept."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from dq.contracts.access.data_location import DataPlace, is_lake, resolve, server_in, server_of
from dq.contracts.access.files import POLICY_FILE, FileRefused, read, write
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import DqError, Finding, Location, Severity, UsageError, counted, first_of
from dq.contracts.slo import NOT_IN_FORCE
from dq.contracts.subscriptions import Subscription
from dq.contracts.subscriptions import read as read_subscription
from dq.contracts.yaml.parse import parse
from dq.operations.gate import policy_of, written
from dq.operations.registry_files import RULE, Loaded, each
from dq.operations.runtime.context import World, is_root, located, registry_root
from dq.operations.subscriptions import AgreedSubscriptions, gathered
from dq.registry.apply import recall
from dq.registry.catalog import Catalog
from dq.registry.diff import Action, CatalogPlan, Grade, PlanStep, SchemaJudge, StepResult
from dq.registry.plan import WholeRegistry
from dq.registry.table import CONTRACT, CONTRACT_VERSION, OBJECT, RETIRED, Key, TableSpec, UnsayableTerms
from dq.registry.table_specs import specs
from dq.store.engine import Store
from dq.validators.compat.classification import Mode, Verdict
from dq.validators.compat.classified_change import Aspect, Judged
from dq.validators.compat.comparison import DiffTerms, diff
from dq.validators.git.repository import remote_name
from dq.validators.lint import Gate, judge_subscriptions, rules_of
from dq.validators.policy.policy import Policy

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
    rules, today = rules_of(), world.now().date()
    given = gathered(root, [root])(ids)
    judged = judge_subscriptions(Gate(rules, policy_of(written(root, None), rules), today), given, ids)
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
