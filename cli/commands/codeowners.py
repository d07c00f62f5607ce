"""dq codeowners"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import note
from dq.operations.codeowners import codeowners


def command(
    path: Path = typer.Argument(Path(), help="Folder or file of the registry (default: the working folder)."),
    organization: str = typer.Option(
        "",
        "--organization",
        help="Organization of the teams, e.g. acme for @acme/sales; else they are left out.",
    ),
    check: bool = typer.Option(False, "--check", help="Exit with 1 if the file would change; write nothing."),
    format: output.Format = output.FORMAT,
) -> None:
    """Write the owners of contracts and subscriptions into CODEOWNERS, for required reviews.

    Owners are the approvers of each contract: members of its team with the role owner, steward or
    approver, approvers of its roles, and the team itself, unless the contract has classified columns.
    Each contract also gets a line for the folder subscriptions/ID/. Lines outside the marked block are
    kept; a later line takes precedence in CODEOWNERS.

    Exit codes: 0 written or up to date, 1 it would change (--check), 2 invalid options or files, 3 a
    contract could not be read.

    Example: dq codeowners registry --organization acme --check
    """
    outcome = codeowners(path, organization=organization, check=check)
    output.notes(outcome.findings)
    for text in outcome.notes:
        note(text)
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    elif outcome.findings:
        output.line(f"{outcome.file} was not written.")
    elif outcome.changed:
        output.line(f"{outcome.file} is out of date." if check else f"Wrote {outcome.file}.")
    else:
        output.line(f"{outcome.file} is up to date.")
    raise typer.Exit(outcome.exit_code)
