"""dq cycles exclude"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import CHANNEL, instant_or_none, undelivered
from dq.operations.runtime.context import parse_instant
from dq.operations.schedule import excuse


def command(
    # Required, so that a whole registry is not excluded by accident.
    paths: list[Path] = typer.Argument(help="Contract files or folders."),
    due: list[str] = typer.Option([], "--due", help="Due time of a delivery; repeatable."),
    since: str = typer.Option(None, "--from", help="First due time of a range."),
    until: str = typer.Option(None, "--to", help="Last due time of a range, inclusive."),
    slo: str = typer.Option(None, "--slo", help="Only this SLO, by its id."),
    by: str = typer.Option(..., "--by", help="Who excludes them."),
    reason: str = typer.Option(..., "--reason", help="Reason."),
    undo: bool = typer.Option(False, "--undo", help="Count the deliveries again."),
    channel: str = CHANNEL,
    format: output.Format = output.FORMAT,
) -> None:
    """Exclude deliveries from their SLO, before or after they are due.

    Author and reason are stored permanently; --undo adds an entry and deletes none. An open incident of
    the delivery is resolved as excused.

    Exit codes: 0 done, 2 no delivery is due at that time, or none is excluded (--undo), 3 a contract
    could not be read, 4 an alert could not be delivered.

    Example: dq cycles exclude orders.odcs.yaml --due 2026-05-01T06:00:00Z --by ann --reason 'planned outage'
    """
    outcome = excuse(
        paths,
        by=by,
        reason=reason,
        due=[parse_instant(text) for text in due],
        since=instant_or_none(since),
        until=instant_or_none(until),
        slo=slo,
        undo=undo,
        channel=channel,
    )
    output.notes(outcome.findings)
    if format is output.Format.JSON:
        output.as_json(outcome.as_list())
    else:
        what = "counted again" if undo else "excluded"
        output.line(f"{what}: {len(outcome.excuses)}, already evaluated: {outcome.judged}")
    undelivered(outcome.drained)
    raise typer.Exit(outcome.exit_code)
