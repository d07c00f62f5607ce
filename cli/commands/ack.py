"""dq incidents ack"""

from __future__ import annotations

import typer

from dq.alerts.incident import IncidentState
from dq.cli import output
from dq.cli.context import CHANNEL, at, undelivered
from dq.operations.incidents import acknowledge


def command(
    incident: str = typer.Argument(
        help="The beginning of an incident's id, or a contract's key: all that is open of it."
    ),
    by: str = typer.Option(None, "--by", help="Who is on it; the user of this machine by default."),
    channel: str = CHANNEL,
    as_of: str = output.AS_OF,
    format: output.Format = output.FORMAT,
) -> None:
    """Say that somebody is on an incident: its channels hear who, and nobody else is called or reminded.

    What is acknowledged stays so until it ends; when it breaks again after that, it is open again.

    Exit codes: 0 it is acknowledged, 2 there is no such open incident, 4 an alert could not be delivered.

    Example: dq incidents ack 3f2a91c0 --by ana
    """
    outcome = acknowledge(incident, by=by, channel=channel, now=at(as_of))
    if format is output.Format.JSON:
        output.as_json(outcome.as_list())
    else:
        for row in outcome.incidents:
            if row.id in outcome.acknowledged:
                output.line(f"{row.short_id} {row.key}: {outcome.by} is on it.")
            elif row.state is IncidentState.ACKED:
                output.line(f"{row.short_id} {row.key}: {row.acked_by} is on it already.")
            else:
                output.line(f"{row.short_id} {row.key}: it is over ({row.state.replace('_', ' ')}).")
    undelivered(outcome.drained)
    raise typer.Exit(outcome.exit_code)
