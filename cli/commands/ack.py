"""dq incidents ack"""

from __future__ import annotations

import typer

from dq.alerts.incident import IncidentState, key_label
from dq.cli import output
from dq.cli.context import CHANNEL, instant_or_none, undelivered
from dq.operations.alerting import answer_text
from dq.operations.incidents import acknowledge


def command(
    incident: str = typer.Argument(
        help="Incident id or its beginning; or a contract, file or folder for all its open incidents."
    ),
    by: str = typer.Option(None, "--by", help="Who acknowledges it (default: the current user)."),
    real: bool = typer.Option(
        None,
        "--real/--not-real",
        help="Answer to unusual numbers: a real problem, or a false alarm.",
    ),
    channel: str = CHANNEL,
    as_of: str = output.AS_OF,
    format: output.Format = output.FORMAT,
) -> None:
    """Acknowledge an incident and stop its reminders and escalations.

    Its channels are notified. The acknowledgement lasts until the incident is resolved; if it reopens
    later, it is open again.

    --real and --not-real answer alarms of the check unusual, also after they are over. Numbers that are not
    real problems count as normal from then on, those of real problems are left out, and dq status shows how
    many alarms were right.

    Exit codes: 0 acknowledged, 2 no such open incident, 4 an alert could not be delivered.

    Example: dq incidents ack 3f2a91c0 --by ana
    """
    outcome = acknowledge(incident, by=by, real=real, channel=channel, now=instant_or_none(as_of))
    if format is output.Format.JSON:
        output.as_json(outcome.as_list())
    else:
        for row in outcome.incidents:
            name = f"{row.short_id} {key_label(row.key)}"
            if row.id in outcome.answered and outcome.real is not None:
                output.line(f"{name}: its unusual numbers are {answer_text(real=outcome.real)}.")
            if row.id in outcome.acknowledged:
                output.line(f"{name}: acknowledged by {outcome.by}.")
            elif row.state is IncidentState.ACKED:
                output.line(f"{name}: already acknowledged by {row.acked_by}.")
            else:
                output.line(f"{name}: already closed ({row.state.replace('_', ' ')}).")
    undelivered(outcome.drained)
    raise typer.Exit(outcome.exit_code)
