"""dq watch"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import CHANNEL, PATHS, alerts_are_results, note, undelivered
from dq.contracts.incident import CycleStatus
from dq.contracts.outcome import DqError
from dq.dataquality.delivery.cycle import CycleTransition, label
from dq.dataquality.delivery.notify import expected_label, local_time
from dq.dataquality.delivery.probe_pool import ProbePool
from dq.dataquality.delivery.tick import TickResult
from dq.operations import alerting
from dq.operations.runtime.context import RuntimeContext, parse_instant, parse_interval, runtime_context
from dq.operations.watch import (
    WatchOutcome,
    WatchRequest,
    heartbeat_url,
    run_tick,
    send_alerts,
    send_heartbeat,
    write_catalog,
)
from dq.store.engine import Store


def command(
    paths: list[Path] = PATHS,
    as_of: str = output.AS_OF,
    since: str = typer.Option(
        None, "--since", help="Start time of SLOs that were never evaluated (default: now)."
    ),
    every: str = typer.Option(
        None, "--every", help="Run continuously with this interval between ticks, e.g. 1m."
    ),
    server: str = typer.Option(None, "--server", help="Server to use if a contract has more than one."),
    channel: str = CHANNEL,
    trust_clock: bool = typer.Option(
        False, "--trust-clock", help="Run even if the clock moved backwards or differs from the database's."
    ),
    format: output.Format = output.FORMAT,
) -> None:
    """Evaluate due deliveries, open and resolve incidents, and send alerts.

    Needs no Java: deliveries are evaluated from receipts, markers, table commits and files. One run is
    one tick; run it from a scheduler every few minutes, or with --every. Concurrent runs are safe, and a
    killed run is completed by the next one. With --every, a temporary outage of store or storage affects
    only its own ticks.

    Evaluates nothing and exits with 3 if the clock moved backwards, was changed while the machine was
    running, or differs from the database server's.

    A contract that cannot be read, or whose location is unknown, is a finding and does not stop the
    others.

    With the setting watch_catalog, writes how far each table is complete to its properties in the catalog.

    Exit codes: 0 no incidents, 1 a delivery is missing, 2 a channel is not configured, 3 something could
    not be read, or not be written to the catalog, 4 an alert could not be delivered.

    Example: dq watch registry --every 1m
    """
    pause, places = parse_interval(every, "--every") if every is not None else None, paths or [Path()]
    request = WatchRequest(
        tuple(places), parse_instant(since) if since else None, server, channel, trust_clock=trust_clock
    )
    if format is output.Format.TEXT:
        alerts_are_results()
    # Report an invalid heartbeat URL at the start, not at a later tick.
    heartbeat_url(runtime_context(as_of, places))
    # The pool remembers between ticks which storage roots do not respond.
    probe_pool = ProbePool()

    def once(request: WatchRequest, *, first: bool) -> int:
        context = runtime_context(as_of, places)
        store = context.store()
        outcome = run_tick(context, store, request, probe_pool.for_tick(context.settings.storage_seconds))
        if first:
            _note_since(request, outcome)
        outcome = _show_and_deliver(context, store, request, outcome, format, pause)
        send_heartbeat(context, store, outcome)
        return outcome.exit_code

    began = time.monotonic()
    code = once(request, first=True)
    if pause is None:
        raise typer.Exit(code)
    # --trust-clock applies to the first tick only, not to later changes of the clock.
    later_request = replace(request, trust_clock=False)
    wake_up = threading.Event()
    alerting.listen(lambda: runtime_context(as_of, places), wake_up, note)
    # Deferred alerts are sent during the pause.
    alerting.run_forever(lambda: _survive(lambda: once(later_request, first=False)), pause, began, wake_up)


def _survive(once: Callable[[], int]) -> None:
    """Run a later tick and report its errors, which may be temporary, e.g. a restart of the database.

    At the first tick an error ends the command.
    """
    try:
        once()
    except DqError as error:
        note(f"this tick failed, the next one will retry: {error}")


def _show_and_deliver(
    context: RuntimeContext,
    store: Store,
    request: WatchRequest,
    outcome: WatchOutcome,
    form: output.Format,
    patience: timedelta | None,
) -> WatchOutcome:
    """Print the tick and send its alerts; text output is printed before waiting for deferred alerts.

    `patience` limits that wait; None is the limit of the settings.
    """
    if outcome.tick is None:
        hint = "If the clock is correct, run once with --trust-clock."
        if (outcome.refused or "").startswith("--as-of"):
            hint = "Pass a later time, or --trust-clock to evaluate this one."
        note(f"nothing was evaluated: {outcome.refused}. {hint}")
        if form is output.Format.JSON:
            output.as_json(outcome.as_dict())
        return outcome
    output.notes(outcome.findings)
    tick = outcome.tick
    if form is output.Format.JSON:
        outcome = send_alerts(context, store, request, outcome, patience)
        outcome = write_catalog(context, store, outcome)
        output.as_json(outcome.as_dict())
    else:
        outcome = send_alerts(context, store, request, outcome, timedelta(0))
        describe(tick)
        outcome = write_catalog(context, store, outcome)
        if outcome.drained is not None and outcome.drained.next_at is not None:
            outcome = send_alerts(context, store, request, outcome, patience)
    if outcome.drained is not None:
        undelivered(outcome.drained)
    return outcome


def _note_since(request: WatchRequest, outcome: WatchOutcome) -> None:
    """Print a note that --since does not apply to SLOs that were evaluated before."""
    done = outcome.tick
    if done is not None and request.since is not None and (before := done.slos - done.new_slos):
        note(
            f"--since does not affect SLOs evaluated before: {before} of {done.slos} "
            f"{'continues' if before == 1 else 'continue'} from where the last tick ended."
        )


# Up to so many deliveries of one SLO that are on time have a line each.
_MAX_ON_TIME = 5


def _describe_changes(changes: Sequence[CycleTransition]) -> None:
    """Print the changes of one SLO: many deliveries on time in one line, and the newest other ones."""
    on_time = [change for change in changes if change.after.good]
    not_on_time = [change for change in changes if not change.after.good]
    listed = not_on_time[-output.MAX_DELIVERIES :]
    if len(on_time) > _MAX_ON_TIME:
        output.line(f"  {output.mark(True)} {_on_time_text(on_time)}")
    else:
        listed = sorted([*on_time, *listed], key=lambda change: change.record.cycle.due_at)
    for change in listed:
        cycle = change.record.cycle
        what = ", ".join(label(partition) for partition in cycle.partitions) or "snapshot"
        good = True if change.after.good else False if change.after.bad else None
        status = change.after.replace("_", " ")
        # SLOs of servers have the same partitions.
        name = f"{cycle.contract}/{cycle.slo}" if "@" in cycle.slo else cycle.contract
        output.line(f"  {output.mark(good)} {name} {what}: {status}. {change.reason}")
    if len(not_on_time) > output.MAX_DELIVERIES:
        output.line(f"  … and {len(not_on_time) - output.MAX_DELIVERIES} earlier")


def _on_time_text(changes: Sequence[CycleTransition]) -> str:
    """Return number and range of several deliveries on time of one SLO."""
    cycles = [change.record.cycle for change in changes]
    first, last = cycles[0], cycles[-1]
    in_grace = sum(change.after is CycleStatus.ON_TIME_IN_GRACE for change in changes)
    if all(len(cycle.partitions) == 1 for cycle in cycles):
        span = f"{label(first.partitions[0])} to {label(last.partitions[0])}"
    else:
        span = f"due {first.due_at:%Y-%m-%d %H:%M}Z to {last.due_at:%Y-%m-%d %H:%M}Z"
    grace = f" ({in_grace} in grace)" if in_grace else ""
    return f"{first.contract}/{first.slo}: {len(changes)} deliveries on time{grace}, {span}"


def describe(done: TickResult, *, quiet: bool = False) -> None:
    """Print the tick in a few lines; `quiet` prints only changes."""
    changes_by_slo: dict[tuple[str, str, str], list[CycleTransition]] = {}
    for change in done.changes:
        cycle = change.record.cycle
        changes_by_slo.setdefault((cycle.contract, cycle.object, cycle.slo), []).append(change)
    for changes in changes_by_slo.values():
        _describe_changes(changes)
    for warned in done.warned:
        breach = local_time(warned.target.slo, warned.cycle.breach_at)
        name, expected = warned.cycle.contract, expected_label(warned.cycle)
        output.line(
            f"  {output.mark(None)} {name} {expected}: at risk. Nothing has arrived; breach {breach}."
        )
    # One line per unreadable location, however many deliveries it has.
    for (contract, reason), times in Counter(
        (unknown.record.cycle.contract, unknown.reason) for unknown in done.unknown
    ).items():
        output.note(f"  ? {contract}: {reason}{f' ({times} deliveries)' if times > 1 else ''}")
    if quiet:
        return
    output.line(
        f"{done.as_of:%Y-%m-%d %H:%M}Z, SLOs: {done.slos}, new cycles: {done.new_cycles}, "
        f"changed: {len(done.changes)}, still open: {done.open_cycles}"
    )
