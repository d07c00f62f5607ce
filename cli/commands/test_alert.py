"""dq incidents test"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import alerts_are_results
from dq.operations.incidents import send_test_alert


def command(
    contract: Path = typer.Argument(None, help="Contract file or folder whose routes are tested."),
    channel: str = typer.Option(None, "--channel", help="Test this channel instead, e.g. slack:#sales-data."),
    format: output.Format = output.FORMAT,
) -> None:
    """Send a test alert through each route of a contract, or one channel.

    On channels that can edit messages, the test is resolved immediately. No incident is opened and
    nothing is stored.

    Exit codes: 0 all delivered, 2 no such channel, 3 a contract could not be read, 4 a test alert was not
    delivered.

    Example: dq incidents test orders.odcs.yaml
    """
    if format is output.Format.TEXT:
        alerts_are_results()
    outcome = send_test_alert(contract, channel=channel)
    output.notes(outcome.findings)
    if format is output.Format.JSON:
        output.as_json(outcome.as_list())
    else:
        for test in outcome.routes:
            place = f"{test.channel} {test.target}".strip()
            output.line(f"  {output.mark(test.good)} {f'{place}: ' if place else ''}{test.result}")
            if test.hint:
                output.line(f"      {test.hint}")
    raise typer.Exit(outcome.exit_code)
