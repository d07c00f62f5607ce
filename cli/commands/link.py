"""dq link"""

from __future__ import annotations

import re

import typer

from dq.cli.options import ROLE
from dq.cli.terminal import output
from dq.contracts.shared.install import needing
from dq.contracts.shared.outcome import DqError, UsageError


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
    shared_database, dot, shared_table = table.partition(".")
    if not (dot and shared_database and shared_table):
        raise UsageError(f"{table!r} is no database.table.", "Write it as sales.orders.")
    if not re.fullmatch("[0-9]{12}", owner):
        raise UsageError(f"--owner {owner!r} is no account.", "Write its 12 digits.")
    with needing("dq link needs boto3", "aws"):
        from dq.registry.aws.lake_formation import connect_consumer
        from dq.registry.aws.lake_link import LinkTerms
    side, account = connect_consumer(role_arn)
    if account == owner:
        raise UsageError(
            f"These are the credentials of {owner}, which owns the table.",
            "Run it with those of the consumer's account.",
        )
    terms = LinkTerms(
        owner,
        shared_database,
        shared_table,
        account,
        database or shared_database,
        name or shared_table,
        principal,
        region,
    )
    try:
        steps = side.steps(terms)
        for step in steps:
            output.line(f"  {step}")
            if apply_it:
                side.carry_out(step, terms)
    except UsageError:
        raise
    except DqError as error:
        output.problem(error)
        raise typer.Exit(3) from error
    if not steps:
        output.line("Nothing to do.")
    elif not apply_it:
        output.line("Nothing was written. Add --apply to do it.")
