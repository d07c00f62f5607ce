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
    """Preview and convert schedules: next due times of a cron expression or a contract."""


@app.command("next")
def following(
    expression: str = typer.Argument(help="The cron expression, quoted."),
    tz: str = typer.Option("UTC", "--tz", help="IANA time zone of the expression."),
    after: str = typer.Option(None, "--after", help="Only after this time (default: now)."),
    count: int = typer.Option(5, "--count", min=1, max=10_000, help="Number of due times."),
    dst: DstPolicy = typer.Option(None, "--dst", help="How to treat times inside a DST change."),
    dialect: Dialect = typer.Option(Dialect.UNIX, "--dialect", help="Cron dialect of the expression."),
    format: output.Format = output.FORMAT,
) -> None:
    """Print the next due times of a cron expression in UTC, or its error.

    Exit codes: 0 printed, 2 invalid expression or time zone.

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
    contract: Path = typer.Argument(help="Contract file."),
    after: str = typer.Option(None, "--after", help="Only after this time (default: now)."),
    count: int = typer.Option(10, "--count", min=1, max=1_000, help="Number of deliveries per SLO."),
    format: output.Format = output.FORMAT,
) -> None:
    """Show the next deliveries a contract promises: due, breach, partitions, clock changes, calendar.

    Exit codes: 0 shown, 3 something could not be read.

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
    expression: str = typer.Argument(help="Five cron fields, or an EventBridge cron(...), quoted."),
    tz: str = typer.Option("UTC", "--tz", help="IANA time zone of the expression."),
    after: str = typer.Option(None, "--after", help="Compare from this time on (default: now)."),
    format: output.Format = output.FORMAT,
) -> None:
    """Convert a cron expression between unix and EventBridge, and compare both.

    Prints where the two differ during clock changes in the next two years. Expressions that cannot be
    converted are rejected.

    Exit codes: 0 converted, 2 invalid expression, or no equivalent.

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
