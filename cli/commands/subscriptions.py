"""dq subscriptions"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from enum import StrEnum
from pathlib import Path

import typer

from dq.cli.terminal import output
from dq.contracts.access.discovery import below, told
from dq.contracts.escaping import markdown_text
from dq.contracts.odcs import ASIDE
from dq.contracts.subscriptions import Subscription
from dq.operations.runtime.context import elapsed, here, registry_root
from dq.operations.subscriptions import load_subscriptions
from dq.validators.reports.markdown import table

_HEADER = ("contract", "consumer", "columns", "since", "until", "state")


class SubscriptionState(StrEnum):
    """Where a subscription stands on a day."""

    ACTIVE = "active"
    ENDING = "ending"
    COMING = "coming"
    OVER = "over"


def command(
    path: Path = typer.Argument(Path(), help="A folder or file of the registry; the working folder."),
    contract: str = typer.Option(None, "--contract", help="Only those of this contract, by its id."),
    team: str = typer.Option(None, "--team", help="Only those of this consumer."),
    within: str = typer.Option(None, "--within", help="Only those that end within this time, such as 30d."),
    as_of: str = output.AS_OF,
    format: output.PageFormat = output.PAGE_FORMAT,
) -> None:
    """List who consumes what, since when and until when.

    With --within, those that are active and end within that time. Whether a subscription is used, dq cannot
    tell: it does not see who reads the data.

    Exit codes: 0 listed, 2 an option cannot be understood, 3 a subscription cannot be read.

    Example: dq subscriptions --within 30d
    """
    world = here(as_of, [path])
    today = world.now().date()
    root = registry_root(path)
    soon = elapsed(within, "--within") if within is not None else timedelta(days=30)
    every, findings = load_subscriptions(root)
    wanted = _wanted(contract, team)
    rows = [(one, _state(one, today, soon)) for one in every if wanted(one)]
    if within is not None:
        rows = [row for row in rows if row[1] is SubscriptionState.ENDING]
    rows.sort(key=lambda row: (row[0].identity, row[0].consumer.team, row[0].start_date, row[0].file))
    output.notes(findings)
    aside = [one for one in below(root).passed if one.kind == ASIDE]
    if aside:
        output.note(f"dq: {told(aside)}")
    if format is output.PageFormat.JSON:
        listed = [_as_dict(one, state) for one, state in rows]
        output.as_json({"subscriptions": listed, "findings": [one.as_dict() for one in findings]})
    elif format is output.PageFormat.MARKDOWN:
        cells = [[markdown_text(cell) for cell in _cells(one, state)] for one, state in rows]
        output.block(table(_HEADER, cells) + "\n")
    elif rows:
        output.table(_HEADER, [_cells(one, state) for one, state in rows])
    else:
        output.line(f"No subscription of {root} is {'ending' if within else 'asked for'} here.")
    raise typer.Exit(3 if findings else 0)


def _wanted(contract: str | None, team: str | None) -> Callable[[Subscription], bool]:
    def wanted(one: Subscription) -> bool:
        return contract in (None, one.contract) and team in (None, one.consumer.team)

    return wanted


def _state(one: Subscription, today: date, soon: timedelta) -> SubscriptionState:
    if one.over(today):
        return SubscriptionState.OVER
    if not one.active(today):
        return SubscriptionState.COMING
    ending = one.end_date is not None and one.end_date - today <= soon
    return SubscriptionState.ENDING if ending else SubscriptionState.ACTIVE


def _cells(one: Subscription, state: SubscriptionState) -> tuple[str, ...]:
    used = [*one.columns, *(f"tag {tag}" for tag in one.tags)]
    shown = ", ".join(used) or "all"
    consumer = f"{one.consumer.team} ({one.reader})" if one.reader else one.consumer.team
    until = str(one.end_date) if one.end_date else "no end"
    return f"{one.contract} {one.major}", consumer, shown, str(one.start_date), until, state.value


def _as_dict(one: Subscription, state: SubscriptionState) -> dict[str, object]:
    return {
        "contract": one.contract,
        "major": one.major,
        "consumer": {
            "team": one.consumer.team,
            "account": one.consumer.account,
            "principal": one.consumer.principal,
            "contact": one.consumer.contact,
        },
        "purpose": one.purpose,
        "columns": list(one.columns),
        "tags": list(one.tags),
        "row_filter": one.row_filter,
        "since": one.start_date.isoformat(),
        "until": one.end_date.isoformat() if one.end_date else None,
        "approvers": one.approvers,
        "state": state.value,
        "file": one.file,
    }
