"""dq link"""

from __future__ import annotations

import typer

from dq.cli import output
from dq.cli.context import ROLE
from dq.operations.link import link


def command(
    table: str = typer.Argument(help="Shared table, as DATABASE.TABLE."),
    owner: str = typer.Option(..., "--owner", help="AWS account ID of the owner, 12 digits."),
    principal: str = typer.Option(..., "--principal", help="ARN of the role or user that will read it."),
    database: str = typer.Option(
        None, "--database", help="Database of the resource link (default: the shared table's)."
    ),
    name: str = typer.Option(None, "--name", help="Name of the resource link (default: the table's)."),
    region: str = typer.Option("", "--region", help="AWS region of the owner, if different."),
    role_arn: str = ROLE,
    apply_it: bool = typer.Option(False, "--apply", help="Apply the plan. Without it, nothing is changed."),
) -> None:
    """Plan access to a shared table from this AWS account; --apply to set it up.

    For consumers, with credentials of their own account: accepts the owner's resource share, creates a
    database and a resource link, and grants DESCRIBE on the link and SELECT on the shared table.
    Idempotent: existing resources are left alone.

    Exit codes: 0 done or planned, 2 invalid options, 3 something was refused or could not be read.

    Example: dq link sales.orders --owner 123456789012 --principal arn:aws:iam::210987654321:role/billing
    """
    outcome = link(
        table,
        owner=owner,
        principal=principal,
        database=database,
        name=name,
        region=region,
        role_arn=role_arn,
        apply=apply_it,
    )
    for step in outcome.steps:
        output.line(f"  {step}")
    if outcome.problem is not None:
        output.problem(outcome.problem)
    elif not outcome.steps:
        output.line("Nothing to do.")
    elif not apply_it:
        output.line("No changes made. Use --apply to apply this plan.")
    raise typer.Exit(outcome.exit_code)
