"""`dq.register`: a catalog made as the contracts say: tables, and in AWS grants and schedules."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dq.contracts.model import Contract
from dq.contracts.shared.outcome import DqError, Finding, UsageError
from dq.operations.catalog_tables import (
    Governed,
    agreed,
    applied_last,
    approved_subscriptions,
    doubts,
    governed_as_dict,
    hindrances,
    registry_name,
    save,
    schema_judge,
    server_choice,
    specified,
    tables,
    whole,
)
from dq.operations.key_ownership import settled
from dq.operations.register_aws import govern, keep_schedules, kept_parts, landing_zone, schedule_terms
from dq.operations.registry_files import Loaded, load
from dq.operations.runtime.context import World, called, registry_root
from dq.operations.runtime.spark import opened
from dq.operations.subscriptions import AgreedSubscriptions
from dq.registry.apply import Logged, RegisterRun, Result, apply, latest, propose
from dq.registry.diff import CatalogPlan, Grade, TableChange
from dq.registry.plan import limit
from dq.store.engine import Store


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
    unpruned = (unclear or _too_many(plan, request.prune_limit)) if request.prune else []
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
    if parts and whole_plan:
        governed.append(
            govern(
                world,
                _subscriptions(world, root, loaded.contracts, parts),
                loaded.contracts,
                plan,
                results,
                store,
                target.id,
                role=request.role_arn,
                account=request.catalog_id,
                apply_it=request.apply,
            )
        )
    if timing is not None and whole_plan:
        scheduled, kept = keep_schedules(
            world,
            timing,
            loaded.contracts,
            plan,
            results,
            store,
            target.id,
            role=request.role_arn,
            whole=not unclear,
            apply_it=request.apply,
            prune=request.prune and not unclear,
            most=request.prune_limit,
        )
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


def _subscriptions(
    world: World, root: Path, contracts: Iterable[Contract], parts: Collection[str]
) -> AgreedSubscriptions:
    """The subscriptions by which grants are given; none where no grants are kept."""
    if "grants" not in parts:
        return AgreedSubscriptions()
    return approved_subscriptions(world, root, {contract.id for contract in contracts})


def _too_many(plan: CatalogPlan, most: int | None) -> list[str]:
    count, most = len(plan.orphans), limit(plan.ours) if most is None else most
    if count <= most:
        return []
    return [
        f"{count} of {plan.ours} tables would go, and {most} may; if they shall, say --prune-limit {count}"
    ]


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
