"""dq link"""

from __future__ import annotations

import typer

from dq.cli import output
from dq.cli.context import ROLE
from dq.operations.link import link, link_stack


def command(
    tables: list[str] = typer.Argument(
        None, help="Shared tables, as DATABASE.TABLE (default: all that the owner shares)."
    ),
    owner: str = typer.Option(..., "--owner", help="AWS account ID of the owner, 12 digits."),
    principal: str = typer.Option(..., "--principal", help="ARN of the role or user that will read them."),
    database: str = typer.Option(
        None, "--database", help="Database of the resource links (default: the shared table's)."
    ),
    name: str = typer.Option(None, "--name", help="Name of the resource link (default: the table's)."),
    region: str = typer.Option("", "--region", help="AWS region of the owner, if different."),
    role_arn: str = ROLE,
    apply_it: bool = typer.Option(False, "--apply", help="Apply the plan. Without it, nothing is changed."),
    prune: bool = typer.Option(
        False, "--prune", help="Also remove links in --database whose tables are no longer shared."
    ),
    emit_stack: bool = typer.Option(
        False,
        "--emit-stack",
        help="Print a CloudFormation template that does this every hour; makes no AWS calls.",
    ),
) -> None:
    """Plan access to shared tables from this AWS account; --apply to set it up.

    For consumers, with credentials of their own account: accepts the owner's resource shares, creates a
    database and a resource link for each table, and grants DESCRIBE on the link and SELECT on the shared
    table. Columns that the owner adds to the share or takes out of it are granted or revoked too.
    Idempotent: what dq did not create or grant is left alone.

    --prune deletes links and revokes grants of dq for tables that the owner no longer shares; dq records
    its own in the parameters of the database of the links. Without TABLES, and with --prune or
    --emit-stack, --database is required.

    --emit-stack prints a CloudFormation template with a Lambda function that does the same as
    --apply --prune, every hour and when a share changes, with its role, dead-letter queue and alarms.

    Exit codes: 0 done or planned, 2 invalid options, 3 something was refused or could not be read.

    Example: dq link sales.orders --owner 123456789012 --principal arn:aws:iam::210987654321:role/billing
    """
    chosen = tables or []
    if emit_stack:
        output.as_json(
            link_stack(*chosen, owner=owner, principal=principal, database=database, name=name, region=region)
        )
        return
    outcome = link(
        *chosen,
        owner=owner,
        principal=principal,
        database=database,
        name=name,
        region=region,
        role_arn=role_arn,
        apply=apply_it,
        prune=prune,
    )
    for step in outcome.steps:
        output.line(f"  {step}")
    for note in outcome.notes:
        output.note(f"dq: {note}")
    for problem in outcome.problems:
        output.problem(problem)
    if not outcome.problems and not outcome.steps:
        output.line("Nothing to do.")
    elif not apply_it and outcome.steps:
        output.line("No changes made. Use --apply to apply this plan.")
    raise typer.Exit(outcome.exit_code)
