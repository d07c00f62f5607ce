"""dq register"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import ACCOUNT, CATALOG, PATHS, ROLE
from dq.cli.plan_output import as_markdown, describe, describe_governed, show_log
from dq.operations.register import (
    RegisterOutcome,
    RegisterRequest,
    allowed,
    changes,
    emit_landing_zone,
    run,
)
from dq.operations.runtime.context import here


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
    emit_landing_zone_: bool = typer.Option(
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
        allowed(allow_breaking, allow_destructive),
        out,
        agreed_plan,
        refresh_only,
    )
    request.refuse_together()
    world = here(paths=request.paths)
    store = world.store()
    if log is not None:
        show_log(changes(world, store, request, log), format)
        return
    if emit_landing_zone_:
        zone = emit_landing_zone(world, store, request)
        output.notes(zone.findings)
        if zone.stack is None:
            raise typer.Exit(3)
        output.as_json(zone.stack)
        return
    outcome = run(world, store, request)
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
            output.line(f"Orphans are not judged: {reason}.")
    for reason in outcome.unpruned:
        output.note(f"dq: nothing is pruned: {reason}.")
    for error in outcome.stale:
        output.note(f"dq: {error}")
