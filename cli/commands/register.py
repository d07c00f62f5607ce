"""dq register"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path

import typer

from dq.cli.gating.agreed import agreed as agreed_subscriptions
from dq.cli.gating.registry_name import registry_name, server_choice
from dq.cli.loading.contracts import NOT_IN_FORCE, PATHS, load
from dq.cli.loading.holding import settled
from dq.cli.loading.refusal import as_row, each
from dq.cli.loading.subscriptions import AgreedSubscriptions
from dq.cli.loading.whole import ServerOf, Specify, doubts, whole
from dq.cli.registering.column_changes import column_judge
from dq.cli.registering.hindrances import hindrances
from dq.cli.registering.lake_formation import (
    describe_governed,
    govern,
    governed_as_dict,
    governed_lines,
    kept_parts,
)
from dq.cli.registering.saved import agreed, save
from dq.cli.registering.shown import PlanFormat, as_dict, as_markdown, describe, show_log
from dq.cli.terminal import output
from dq.cli.world.catalogs import ACCOUNT, CATALOG, ROLE, opened
from dq.cli.world.environment import World, here, located, registry_root
from dq.contracts.access.data_location import DataPlace, resolve, server_of
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.errors import DqError, UsageError
from dq.contracts.shared.outcome import Finding
from dq.registry.action import CatalogPlan, Grade
from dq.registry.apply import apply, propose
from dq.registry.catalog import Catalog
from dq.registry.memory import recall
from dq.registry.orphans import limit
from dq.registry.reader import UnsayableTerms
from dq.registry.run_log import RegisterRun, latest
from dq.registry.specify import specs
from dq.registry.table import RETIRED, TableSpec
from dq.store.engine import Store


def command(
    paths: list[Path] = PATHS,
    apply_it: bool = typer.Option(
        False, "--apply", help="Make the catalog so. Without it nothing is written."
    ),
    check: bool = typer.Option(False, "--check", help="Exit with 1 when something would change."),
    catalog: str = CATALOG,
    role_arn: str = ROLE,
    catalog_id: str = ACCOUNT,
    server: str = typer.Option(
        None, "--server", help="The server to register, where a contract has several."
    ),
    environment: str = typer.Option(
        None, "--env", help="Register each contract's server of this environment, such as prod."
    ),
    adopt: bool = typer.Option(False, "--adopt", help="Take over tables that stand there and are nobody's."),
    prune: bool = typer.Option(
        False, "--prune", help="Remove tables of ours that no contract wants any more."
    ),
    prune_limit: int = typer.Option(
        None, "--prune-limit", min=0, help="How many tables --prune may remove; see above."
    ),
    allow_breaking: bool = typer.Option(False, "--allow-breaking", help="Allow changes that break readers."),
    allow_destructive: bool = typer.Option(
        False, "--allow-destructive", help="Allow changes that lose data."
    ),
    out: Path = typer.Option(None, "--out", help="Keep the plan in this file, for --plan."),
    agreed_plan: Path = typer.Option(
        None, "--plan", help="Apply only what this kept plan says, and nothing that has moved since."
    ),
    log: int = typer.Option(
        None, "--log", min=1, help="Only show the last so many changes that runs made to the catalog."
    ),
    refresh_only: bool = typer.Option(
        False, "--refresh-only", help="Only show what others changed since dq applied; writes nothing."
    ),
    format: PlanFormat = typer.Option(
        PlanFormat.TEXT, "--format", help="text for people, json for machines, markdown for a comment."
    ),
) -> None:
    """Show what the catalog lacks to be as the contracts say; with --apply, make it so.

    Nothing is deleted by default, and nothing is touched that dq does not own. What somebody else changed
    in a table of ours is shown as drift. A contract that cannot be registered is a finding, and stops no
    other.

    Tables that no contract wants are named, and removed by --prune, only by a run over the whole registry
    (the folder with dq-policy.yaml or .git) in which every contract was understood and nothing else was
    refused. One table may go without more words, up to five where that is no more than a tenth of the
    registry's tables; for more, say --prune-limit.

    With --env each contract's server with that 'environment' is taken; where that does not tell, 'servers'
    in dq-policy.yaml does: servers: {prod: {orders: lake}}.

    A plan that was kept with --out is applied with --apply --plan: what has moved since, in the catalog or
    in the contracts, is left alone and told. --refresh-only compares the catalog with what dq applied last,
    whatever the contracts say by now.

    Where the setting lake_formation says so, locations, tags from 'classification' and grants from
    subscriptions are planned and applied with the tables of Glue. Only what dq gave is ever taken back.

    Every change, and every refusal, is kept in the store as it happens: --log 20 shows the last ones.

    Exit codes: 0 done or nothing to do, 1 changes are pending (--check), 3 something was refused, is not
    ours to touch, has moved since the plan was kept, or could not be read.

    Example: dq register registry --apply
    """
    _refuse_together(refresh_only, apply_it, adopt, prune, out, agreed_plan)
    world = here(paths=paths or [Path()])
    store = world.store()
    places = paths or [Path()]
    if log is not None:
        show_log(latest(store, opened(world, store, catalog, role_arn, catalog_id).id, log), format)
        return
    parts = kept_parts(world, catalog)
    registry = registry_name(registry_root(places[0]))
    loaded = settled(world, store, load(places))
    target = opened(world, store, catalog, role_arn, catalog_id)
    specify = partial(_specs, world, registry, catalog, target)
    server_of = server_choice(registry_root(places[0]), server, environment)
    wanted, refused = tables(loaded.contracts, server_of, specify)
    findings = [*loaded.findings, *refused]
    unclear = doubts(places, loaded, findings)
    all_of_it = None if unclear else whole(registry, loaded.contracts, server_of, specify)
    judge = column_judge(world.now().date())
    if refresh_only:
        wanted, all_of_it = applied_last(wanted, store, target.id), None
    plan = propose(target, target.id, wanted, store, adopt=adopt, whole=all_of_it, judge=judge)
    findings += hindrances(plan, loaded.contracts)
    for finding in findings:
        output.note(str(finding))
    if out is not None:
        save(out, plan, registry, target.id)
    stale: list[DqError] = []
    if agreed_plan is not None:
        plan, stale = agreed(agreed_plan, plan, registry, target.id)
    unpruned = (unclear or _too_many(plan, prune_limit)) if prune else []
    results = (
        apply(
            target,
            target.id,
            plan,
            store,
            allow=_allowed(allow_breaking, allow_destructive),
            prune=prune and not unpruned,
            run=RegisterRun(str(uuid.uuid4()), world.now(), registry),
        )
        if apply_it
        else []
    )
    governed = None
    if parts and not refresh_only and agreed_plan is None:
        governed = govern(
            world,
            agreed_now(world, places[0], loaded.contracts, parts),
            loaded.contracts,
            plan,
            results,
            store,
            target.id,
            role=role_arn,
            account=catalog_id,
            apply_it=apply_it,
        )
        findings += governed.findings
        for finding in governed.findings:
            output.note(str(finding))
    elif parts:
        output.note("dq: Lake Formation is left alone: neither a kept plan nor --refresh-only is about it.")
    if format is PlanFormat.MARKDOWN:
        output.block(as_markdown(plan, findings, unclear, governed_lines(governed) if governed else ()))
    elif format is PlanFormat.JSON:
        orphans = {"judged": not unclear, "reasons": unclear or unpruned}
        rows = [as_row(finding) for finding in findings]
        lake = {"lake_formation": governed_as_dict(governed)} if governed else {}
        output.as_json({**as_dict(plan, results), **lake, "orphans": orphans, "findings": rows})
    else:
        describe(plan, results, applied=apply_it)
        if governed is not None:
            describe_governed(governed, applied=apply_it)
        for reason in unclear:
            output.line(f"Orphans are not judged: {reason}.")
    for reason in unpruned:
        output.note(f"dq: nothing is pruned: {reason}.")
    for error in stale:
        output.note(f"dq: {error}")
    wrong = unpruned or findings or stale or plan.conflicts or (governed is not None and governed.failed)
    if wrong or any(one.error is not None for one in results):
        raise typer.Exit(3)
    pending = any(action.writes for action in plan.actions) or (governed is not None and governed.plan.steps)
    raise typer.Exit(1 if check and not apply_it and pending else 0)


def agreed_now(
    world: World, place: Path, contracts: Iterable[Contract], parts: Collection[str]
) -> AgreedSubscriptions:
    """The subscriptions by which grants are given; none where no grants are kept."""
    if "grants" not in parts:
        return AgreedSubscriptions()
    return agreed_subscriptions(world, registry_root(place), {one.id for one in contracts})


def _refuse_together(
    refresh_only: bool, apply_it: bool, adopt: bool, prune: bool, out: Path | None, plan: Path | None
) -> None:
    if refresh_only and (apply_it or adopt or prune or out or plan):
        raise UsageError("--refresh-only writes nothing.", "Leave the other options out.")
    if plan is not None and not apply_it:
        raise UsageError("--plan says what --apply may do.", "Add --apply.")
    if plan is not None and out is not None:
        raise UsageError("--out keeps a plan, and --plan applies one.", "Choose one of the two.")


def applied_last(wanted: Iterable[TableSpec], store: Store, catalog: str) -> list[TableSpec]:
    """What dq applied last to these tables, as far as the store remembers."""
    applied = recall(store, catalog)
    wanted = list(wanted)
    unknown = sum(spec.key not in applied for spec in wanted)
    if unknown:
        output.note(f"dq: this store remembers nothing of {unknown} of {len(wanted)} tables.")
    return [applied[spec.key] for spec in wanted if spec.key in applied]


def tables(
    contracts: Iterable[Contract], server_of: ServerOf, specify: Specify
) -> tuple[list[TableSpec], list[Finding]]:
    """The tables that these contracts want, and what is wrong with those that cannot be registered.

    Drafts want none. Retired ones want no more than that theirs say so, where no contract in force wants
    the same table; what cannot be told of them is nobody's fault.
    """
    in_force, retired = [], []
    for contract in contracts:
        if contract.status == RETIRED:
            output.note(f"dq: {contract.id} is retired: its tables stay, and say so.")
            retired.append(contract)
        elif contract.status in NOT_IN_FORCE:
            output.note(f"dq: {contract.id} is {contract.status}, so it is not registered.")
        else:
            in_force.append(contract)
    found, refused = each(in_force, lambda one: one, lambda one: specify(one, server_of(one)))
    over, _ = each(retired, lambda one: one, lambda one: specify(one, server_of(one)))
    wanted = [spec for specs in found for spec in specs]
    taken = {spec.key for spec in wanted}
    return wanted + [spec for specs in over for spec in specs if spec.key not in taken], refused


def _specs(
    world: World, registry: str, catalog: str, target: Catalog, contract: Contract, server: str | None
) -> list[TableSpec]:
    def place(one: SchemaObject) -> DataPlace:
        return located(world, resolve(contract, one, server, world.reach), catalog)

    made = specs(contract, place, registry)
    for spec, one in zip(made, contract.objects, strict=True):
        try:
            target.vet(spec)
        except UnsayableTerms as error:
            at = server_of(contract, place(one).server).at()
            raise UsageError(error.what, error.mend, error.details, at=at) from error
        except UsageError as error:
            raise UsageError(error.what, error.mend, error.details, at=one.at()) from error
    return made


def _too_many(plan: CatalogPlan, most: int | None) -> list[str]:
    count, most = len(plan.orphans), limit(plan.ours) if most is None else most
    if count <= most:
        return []
    return [
        f"{count} of {plan.ours} tables would go, and {most} may; if they shall, say --prune-limit {count}"
    ]


def _allowed(breaking: bool, destructive: bool) -> frozenset[Grade]:
    grades = {Grade.BREAKING: breaking, Grade.DESTRUCTIVE: destructive}
    return frozenset(grade for grade, allowed in grades.items() if allowed)


def run(world: World, contracts: list[Contract], store: Store, catalog: Catalog, name: str) -> None:
    """Plans and applies, and shows both: what the demonstration does."""
    wanted, _ = tables(contracts, lambda _: None, partial(_specs, world, world.folder.name, "local", catalog))
    plan = propose(catalog, name, wanted, store)
    describe(plan, apply(catalog, name, plan, store), applied=True)
