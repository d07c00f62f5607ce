"""dq incidents test"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import alerts_are_results
from dq.operations.incidents import send_test_alert


def command(
    contract: Path = typer.Argument(None, help="A contract or a folder; its routes are tested."),
    channel: str = typer.Option(None, "--channel", help="One route instead, such as slack:#sales-data."),
    format: output.Format = output.FORMAT,
) -> None:
    """Send one message, marked as a test, through each route of a contract, or through one channel.

    Where a channel can change its message, the test is ended at once. No incident is opened, and the store is
    not touched.

    Exit codes: 0 all arrived, 2 there is no such channel, 3 a contract cannot be read, 4 something did not
    arrive.

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
            if test.mend:
                output.line(f"      {test.mend}")
    raise typer.Exit(outcome.exit_code)
