"""dq outbox"""

from __future__ import annotations

import typer

from dq.cli import output
from dq.operations.alerting import told
from dq.operations.incidents import outbox


def command(
    dismiss: str = typer.Option(None, "--dismiss", help="Let go of what this place refused: slack:#sales."),
    by: str = typer.Option(None, "--by", help="Who lets go of it."),
    format: output.Format = output.FORMAT,
) -> None:
    """Show the alerts that people should have and have not: what waits, and what a place refuses.

    What is refused is told to somebody else, and tried again every hour and whenever a contract names
    another place. --dismiss lets go of it; the incidents' histories keep by whom.

    Exit codes: 0 all is well, 2 that place refused nothing, 4 something is refused, or was tried in vain
    for a quarter of an hour.

    Example: dq outbox
    """
    outcome = outbox(dismiss=dismiss, by=by)
    if outcome.dismissed:
        output.note(f"let go of: {outcome.dismissed}")
    if format is output.Format.JSON:
        output.as_json(outcome.as_list())
    else:
        for row in outcome.outstanding:
            output.line(told(row))
        if not outcome.outstanding:
            output.line("Nothing waits, and nothing was refused.")
    raise typer.Exit(outcome.exit_code)
