"""dq subscriptions"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import instant_or_none, note
from dq.contracts.escaping import markdown_text
from dq.contracts.subscriptions import Approval, Subscription
from dq.operations.subscriptions import SubscriptionState, list_subscriptions
from dq.validators.reports.markdown import table

_HEADER = ("contract", "consumer", "columns", "since", "until", "state", "approved")


def command(
    path: Path = typer.Argument(Path(), help="Folder or file of the registry (default: the working folder)."),
    contract: str = typer.Option(None, "--contract", help="Only subscriptions to this contract, by its id."),
    team: str = typer.Option(None, "--team", help="Only subscriptions of this team."),
    within: str = typer.Option(
        None, "--within", help="Only subscriptions that end within this time, e.g. 30d."
    ),
    as_of: str = output.AS_OF,
    format: output.PageFormat = output.PAGE_FORMAT,
) -> None:
    """List the consumers of data products and their terms.

    With --within, lists active subscriptions that end within that time. dq does not see who reads the
    data, so it cannot tell whether a subscription is used. An approval is shown with its commit if it binds;
    --format json has the reasons if it does not.

    Exit codes: 0 listed, 2 invalid options, 3 a subscription could not be read.

    Example: dq subscriptions --within 30d
    """
    outcome = list_subscriptions(
        path, contract=contract, team=team, within=within, now=instant_or_none(as_of)
    )
    output.notes(outcome.findings)
    for text in outcome.notes:
        note(text)
    rows = [
        _cells(subscription, state, outcome.approvals.get(subscription.file))
        for subscription, state in outcome.subscriptions
    ]
    if format is output.PageFormat.JSON:
        output.as_json(outcome.as_dict())
    elif format is output.PageFormat.MARKDOWN:
        output.block(table(_HEADER, [[markdown_text(cell) for cell in row] for row in rows]) + "\n")
    elif rows:
        output.table(_HEADER, rows)
    else:
        output.line(f"No {'ending ' if within else ''}subscriptions in {outcome.root}.")
    raise typer.Exit(outcome.exit_code)


def _cells(
    subscription: Subscription, state: SubscriptionState, approval: Approval | None
) -> tuple[str, ...]:
    selected = [*subscription.columns, *(f"tag {tag}" for tag in subscription.tags)]
    columns_text = ", ".join(selected) or "all"
    consumer = (
        f"{subscription.consumer.team} ({subscription.reader})"
        if subscription.reader
        else subscription.consumer.team
    )
    if approval is None or not subscription.approvers:
        approved = "-"
    else:
        approved = f"{approval.approver} {approval.commit[:12]}".rstrip() or "not proven"
    until = str(subscription.end_date) if subscription.end_date else "no end"
    return (
        f"{subscription.contract} {subscription.major}",
        consumer,
        columns_text,
        str(subscription.start_date),
        until,
        state.value,
        approved,
    )
