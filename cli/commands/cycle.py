"""dq cycles show"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import instant_or_none, key_value
from dq.operations.runtime.context import format_instant
from dq.operations.status import cycle


def command(
    contract: Path = typer.Argument(help="Contract file."),
    partition: list[str] = typer.Option(
        [], "--partition", help="Partition of the delivery, e.g. day=2026-11-20; repeatable for several keys."
    ),
    due: str = typer.Option(None, "--due", help="Due time of the delivery, e.g. 2026-11-20T06:00:00Z."),
    until: str = typer.Option(
        None, "--until", help="Show whether all deliveries due by this time have arrived."
    ),
    around: str = typer.Option(
        None, "--around", help="Time near which the partition is due, within 40 days (default: now)."
    ),
    object: str = typer.Option(None, "--object", help="Object, if several have an SLO."),
    slo: str = typer.Option(None, "--slo", help="SLO, by its id, if the object has several."),
    server: str = typer.Option(None, "--server", help="Server to use if the contract has more than one."),
    as_of: str = output.AS_OF,
    format: output.Format = output.FORMAT,
) -> None:
    """Show the status of one delivery and the reason, without storing anything.

    The watcher's decision if there is one; otherwise receipts, markers, commits and files are probed. Pass
    one of --partition, --due and --until. With --until, only the watcher's decisions count.

    Exit codes: 0 shown, whatever the status; 2 no such delivery, or several; 3 the contract, the store or
    the data could not be read.

    Example: dq cycles show orders.odcs.yaml --partition day=2026-11-20
    """
    standing = cycle(
        contract,
        object,
        partition=dict(key_value(text, "--partition", "day=2026-11-20") for text in partition) or None,
        due=instant_or_none(due),
        until=instant_or_none(until),
        slo=slo,
        server=server,
        around=instant_or_none(around),
        now=instant_or_none(as_of),
    )
    if format is output.Format.JSON:
        output.as_json(standing.as_dict())
        return
    status = standing.status.replace("_", " ")
    if until:
        status = {True: "complete", False: "not complete", None: "not known yet"}[standing.complete]
    output.line(f"{standing.contract}/{standing.object} {standing.slo}: {status}")
    output.line(f"  {standing.reason}")
    delivered = format_instant(standing.delivered_at) if standing.delivered_at else "not yet"
    output.line(
        f"  due {format_instant(standing.due_at)}, breach {format_instant(standing.breach_at)}, "
        f"delivered {delivered}"
    )
