"""dq schedule"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import at
from dq.contracts.outcome import TextFault
from dq.contracts.schedule import clock
from dq.contracts.schedule.calendar import zone
from dq.contracts.schedule.clock import DstPolicy, Note, Schedule
from dq.contracts.schedule.cron import Dialect
from dq.dataquality.delivery.cycle import label
from dq.dataquality.delivery.notify import local_time
from dq.operations.schedule import (
    ConvertOutcome,
    DeliverySchedule,
    convert_schedule,
    hazard,
    next_deliveries,
    next_dues,
    utc,
)

app = typer.Typer(no_args_is_help=True)

# So many clock changes are printed.
_MOST = 6


@app.callback()
def _group() -> None:
    """Look at schedules: when a cron or a contract is due, and what it is called elsewhere."""


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

    Exit codes: 0 printed, 2 the expression or its zone cannot be understood.

    Example: dq schedule next '30 2 * * *' --tz America/New_York --after 2026-03-07T12:00:00Z
    """
    outcome = next_dues(expression, timezone=tz, after=at(after), count=count, dst=dst, dialect=dialect)
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    elif outcome.fault is not None:
        _refused(outcome.fault)
    else:
        local = zone(tz)
        for due in outcome.dues:
            note = "" if due.note is Note.NORMAL else f"  ({due.note.replace('_', ' ')})"
            civil = (
                "" if isinstance(local, TextFault) else f"  {due.at.astimezone(local):%a %Y-%m-%d %H:%M %Z}"
            )
            output.line(f"{utc(due.at)}{civil}{note}")
        if len(outcome.dues) < count:
            output.line("The schedule ends here.")
    raise typer.Exit(outcome.exit_code)


@app.command()
def explain(
    contract: Path = typer.Argument(help="The contract's file."),
    after: str = typer.Option(None, "--after", help="Strictly after this instant; now by default."),
    count: int = typer.Option(10, "--count", min=1, max=1_000, help="How many deliveries of each promise."),
    format: output.Format = output.FORMAT,
) -> None:
    """Show the next deliveries that a contract promises: due, breach, partitions, special nights, calendar.

    Exit codes: 0 shown, 3 something of it could not be read.

    Example: dq schedule explain orders.odcs.yaml
    """
    outcome = next_deliveries(contract, after=at(after), count=count)
    output.notes(outcome.findings)
    if format is output.Format.JSON:
        output.as_json(outcome.as_list())
    else:
        for schedule in outcome.schedules:
            _describe(schedule)
        if not outcome.schedules:
            output.line("no delivery is promised")
    raise typer.Exit(outcome.exit_code)


def _describe(deliveries: DeliverySchedule) -> None:
    slo = deliveries.slo
    output.line(output.styled("/".join(slo.key), bold=True))
    output.line(f"  {slo.schedule.expression}: {clock.reading(slo.schedule)}")
    for cycle in deliveries.cycles:
        note = "" if cycle.note is Note.NORMAL else f"  ({cycle.note.replace('_', ' ')})"
        output.line(
            f"  due {local_time(slo, cycle.due_at)} = {utc(cycle.due_at)}, "
            f"breach {local_time(slo, cycle.breach_at)} = {utc(cycle.breach_at)}{note}"
        )
        output.line(f"      {', '.join(map(label, cycle.partitions)) or 'a snapshot'}")
        if cycle.excuse:
            output.line(f"      {cycle.excuse}")
    if len(deliveries.cycles) < deliveries.count:
        output.line("  The schedule ends here.")
    for changed in deliveries.calendar:
        to = f" to {changed.due_on:%a %Y-%m-%d}" if changed.due_on else ""
        output.line(f"  calendar: {changed.day:%a %Y-%m-%d}: {changed.effect}{to}. {changed.reason}")
    for due in deliveries.clock_changes[:_MOST]:
        output.line(f"  clock change: {hazard(due, slo.schedule)}")


@app.command("convert")
def converted(
    expression: str = typer.Argument(help="Five fields of cron, or cron(...) of EventBridge, quoted."),
    tz: str = typer.Option("UTC", "--tz", help="IANA zone of the expression."),
    after: str = typer.Option(None, "--after", help="Compare from this instant on; from now by default."),
    format: output.Format = output.FORMAT,
) -> None:
    """Write a unix cron for EventBridge, or a cron(...) of EventBridge for unix, with both readings.

    Where the two differ on nights of clock changes within two years, that is printed. What the other cannot
    say is refused.

    Exit codes: 0 converted, 2 it is no schedule or cannot be said.

    Example: dq schedule convert '0 6 1 * 1' --tz Europe/Berlin
    """
    outcome = convert_schedule(expression, timezone=tz, after=at(after))
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    elif outcome.source is None:
        _refused(outcome.fault)
    else:
        _describe_conversion(outcome, outcome.source)
    raise typer.Exit(outcome.exit_code)


def _describe_conversion(outcome: ConvertOutcome, source: Schedule) -> None:
    before, there = outcome.dialects
    for dialect, schedule in ((before, source), *((there, target) for target in outcome.targets)):
        output.line(f"{dialect:<12} {schedule.expression}")
        output.line(f"             {clock.reading(schedule)}")
    if len(outcome.targets) > 1:
        output.line(
            "EventBridge joins no day of the month with a weekday: it takes one schedule for each, "
            "and starts twice on a day that meets both."
        )
    if there is Dialect.EVENTBRIDGE and outcome.timezone != "UTC":
        output.line(
            f"EventBridge Scheduler takes the zone ({outcome.timezone}) beside it; "
            "rules of EventBridge are in UTC."
        )
    apart = outcome.differences
    for row in apart[:_MOST]:
        who = before if row.first is not None else there
        output.line(f"  clock change: at {utc(row.at)} only {who} is due")
    if len(apart) > _MOST:
        output.line(f"  and at {len(apart) - _MOST} instants more within two years")
    if apart and there is Dialect.UNIX:
        output.line("  In a contract, 'dst: skip' keeps what EventBridge does.")


def _refused(fault: TextFault | None) -> None:
    if fault is not None:
        output.line(f"{fault.code}: {fault.message} {fault.mend}")
