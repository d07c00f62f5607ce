"""dq watch"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import CHANNEL, PATHS, alerts_are_results, note, undelivered
from dq.contracts.outcome import DqError
from dq.dataquality.delivery.cycle import label
from dq.dataquality.delivery.probe_pool import Lookout
from dq.dataquality.delivery.tick import Tick
from dq.operations import alerting
from dq.operations.runtime.context import World, here, instant, pace
from dq.operations.watch import WatchOutcome, WatchRequest, deliver, give_sign, heartbeat_url, judge
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

    Exit codes: 0 no incidents, 1 a delivery is missing, 2 a channel is not configured, 3 something could
    not be read, 4 an alert could not be delivered.

    Example: dq watch registry --every 1m
    """
    pause, places = pace(every, "--every") if every is not None else None, paths or [Path()]
    request = WatchRequest(
        tuple(places), instant(since) if since else None, server, channel, trust_clock=trust_clock
    )
    if format is output.Format.TEXT:
        alerts_are_results()
    # A mistake in it is one of now, and not of the night.
    heartbeat_url(here(as_of, places))
    # It knows from tick to tick which storages are silent.
    lookout = Lookout()

    def once(request: WatchRequest, *, first: bool) -> int:
        world = here(as_of, places)
        store = world.store()
        outcome = judge(world, store, request, lookout.of_tick(world.settings.storage_seconds))
        if first:
            _say_since(request, outcome)
        outcome = _shown(world, store, request, outcome, format, pause)
        give_sign(world, store, outcome)
        return outcome.exit_code

    began = time.monotonic()
    code = once(request, first=True)
    if pause is None:
        raise typer.Exit(code)
    # Who trusts the clock trusts it as it is now, and not whatever becomes of it.
    later = replace(request, trust_clock=False)
    pressed = threading.Event()
    alerting.listen(lambda: here(as_of, places), pressed, note)
    # What had to wait was sent in the pause already.
    alerting.go_on(lambda: _survive(lambda: once(later, first=False)), pause, began, pressed)


def _survive(once: Callable[[], int]) -> None:
    """A later tick: what is wrong with the world now (a database that restarts, a file that is gone for a
    moment) may be well at the next one. At the first tick it would be a mistake, and ends the command."""
    try:
        once()
    except DqError as error:
        note(f"this tick could not be done, the next one tries again: {error}")


def _shown(
    world: World,
    store: Store,
    request: WatchRequest,
    outcome: WatchOutcome,
    form: output.Format,
    patience: timedelta | None,
) -> WatchOutcome:
    """What was judged, shown, and the alerts sent; people see what happened before anything is waited for."""
    if outcome.tick is None:
        note(f"nothing is judged: {outcome.refused}. If the clock is right now, say --trust-clock once.")
        if form is output.Format.JSON:
            output.as_json(outcome.as_dict())
        return outcome
    output.notes(outcome.findings)
    judged = outcome.tick
    if form is output.Format.JSON:
        outcome = deliver(world, store, request, outcome, patience)
        output.as_json(outcome.as_dict())
    else:
        outcome = deliver(world, store, request, outcome, timedelta(0))
        describe(judged)
        if outcome.drained is not None and outcome.drained.next_at is not None:
            outcome = deliver(world, store, request, outcome, patience)
    if outcome.drained is not None:
        undelivered(outcome.drained)
    return outcome


def _say_since(request: WatchRequest, outcome: WatchOutcome) -> None:
    """What was watched before goes on where it was, whatever --since says."""
    done = outcome.tick
    if done is not None and request.since is not None and (before := done.slos - done.begun):
        note(
            f"--since begins no SLO anew: {before} of {done.slos} "
            f"{'is' if before == 1 else 'are'} watched already, from where the last tick ended."
        )


def describe(done: Tick, *, quiet: bool = False) -> None:
    """The tick in a few lines; `quiet` says only what changed."""
    for change in done.changes:
        cycle = change.kept.cycle
        what = ", ".join(label(partition) for partition in cycle.partitions) or "snapshot"
        good = True if change.after.good else False if change.after.bad else None
        output.line(f"  {output.mark(good)} {cycle.contract} {what}: {change.after}. {change.reason}")
    # One place that cannot be read is one fact, however many deliveries lie there.
    for (contract, reason), times in Counter(
        (unknown.kept.cycle.contract, unknown.reason) for unknown in done.unknown
    ).items():
        output.note(f"  ? {contract}: {reason}{f' ({times} deliveries)' if times > 1 else ''}")
    if quiet:
        return
    output.line(
        f"{done.at:%Y-%m-%d %H:%M}Z, SLOs: {done.slos}, new cycles: {done.new_cycles}, "
        f"changed: {len(done.changes)}, still open: {done.open}"
    )
