"""dq schedule"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import typer

from dq.cli.context import here, note
from dq.cli.terminal import output
from dq.contracts.schedule import (
    Cycle,
    Dialect,
    DstPolicy,
    Due,
    Note,
    Schedule,
    convert,
    dst_hazards,
    parse,
    zone,
)
from dq.contracts.schedule import cycle as outlook
from dq.contracts.shared.outcome import TextFault, UsageError
from dq.contracts.shared.units import iso
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import label
from dq.dataquality.delivery.notify import local_time
from dq.operations.registry_files import load, slos
from dq.operations.runtime.context import instant

app = typer.Typer(no_args_is_help=True)

# Clock changes and calendars are compared and told this far ahead.
_AHEAD = timedelta(days=731)
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
    start = instant(after) if after else here().now()
    schedule = parse(expression, timezone=tz, dialect=dialect, dst=dst)
    if isinstance(schedule, TextFault):
        raise _refused(schedule, {"expression": expression, "timezone": tz, "next_due_utc": []}, format)
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
    start = instant(after) if after else here(paths=[contract]).now()
    loaded = load([contract], note)
    promises, wrong = slos(loaded, note)
    findings = [*loaded.findings, *wrong]
    output.notes(findings)
    if format is output.Format.JSON:
        output.as_json([_as_dict(slo, start, count) for slo in promises])
    else:
        for slo in promises:
            _describe(slo, start, count)
        if not promises:
            output.line("no delivery is promised")
    raise typer.Exit(3 if findings else 0)


def _next(slo: Slo, start: datetime, count: int) -> list[Cycle]:
    # An endless schedule is asked as far as its next dues only.
    dues = list(islice(slo.schedule.after(start), count))
    return list(slo.cycles(start, dues[-1].at)) if dues else []


def _describe(slo: Slo, start: datetime, count: int) -> None:
    schedule = slo.schedule
    output.line(output.styled("/".join(slo.key), bold=True))
    output.line(f"  {schedule.expression}: {convert.reading(schedule)}")
    following = _next(slo, start, count)
    for cycle in following:
        note = "" if cycle.note is Note.NORMAL else f"  ({cycle.note.replace('_', ' ')})"
        output.line(
            f"  due {local_time(slo, cycle.due_at)} = {_utc(cycle.due_at)}, "
            f"breach {local_time(slo, cycle.breach_at)} = {_utc(cycle.breach_at)}{note}"
        )
        output.line(f"      {', '.join(map(label, cycle.partitions)) or 'a snapshot'}")
        if cycle.excuse:
            output.line(f"      {cycle.excuse}")
    if len(following) < count:
        output.line("  The schedule ends here.")
    if following:
        for changed in outlook.changed_days(schedule, start, following[-1].due_at):
            to = f" to {changed.due_on:%a %Y-%m-%d}" if changed.due_on else ""
            output.line(f"  calendar: {changed.day:%a %Y-%m-%d}: {changed.effect}{to}. {changed.reason}")
    for hazard in dst_hazards(schedule, start)[:_MOST]:
        output.line(f"  clock change: {_hazard(hazard, schedule)}")


def _hazard(due: Due, schedule: Schedule) -> str:
    if due.note is not Note.GAP:
        return f"{due.nominal:%Y-%m-%d %H:%M} stands on the clock twice; due the first time, {_utc(due.at)}"
    became = {
        DstPolicy.VIXIE: f"due at the change, {_utc(due.at)}",
        DstPolicy.SKIP: "no delivery that night",
        DstPolicy.SHIFT: "due later by the gap",
    }
    return f"{due.nominal:%Y-%m-%d %H:%M} stands on no clock: {became[schedule.dst]}"


def _as_dict(slo: Slo, start: datetime, count: int) -> dict[str, object]:
    following = _next(slo, start, count)
    end = following[-1].due_at if following else start
    return {
        "contract": slo.contract.key,
        "object": slo.object.name,
        "slo": slo.id,
        "schedule": slo.schedule.expression,
        "timezone": slo.schedule.timezone,
        "reading": convert.reading(slo.schedule),
        "cycles": [
            {
                "due_at": _utc(cycle.due_at),
                "breach_at": _utc(cycle.breach_at),
                "nominal": cycle.nominal.isoformat(),
                "note": cycle.note,
                "partitions": [label(one) for one in cycle.partitions],
                "excuse": cycle.excuse or None,
            }
            for cycle in following
        ],
        "ended": len(following) < count,
        "calendar": [
            {
                "day": one.day.isoformat(),
                "effect": one.effect,
                "due_on": iso(one.due_on),
                "reason": one.reason,
            }
            for one in outlook.changed_days(slo.schedule, start, end)
        ],
        "clock_changes": [_hazard(one, slo.schedule) for one in dst_hazards(slo.schedule, start)],
    }


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
    start = instant(after) if after else here().now()
    aws = expression.strip().lower().startswith(("cron(", "rate("))
    before, there = (Dialect.EVENTBRIDGE, Dialect.UNIX) if aws else (Dialect.UNIX, Dialect.EVENTBRIDGE)
    refusal = {"expression": expression, "converted": []}
    source = parse(expression, timezone=tz, dialect=before)
    if isinstance(source, TextFault):
        raise _refused(source, refusal, format)
    made = convert.to_unix(source) if aws else convert.to_eventbridge(source)
    if isinstance(made, TextFault):
        raise _refused(made, refusal, format)
    read = [parse(text, timezone=tz, dialect=there) for text in made]
    targets = [one for one in read if isinstance(one, Schedule)]
    apart = list(convert.differences([source], targets, start, start + _AHEAD))
    if format is output.Format.JSON:
        output.as_json(
            {
                "expression": expression,
                "dialect": before,
                "reading": convert.reading(source),
                "to": there,
                "converted": [{"text": one.expression, "reading": convert.reading(one)} for one in targets],
                "timezone": tz,
                "differences": [
                    {"at": _utc(one.at), before: one.first is not None, there: one.second is not None}
                    for one in apart
                ],
                "finding": None,
            }
        )
        return
    for dialect, schedule in ((before, source), *((there, one) for one in targets)):
        output.line(f"{dialect:<12} {schedule.expression}")
        output.line(f"             {convert.reading(schedule)}")
    if len(targets) > 1:
        output.line(
            "EventBridge joins no day of the month with a weekday: it takes one schedule for each, "
            "and starts twice on a day that meets both."
        )
    if there is Dialect.EVENTBRIDGE and tz != "UTC":
        output.line(
            f"EventBridge Scheduler takes the zone ({tz}) beside it; rules of EventBridge are in UTC."
        )
    for one in apart[:_MOST]:
        who = before if one.first is not None else there
        output.line(f"  clock change: at {_utc(one.at)} only {who} is due")
    if len(apart) > _MOST:
        output.line(f"  and at {len(apart) - _MOST} instants more within two years")
    if apart and there is Dialect.UNIX:
        output.line("  In a contract, 'dst: skip' keeps what EventBridge does.")


def _refused(made: TextFault, said: Mapping[str, object], form: output.Format) -> typer.Exit:
    if form is output.Format.JSON:
        output.as_json({**said, "finding": {"rule": made.code, "message": made.message, "mend": made.mend}})
    else:
        output.line(f"{made.code}: {made.message} {made.mend}")
    return typer.Exit(UsageError.exit_code)
