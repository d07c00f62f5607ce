"""dq schedule"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice

import typer

from dq.cli.terminal import output
from dq.cli.world.environment import here, instant
from dq.contracts.schedule import Dialect, DstPolicy, Note, parse, zone
from dq.contracts.shared.fault import TextFault

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Look at schedules: when a cron expression fires."""


@app.command("next")
def following(
    expression: str = typer.Argument(help="The cron expression, quoted."),
    tz: str = typer.Option("UTC", "--tz", help="IANA zone of the expression."),
    after: str = typer.Option(None, "--after", help="Strictly after this instant; now by default."),
    count: int = typer.Option(5, "--count", min=1, max=10_000, help="How many instants."),
    dst: DstPolicy = typer.Option(None, "--dst", help="What a time inside a clock change means."),
    dialect: Dialect = typer.Option(Dialect.UNIX, "--dialect", help="How the expression is to be read."),
    format: output.Format = output.FORMAT,
) -> None:
    """Print the next instants at which a schedule is due, in UTC, or the one thing that is wrong with it.

    Example: dq schedule next '30 2 * * *' --tz America/New_York --after 2026-03-07T12:00:00Z
    """
    start = instant(after) if after else here().now()
    schedule = parse(expression, timezone=tz, dialect=dialect, dst=dst)
    if isinstance(schedule, TextFault):
        if format is output.Format.JSON:
            finding = {"rule": schedule.code, "message": schedule.message, "mend": schedule.mend}
            output.as_json({"expression": expression, "timezone": tz, "next_due_utc": [], "finding": finding})
        else:
            output.line(f"{schedule.code}: {schedule.message} {schedule.mend}")
        raise typer.Exit(1)
    dues = list(islice(schedule.after(start), count))
    if format is output.Format.JSON:
        output.as_json(
            {
                "expression": expression,
                "timezone": tz,
                "dialect": schedule.dialect,
                "dst": schedule.dst,
                "next_due_utc": [_utc(due.at) for due in dues],
                "ended": len(dues) < count,
                "finding": None,
            }
        )
        return
    local = zone(tz)
    for due in dues:
        note = "" if due.note is Note.NORMAL else f"  ({due.note.replace('_', ' ')})"
        there = "" if isinstance(local, TextFault) else f"  {due.at.astimezone(local):%a %Y-%m-%d %H:%M %Z}"
        output.line(f"{_utc(due.at)}{there}{note}")
    if len(dues) < count:
        output.line("The schedule ends here.")


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
