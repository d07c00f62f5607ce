"""dq cycles exclude"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import CHANNEL, at, undelivered
from dq.operations.runtime.context import instant
from dq.operations.schedule import excuse


def command(
    # Named, so that nobody excuses a whole registry from within it.
    paths: list[Path] = typer.Argument(help="Contract files or folders."),
    due: list[str] = typer.Option([], "--due", help="The due instant of a delivery; again for more."),
    since: str = typer.Option(None, "--from", help="All that are due from this instant on …"),
    until: str = typer.Option(None, "--to", help="… up to this one."),
    slo: str = typer.Option(None, "--slo", help="Only this service level, by its id."),
    by: str = typer.Option(..., "--by", help="Who excuses them."),
    reason: str = typer.Option(..., "--reason", help="Why."),
    undo: bool = typer.Option(False, "--undo", help="They count after all."),
    channel: str = CHANNEL,
    format: output.Format = output.FORMAT,
) -> None:
    """Take deliveries of the contracts at the paths out of the count, before or after they were due.

    Who did it and why is kept for good; --undo adds a word, and takes none away. An open incident ends as
    excused.

    Exit codes: 0 done, 2 nothing is due then, or nothing of it is excused (--undo), 3 a contract could not
    be read, 4 an alert could not be delivered.

    Example: dq cycles exclude orders.odcs.yaml --due 2026-05-01T06:00:00Z --by ann --reason 'planned outage'
    """
    outcome = excuse(
        paths,
        by=by,
        reason=reason,
        due=[instant(text) for text in due],
        since=at(since),
        until=at(until),
        slo=slo,
        undo=undo,
        channel=channel,
    )
    output.notes(outcome.findings)
    if format is output.Format.JSON:
        output.as_json(outcome.as_list())
    else:
        what = "counted again" if undo else "excused"
        output.line(f"{what}: {len(outcome.excuses)}, of them judged before: {outcome.judged}")
    undelivered(outcome.drained)
    raise typer.Exit(outcome.exit_code)
