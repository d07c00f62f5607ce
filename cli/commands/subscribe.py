"""dq subscribe"""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import note
from dq.operations.subscriptions import subscribe

_DAY = ["%Y-%m-%d"]


def command(
    contract: str = typer.Argument(..., help="ID of the contract."),
    path: Path = typer.Argument(Path(), help="Folder or file of the registry (default: the working folder)."),
    team: str = typer.Option(..., "--team", help="The team that consumes."),
    purpose: str = typer.Option(..., "--purpose", help="What the data is used for."),
    major: int = typer.Option(None, "--major", help="Major version of the contract (default: the newest)."),
    columns: list[str] = typer.Option(
        None, "--columns", help="A column as object.column, or an object (default: all). Repeatable."
    ),
    tags: list[str] = typer.Option(None, "--tag", help="Columns and objects with this tag. Repeatable."),
    account: str = typer.Option(None, "--account", help="AWS account that reads, 12 digits."),
    principal: str = typer.Option(None, "--principal", help="ARN of the only role or user that reads."),
    contact: str = typer.Option(None, "--contact", help="How to reach the team."),
    row_filter: str = typer.Option(None, "--row-filter", help="SQL predicate: only these rows."),
    since: datetime = typer.Option(None, "--from", formats=_DAY, help="First day (default: today, in UTC)."),
    until: datetime = typer.Option(None, "--until", formats=_DAY, help="Last day (default: no end)."),
    open_branch: bool = typer.Option(
        False, "--open", help="Commit it on a new branch, and push that if there is a remote."
    ),
    format: output.Format = output.FORMAT,
) -> None:
    """Write a subscription to a contract: which team uses which columns, and for what.

    The file is subscriptions/ID/TEAM.yaml in the registry. Terms that dq validate would reject are
    refused. With --open, the file is committed on the branch subscribe/ID-TEAM, from the default branch
    of the remote; the work tree does not change.

    Exit codes: 0 written, 2 invalid terms or options, or the file exists, 3 Git failed.

    Example: dq subscribe orders --team billing --columns orders.amount --purpose Invoices --open
    """
    outcome = subscribe(
        contract,
        path,
        team=team,
        purpose=purpose,
        major=major,
        columns=[name.strip() for entry in columns or () for name in entry.split(",")],
        tags=tags or (),
        account=account,
        principal=principal,
        contact=contact,
        row_filter=row_filter,
        since=_day(since),
        until=_day(until),
        open_branch=open_branch,
    )
    for text in outcome.notes:
        note(text)
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
        raise typer.Exit(outcome.exit_code)
    branch = outcome.branch
    if branch is None:
        output.line(f"Wrote {outcome.root / outcome.file}.")
    else:
        pushed = f"not pushed: {branch.unpushed}" if branch.unpushed else "pushed to origin"
        output.line(f"Committed {outcome.file} on {branch.name} ({branch.commit[:12]}), {pushed}.")
    if outcome.approval_needed:
        output.line(f"It needs an approval: {outcome.approval_needed}")


def _day(value: datetime | None) -> date | None:
    return None if value is None else value.date()
