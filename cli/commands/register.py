"""dq register"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path

import typer

from dq.cli.context import here
from dq.cli.options import ACCOUNT, CATALOG, PATHS, ROLE
from dq.cli.shown.register import as_dict, as_markdown, describe, describe_governed, show_log
from dq.cli.terminal import output
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import DqError, UsageError
from dq.operations.key_ownership import settled
from dq.operations.register import (
    Governed,
    ServerOf,
    agreed,
    applied_last,
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
from dq.operations.register import approved_subscriptions as agreed_subscriptions
from dq.operations.register_aws import govern, keep_schedules, kept_parts, landing_zone, schedule_terms
from dq.operations.registry_files import Loaded, load
from dq.operations.runtime.context import World, registry_root
from dq.operations.runtime.spark import opened
from dq.operations.subscriptions import AgreedSubscriptions
from dq.registry.apply import RegisterRun, apply, latest, propose
from dq.registry.catalog import Catalog
from dq.registry.diff import CatalogPlan, Grade
from dq.registry.plan import limit
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
    emit_landing_zone: bool = typer.Option(
        False, "--emit-landing-zone", help="Print a stack of CloudFormation for the account; asks no AWS."
    ),
    format: output.PageFormat = output.COMMENT_FORMAT,
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
    Where schedule_target names what is to be started, so are schedules of EventBridge from delivery
    promises; one whose contract is no more goes with --prune.

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
    registry = registry_name(registry_root(places[0]))
    server_of = server_choice(registry_root(places[0]), server, environment)
    if emit_landing_zone:
        _emit(world, places[0], settled(world, store, load(places, world.note)), server_of, registry)
        return
    parts = kept_parts(world, catalog)
    timing = schedule_terms(world, catalog, registry)
    loaded = settled(world, store, load(places, world.note))
    target = opened(world, store, catalog, role_arn, catalog_id)
    specify = partial(specified, world, registry, catalog, target)
    wanted, refused = tables(world, loaded.contracts, server_of, specify)
    findings = [*loaded.findings, *refused]
    unclear = doubts(places, loaded, findings)
    all_of_it = None if unclear else whole(registry, loaded.contracts, server_of, specify)
    judge = schema_judge(world.now().date())
    if refresh_only:
        wanted, all_of_it = applied_last(world, wanted, store, target.id), None
    plan = propose(target, wanted, store, adopt=adopt, whole=all_of_it, judge=judge)
    findings += hindrances(plan, loaded.contracts)
    refusals = len(findings)
    output.notes(findings)
    if out is not None:
        save(out, plan, registry, target.id)
    stale: list[DqError] = []
    if agreed_plan is not None:
        plan, stale = agreed(agreed_plan, plan, registry, target.id)
    unpruned = (unclear or _too_many(plan, prune_limit)) if prune else []
    results = (
        apply(
            target,
            plan,
            store,
            allow=_allowed(allow_breaking, allow_destructive),
            prune=prune and not unpruned,
            run=RegisterRun(str(uuid.uuid4()), world.now(), registry),
        )
        if apply_it
        else []
    )
    beside: list[Governed] = []
    live_plan = not refresh_only and agreed_plan is None
    if parts and live_plan:
        beside.append(
            govern(
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
        )
    if timing is not None and live_plan:
        scheduled, kept = keep_schedules(
            world,
            timing,
            loaded.contracts,
            plan,
            results,
            store,
            target.id,
            role=role_arn,
            whole=not unclear,
            apply_it=apply_it,
            prune=prune and not unclear,
            most=prune_limit,
        )
        beside.append(scheduled)
        unpruned = [*unpruned, *kept]
    if (parts or timing is not None) and not live_plan:
        output.note(
            "dq: only the tables are looked at: a kept plan and --refresh-only are about nothing else."
        )
    for finding in (one for governed in beside for one in governed.findings):
        findings.append(finding)
        output.note(str(finding))
    if format is output.PageFormat.MARKDOWN:
        output.block(as_markdown(plan, findings, unclear, beside))
    elif format is output.PageFormat.JSON:
        orphans = {"judged": not unclear, "reasons": unclear or unpruned}
        rows = [finding.as_dict() for finding in findings]
        more = {one.name.lower().replace(" ", "_"): governed_as_dict(one) for one in beside}
        output.as_json({**as_dict(plan, results), **more, "orphans": orphans, "findings": rows})
    else:
        describe(plan, results, applied=apply_it)
        for governed in beside:
            describe_governed(governed, applied=apply_it)
        for reason in unclear:
            output.line(f"Orphans are not judged: {reason}.")
    for reason in unpruned:
        output.note(f"dq: nothing is pruned: {reason}.")
    for error in stale:
        output.note(f"dq: {error}")
    wrong = unpruned or refusals or stale or plan.conflicts or any(one.failed for one in beside)
    if wrong or any(one.error is not None for one in results):
        raise typer.Exit(3)
    pending = any(action.writes for action in plan.actions) or any(one.steps for one in beside)
    raise typer.Exit(1 if check and not apply_it and pending else 0)


def _emit(world: World, place: Path, loaded: Loaded, server_of: ServerOf, registry: str) -> None:
    """Prints the stack; where a contract or a subscription is refused, none: it would lack their names."""
    wanted, refused = tables(
        world, loaded.contracts, server_of, partial(specified, world, registry, "glue", None)
    )
    agreed = agreed_subscriptions(world, registry_root(place), {one.id for one in loaded.contracts})
    findings = (*loaded.findings, *refused, *agreed.findings)
    output.notes(findings)
    if findings:
        raise typer.Exit(3)
    output.as_json(landing_zone(world, loaded.contracts, wanted, agreed.subscriptions))


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


def run(world: World, root: Path, contracts: list[Contract], store: Store, catalog: Catalog) -> None:
    """Plan, apply and show the tables of a registry in the embedded catalog, as the demonstration does."""
    specify = partial(specified, world, registry_name(root), "local", catalog)
    wanted, _ = tables(world, contracts, lambda _: None, specify)
    plan = propose(catalog, wanted, store, judge=schema_judge(world.now().date()))
    describe(plan, apply(catalog, plan, store), applied=True)
