"""dq schedule"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import instant_or_none
from dq.contracts.outcome import ValueProblem
from dq.contracts.schedule import clock
from dq.contracts.schedule.calendar import parse_zone
from dq.contracts.schedule.clock import DstNote, DstPolicy, Schedule
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

# Maximum number of clock changes printed.
_MAX_CLOCK_CHANGES = 6


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
    outcome = next_dues(
        expression, timezone=tz, after=instant_or_none(after), count=count, dst=dst, dialect=dialect
    )
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    elif outcome.fault is not None:
        _print_fault(outcome.fault)
    else:
        local = parse_zone(tz)
        for due in outcome.dues:
            note = "" if due.note is DstNote.NORMAL else f"  ({due.note.replace('_', ' ')})"
            civil = (
                ""
                if isinstance(local, ValueProblem)
                else f"  {due.at.astimezone(local):%a %Y-%m-%d %H:%M %Z}"
            )
            output.line(f"{utc(due.at)}{civil}{note}")
        if len(outcome.dues) < count:
            output.line("End of the schedule.")
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
    outcome = next_deliveries(contract, after=instant_or_none(after), count=count)
    output.notes(outcome.findings)
    if format is output.Format.JSON:
        output.as_json(outcome.as_list())
    else:
        for schedule in outcome.schedules:
            _describe(schedule)
        if not outcome.schedules:
            output.line("no delivery SLOs")
    raise typer.Exit(outcome.exit_code)


def _describe(deliveries: DeliverySchedule) -> None:
    slo = deliveries.slo
    output.line(output.styled("/".join(slo.key), bold=True))
    output.line(f"  {slo.schedule.expression}: {clock.describe_schedule(slo.schedule)}")
    update = "new data in any partition" if slo.expects_new_data else "a snapshot"
    for cycle in deliveries.cycles:
        note = "" if cycle.note is DstNote.NORMAL else f"  ({cycle.note.replace('_', ' ')})"
        output.line(
            f"  due {local_time(slo, cycle.due_at)} = {utc(cycle.due_at)}, "
            f"breach {local_time(slo, cycle.breach_at)} = {utc(cycle.breach_at)}{note}"
        )
        output.line(f"      {', '.join(map(label, cycle.partitions)) or update}")
        if cycle.excuse:
            output.line(f"      {cycle.excuse}")
    if len(deliveries.cycles) < deliveries.count:
        output.line("  End of the schedule.")
    for changed in deliveries.calendar:
        moved_to = f" to {changed.due_on:%a %Y-%m-%d}" if changed.due_on else ""
        output.line(f"  calendar: {changed.day:%a %Y-%m-%d}: {changed.effect}{moved_to}. {changed.reason}")
    for due in deliveries.clock_changes[:_MAX_CLOCK_CHANGES]:
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
    outcome = convert_schedule(expression, timezone=tz, after=instant_or_none(after))
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    elif outcome.source is None:
        _print_fault(outcome.fault)
    else:
        _describe_conversion(outcome, outcome.source)
    raise typer.Exit(outcome.exit_code)


def _describe_conversion(outcome: ConvertOutcome, source: Schedule) -> None:
    source_dialect, target_dialect = outcome.dialects
    for dialect, schedule in (
        (source_dialect, source),
        *((target_dialect, target) for target in outcome.targets),
    ):
        output.line(f"{dialect:<12} {schedule.expression}")
        output.line(f"             {clock.describe_schedule(schedule)}")
    if len(outcome.targets) > 1:
        output.line(
            "EventBridge does not combine day of month and weekday: it needs one schedule for each, "
            "and starts twice on a day that matches both."
        )
    if target_dialect is Dialect.EVENTBRIDGE and outcome.timezone != "UTC":
        output.line(
            f"EventBridge Scheduler takes the time zone ({outcome.timezone}) separately; "
            "EventBridge rules are in UTC."
        )
    differences = outcome.differences
    for row in differences[:_MAX_CLOCK_CHANGES]:
        dialect_due = source_dialect if row.first is not None else target_dialect
        output.line(f"  clock change: at {utc(row.at)} only {dialect_due} is due")
    if len(differences) > _MAX_CLOCK_CHANGES:
        output.line(f"  and at {len(differences) - _MAX_CLOCK_CHANGES} more times within two years")
    if differences and target_dialect is Dialect.UNIX:
        output.line("  In a contract, 'dst: skip' behaves like EventBridge.")


def _print_fault(fault: ValueProblem | None) -> None:
    if fault is not None:
        output.line(f"{fault.message} {fault.hint}")
