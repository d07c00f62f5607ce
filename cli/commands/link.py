"""dq link"""

from __future__ import annotations

import typer

from dq.cli import output
from dq.cli.context import ROLE
from dq.operations.link import link


def command(
    table: str = typer.Argument(help="The table that was shared, as database.table."),
    owner: str = typer.Option(..., "--owner", help="The account that shares it, 12 digits."),
    principal: str = typer.Option(..., "--principal", help="The ARN of the role or user that reads it."),
    database: str = typer.Option(None, "--database", help="The link's database; by default the same name."),
    name: str = typer.Option(None, "--name", help="The link's name; by default the table's."),
    region: str = typer.Option("", "--region", help="The owner's region, where it is another."),
    role_arn: str = ROLE,
    apply_it: bool = typer.Option(False, "--apply", help="Do it. Without it nothing is written."),
) -> None:
    """Show what a shared table lacks to be read in this account; with --apply, do it.

    For consumers in AWS, with the credentials of their own account: accepts the owner's share, creates a
    database and a resource link, and grants DESCRIBE on the link and SELECT on what was shared behind it.
    What is so already is left alone, so it can be run again at any time.

    Exit codes: 0 done, or shown, 2 an option cannot be understood, 3 something was refused or could not be
    read.

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
        output.line("Nothing was written. Add --apply to do it.")
    raise typer.Exit(outcome.exit_code)
