"""dq register"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import ACCOUNT, CATALOG, PATHS, ROLE
from dq.cli.plan_output import as_markdown, describe, describe_governed, show_log
from dq.contracts.outcome import UsageError
from dq.operations.register import (
    RegisterOutcome,
    RegisterRequest,
    allowed_grades,
    changes,
    emit_landing_zone,
    run,
)
from dq.operations.runtime.context import runtime_context


def command(
    paths: list[Path] = PATHS,
    apply_it: bool = typer.Option(False, "--apply", help="Apply the plan. Without it, nothing is changed."),
    check: bool = typer.Option(False, "--check", help="Exit with 1 if changes are pending."),
    catalog: str = CATALOG,
    role_arn: str = ROLE,
    catalog_id: str = ACCOUNT,
    server: str = typer.Option(None, "--server", help="Server to register if a contract has more than one."),
    environment: str = typer.Option(
        None, "--env", help="Use each contract's server of this environment, e.g. prod."
    ),
    adopt: bool = typer.Option(False, "--adopt", help="Take ownership of existing unmanaged tables."),
    prune: bool = typer.Option(False, "--prune", help="Delete managed tables that no contract declares."),
    prune_limit: int = typer.Option(
        None, "--prune-limit", min=0, help="Maximum number of tables --prune may delete; see above."
    ),
    allow_breaking: bool = typer.Option(False, "--allow-breaking", help="Allow changes that break readers."),
    allow_destructive: bool = typer.Option(
        False, "--allow-destructive", help="Allow changes that lose data."
    ),
    out: Path = typer.Option(None, "--out", help="Save the plan to this file, for --plan."),
    agreed_plan: Path = typer.Option(None, "--plan", help="Apply this saved plan; skip what changed since."),
    log: int = typer.Option(None, "--log", min=1, help="Show the last N changes made to the catalog."),
    refresh_only: bool = typer.Option(
        False, "--refresh-only", help="Show drift since the last apply; change nothing."
    ),
    emit_landing_zone_: bool = typer.Option(
        False,
        "--emit-landing-zone",
        help="Print a CloudFormation template for the account; makes no AWS calls.",
    ),
    watcher: bool = typer.Option(
        False, "--watcher", help="With --emit-landing-zone: add a Lambda function that watches deliveries."
    ),
    format: output.PageFormat = output.COMMENT_FORMAT,
) -> None:
    """Plan the catalog changes the contracts require; --apply to make them.

    Never deletes by default, and never touches unmanaged tables. Changes that others made to managed
    tables are shown as drift. A contract that cannot be registered is a finding and does not stop the
    others.

    --prune deletes managed tables that no contract declares. It needs a run over the whole registry (the
    folder with dq-policy.yaml or .git) in which every contract was read and nothing else was refused. One
    table may be deleted, or up to five if that is at most a tenth of the registry's tables; for more, set
    --prune-limit.

    With --env, uses the server of each contract with that 'environment'; if there is none, 'servers' in
    dq-policy.yaml decides: servers: {prod: {orders: lake}}.

    A plan saved with --out is applied with --apply --plan; resources that changed since, in the catalog
    or the contracts, are skipped and reported. --refresh-only compares the catalog with the last applied
    state.

    With the setting lake_formation, locations, tags from 'classification' and grants from subscriptions
    are planned and applied together with Glue tables; only grants made by dq are revoked. With
    schedule_target, EventBridge schedules are created from delivery promises; --prune deletes those
    without a contract.

    Every change and refusal is stored; --log 20 shows the last 20.

    Exit codes: 0 done or nothing to do, 1 changes are pending (--check), 3 something was refused, is
    unmanaged, changed since the plan was saved, or could not be read.

    Example: dq register registry --apply
    """
    request = RegisterRequest(
        tuple(paths or [Path()]),
        apply_it,
        catalog,
        role_arn,
        catalog_id,
        server,
        environment,
        adopt,
        prune,
        prune_limit,
        allowed_grades(allow_breaking, allow_destructive),
        out,
        agreed_plan,
        refresh_only,
        watcher,
    )
    request.validate()
    if watcher and not emit_landing_zone_:
        raise UsageError("--watcher is for --emit-landing-zone.", "Add --emit-landing-zone.")
    context = runtime_context(paths=request.paths)
    store = context.store()
    if log is not None:
        show_log(changes(context, store, request, log), format)
        return
    if emit_landing_zone_:
        zone = emit_landing_zone(context, store, request)
        output.notes(zone.findings)
        if zone.stack is None:
            raise typer.Exit(3)
        output.as_json(zone.stack)
        return
    outcome = run(context, store, request)
    output.notes(outcome.findings)
    _show(outcome, format)
    raise typer.Exit(outcome.exit_code or int(check and not apply_it and outcome.pending))


def _show(outcome: RegisterOutcome, form: output.PageFormat) -> None:
    if form is output.PageFormat.MARKDOWN:
        output.block(as_markdown(outcome))
    elif form is output.PageFormat.JSON:
        output.as_json(outcome.as_dict())
    else:
        describe(outcome.plan, outcome.results, applied=outcome.applied)
        for governed in outcome.governed:
            describe_governed(governed, applied=outcome.applied)
        for reason in outcome.unclear:
            output.line(f"Orphans not evaluated: {reason}.")
    for reason in outcome.unpruned:
        output.note(f"dq: nothing pruned: {reason}.")
    for error in outcome.stale:
        output.note(f"dq: {error}")
