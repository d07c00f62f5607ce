"""dq incidents silence"""

from __future__ import annotations

import typer

from dq.alerts.incident import key_label
from dq.cli import output
from dq.cli.context import CHANNEL, instant_or_none, undelivered
from dq.operations.incidents import SilenceOutcome, silence


def command(
    what: str = typer.Argument(
        None, help="Pattern of contract/object/slo, e.g. 'orders' or 'sales-*/*/daily', or an incident id."
    ),
    length: str = typer.Option(None, "--for", help="Duration, e.g. 2h or 3d."),
    reason: str = typer.Option(None, "--reason", help="Reason."),
    by: str = typer.Option(None, "--by", help="Who silences it (default: the current user)."),
    end: bool = typer.Option(False, "--end", help="End the silences with this pattern, or of this incident."),
    channel: str = CHANNEL,
    as_of: str = output.AS_OF,
    format: output.Format = output.FORMAT,
) -> None:
    """Mute notifications for new incidents. Without arguments, list active silences.

    Evaluation and history continue. Incidents that are still open when the silence ends are notified
    then. Resolutions of incidents that were already notified are sent immediately. '(platform)', under
    which dq reports its own outages, is muted only by a pattern that names it.

    Exit codes: 0 done, 2 invalid options, or no silence to end, 4 an alert could not be delivered.

    Example: dq incidents silence 'sales-*' --for 2h --reason 'the lake moves' --by ana
    """
    outcome = silence(
        what, length=length, reason=reason, by=by, end=end, channel=channel, now=instant_or_none(as_of)
    )
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict() if outcome.until else outcome.as_list())
    else:
        _show(outcome)
    if outcome.drained is not None:
        undelivered(outcome.drained)
    raise typer.Exit(outcome.exit_code)


def _show(outcome: SilenceOutcome) -> None:
    if outcome.until is not None:
        until, concerned = outcome.until, outcome.incidents
        output.line(f"Silenced until {until:%Y-%m-%d %H:%M}Z; open incidents affected: {len(concerned)}")
        for incident in concerned:
            output.line(f"  {incident.short_id} {key_label(incident.key)}: {incident.title}")
        return
    for row in outcome.silences:
        if outcome.drained is not None:
            output.line(f"No longer silenced: {row.pattern} (by {row.description})")
        else:
            output.line(f"{row.pattern}  until {row.until:%Y-%m-%d %H:%M}Z, by {row.description}")
    if not outcome.silences:
        output.line("No active silences.")
