"""dq outbox"""

from __future__ import annotations

import typer

from dq.cli import output
from dq.operations.alerting import describe_outstanding
from dq.operations.incidents import outbox


def command(
    dismiss: str = typer.Option(
        None, "--dismiss", help="Discard the alerts rejected by this target, e.g. slack:#sales."
    ),
    by: str = typer.Option(None, "--by", help="Who discards them."),
    format: output.Format = output.FORMAT,
) -> None:
    """List undelivered alerts: pending and rejected.

    A rejected alert is sent to another channel, retried every hour, and retried when the contract names
    another target. --dismiss discards it; the history of its incident records who did.

    Exit codes: 0 none undelivered, 2 no rejected alerts for that target, 4 an alert is rejected, or has
    failed for 15 minutes.

    Example: dq outbox
    """
    outcome = outbox(dismiss=dismiss, by=by)
    if outcome.dismissed:
        output.note(f"discarded: {outcome.dismissed}")
    if format is output.Format.JSON:
        output.as_json(outcome.as_list())
    else:
        for row in outcome.outstanding:
            output.line(describe_outstanding(row))
        if not outcome.outstanding:
            output.line("No undelivered alerts.")
    raise typer.Exit(outcome.exit_code)
