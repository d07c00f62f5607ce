"""dq subscribe"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import note
from dq.contracts.outcome import Severity, UsageError
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
    approvers: list[str] = typer.Option(
        None, "--approver", help="Who approved it, if the policy needs no signed approval. Repeatable."
    ),
    alert_channel: str = typer.Option(
        None, "--alert-channel", help="Channel for breaches that affect this use, e.g. '#billing'."
    ),
    alert_tool: str = typer.Option(None, "--alert-tool", help="Tool of that channel, e.g. slack or email."),
    severities: list[Severity] = typer.Option(
        None,
        "--severity",
        metavar="<severity>",
        help="Severity to notify of: info, warning, error or critical (default: all but info). Repeatable.",
    ),
    escalate_after: str = typer.Option(
        None,
        "--escalate-after",
        help="Only what is still open and not acknowledged after this time, e.g. 30m.",
    ),
    quiet_hours: str = typer.Option(None, "--quiet-hours", help="Quiet hours, e.g. 22:00-07:00."),
    quiet_severities: list[Severity] = typer.Option(
        None,
        "--quiet-severity",
        metavar="<severity>",
        help="Severity that waits during quiet hours (default: info and warning). Repeatable.",
    ),
    needs_by: str = typer.Option(
        None, "--needs-by", help="Latest time of a day's first delivery, e.g. 07:30, or 07:30+1d."
    ),
    needs_quality: list[str] = typer.Option(
        None,
        "--needs-quality",
        help="A clause that is relied on, e.g. orders.amount.required (default: all). Repeatable.",
    ),
    timezone: str = typer.Option(
        None, "--timezone", help="IANA zone of --needs-by and --quiet-hours (default: UTC)."
    ),
    open_branch: bool = typer.Option(
        False, "--open", help="Commit it on a new branch, and push that if there is a remote."
    ),
    format: output.Format = output.FORMAT,
) -> None:
    """Write a subscription to a contract: which team uses which columns, and for what.

    The file is subscriptions/ID/TEAM.yaml in the registry. Terms that dq validate would reject are
    refused. With --open, the file is committed on the branch subscribe/ID-TEAM, from the default branch
    of the remote; the work tree does not change.

    --alert-channel and --alert-tool name the channel that is notified of breaches, --needs-by and
    --needs-quality what the team relies on. dq validate warns if the contract promises less.

    Exit codes: 0 written, 2 invalid terms or options, or the file exists, 3 Git failed.

    Example: dq subscribe orders --team billing --columns orders.amount --purpose Invoices --open
    """
    if timezone is not None and needs_by is None and quiet_hours is None:
        raise UsageError("--timezone needs --needs-by or --quiet-hours.", "Pass one, or omit --timezone.")
    alerts = {
        "channel": alert_channel,
        "tool": alert_tool,
        "severities": severities,
        "escalateAfter": escalate_after,
        "quiet": quiet_hours,
        "timezone": timezone if quiet_hours is not None else None,
        "quietSeverities": quiet_severities,
    }
    needs = {
        "by": needs_by,
        "timezone": timezone if needs_by is not None else None,
        "quality": _names(needs_quality),
    }
    outcome = subscribe(
        contract,
        path,
        team=team,
        purpose=purpose,
        major=major,
        columns=_names(columns),
        tags=tags or (),
        account=account,
        principal=principal,
        contact=contact,
        row_filter=row_filter,
        since=_day(since),
        until=_day(until),
        approvers=approvers or (),
        alerts=_present(alerts) or None,
        needs=_present(needs) or None,
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


def _names(entries: list[str] | None) -> list[str]:
    """Return the names of a repeatable option, which may have several in one value."""
    return [name.strip() for entry in entries or () for name in entry.split(",")]


def _present(terms: Mapping[str, object]) -> dict[str, object]:
    """Return the terms whose option is set; an empty text is set."""
    return {key: value for key, value in terms.items() if value not in (None, [])}


def _day(value: datetime | None) -> date | None:
    return None if value is None else value.date()
