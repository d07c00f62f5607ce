"""dq watch"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path

import typer

from dq.alerts import metrics
from dq.cli.commands import _ticks
from dq.cli.context import here, note
from dq.cli.options import CHANNEL, PATHS
from dq.cli.shown import alerts
from dq.cli.terminal import output
from dq.contracts.shared.outcome import CycleStatus, DqError, UsageError
from dq.dataquality.delivery import heartbeat
from dq.dataquality.delivery import heartbeat as machine_clock
from dq.dataquality.delivery.history import compliance
from dq.dataquality.delivery.probe_pool import Lookout
from dq.dataquality.delivery.tick import Tick, tick
from dq.lake.storage import Storages
from dq.operations.alerting import downstream, routes, send
from dq.operations.alerting import send as sending
from dq.operations.data_places import placed, resolved, with_folders
from dq.operations.heartbeat import heartbeat_url, ping
from dq.operations.key_ownership import close_withdrawn, settled, withdrawals
from dq.operations.registry_files import load_watched, slos
from dq.operations.runtime.context import World, instant, pace
from dq.operations.skip_cache import at_rest, lay_to_rest
from dq.store.engine import Store


@dataclass(frozen=True, slots=True)
class _Orders:
    """What the command line asks of every tick."""

    paths: list[Path]
    since: str | None
    server: str | None
    channel: str
    form: output.Format
    trust_clock: bool
    first: bool = True

    def scope(self, world: World) -> str:
        """A hash of what is watched: another watcher on the same store may watch something else."""
        names = sorted(os.fsencode(world.folder / path) for path in self.paths)
        return sha256(b"\0".join(names)).hexdigest()


def command(
    paths: list[Path] = PATHS,
    as_of: str = output.AS_OF,
    since: str = typer.Option(
        None, "--since", help="Where an SLO begins that was never watched; now by default."
    ),
    every: str = typer.Option(
        None, "--every", help="Go on for ever, with this pause between ticks, such as 1m."
    ),
    server: str = typer.Option(None, "--server", help="The server to look at, where a contract has several."),
    channel: str = CHANNEL,
    trust_clock: bool = typer.Option(
        False, "--trust-clock", help="Judge although the clock went back, or the database's says otherwise."
    ),
    format: output.Format = output.FORMAT,
) -> None:
    """Judge every delivery that came due, open and resolve incidents, and send what has to be told.

    Needs no Java: deliveries are judged from receipts, markers, commits and files. One run is one tick;
    run it from any scheduler every few minutes, or with --every. Two at once are safe, and a run that was
    killed is made good by the next one.

    With --every, a store or a file that is gone for a moment costs its ticks alone.

    A tick before the last one, or by a clock from which a database server's differs, or one that was set
    while the machine was running, judges nothing: exit code 3.

    A contract that cannot be read, or whose place cannot be known, stops no other: it is a finding.

    Exit codes: 0 all in order, 1 a delivery is missing, 2 a channel is not set up, 3 something could not be
    read, 4 an alert could not be delivered.

    Example: dq watch registry --every 1m
    """
    pause, places = pace(every, "--every") if every is not None else None, paths or [Path()]
    orders = _Orders(places, since, server, channel, format, trust_clock)
    # A mistake in it is one of now, and not of the night.
    heartbeat_url(here(as_of, places))
    # It knows from tick to tick which storages are silent.
    lookout = Lookout()

    def once(patience: timedelta | None, orders: _Orders) -> int:
        world = here(as_of, places)
        return _once(world, orders, lookout.of_tick(world.settings.storage_seconds), patience)

    began = time.monotonic()
    code = once(pause, orders)
    if pause is None:
        raise typer.Exit(code)
    # Who trusts the clock trusts it as it is now, and not whatever becomes of it.
    orders = replace(orders, trust_clock=False, first=False)
    pressed = threading.Event()
    send.listen(lambda: here(as_of, places), pressed, note)
    # What had to wait was sent in the pause already.
    send.go_on(lambda: _survive(lambda: once(pause, orders)), pause, began, pressed)


def _survive(once: Callable[[], int]) -> None:
    """A later tick: what is wrong with the world now (a database that restarts, a file that is gone for a
    moment) may be well at the next one. At the first tick it would be a mistake, and ends the command."""
    try:
        once()
    except DqError as error:
        output.note(f"dq: this tick could not be done, the next one tries again: {error}")


def _clock_is_right(world: World, store: Store, trusted: bool, form: output.Format) -> bool:
    """Whether this tick may judge; it is the last one then. Says why where it may not."""
    now, real = world.now(), world.as_of is None
    uptime = world.uptime() if real else None
    with store.read() as tx:
        reason = heartbeat.doubt(tx, now, real=real, uptime=uptime)
    reason = reason or heartbeat.to_come(now, replace(world, as_of=None).now())
    if reason is not None and not trusted:
        if uptime is not None:
            with store.write() as tx:
                machine_clock.note_doubt(tx, now, uptime)
        output.note(f"dq: nothing is judged: {reason}. If the clock is right now, say --trust-clock once.")
        if form is output.Format.JSON:
            output.as_json({"at": now.isoformat(), "refused": reason})
        return False
    with store.write() as tx:
        heartbeat.beat(tx, now, uptime)
    return True


def _once(world: World, orders: _Orders, lookout: Lookout, patience: timedelta | None) -> int:
    paths, server, channel, form = orders.paths, orders.server, orders.channel, orders.form
    store = world.store()
    if not _clock_is_right(world, store, orders.trust_clock, form):
        return 3
    reach = world.reach_by(partial(resolved, lookout))
    files = Storages(reach, lookout.seconds).of
    rest = at_rest(world, store, paths, lookout, files, server, channel)
    loaded = settled(world, store, load_watched(store, paths, rest.of, world.note), paths, keep=True)
    promises, wrong = slos(loaded, world.note)
    ended = withdrawals(loaded, promises, wrong)
    wrong += routes.refused(loaded.contracts, channel, world.settings)
    watching, refused = placed(promises, server, reach, files, lookout)
    watching = with_folders(store, watching)
    findings = [*loaded.findings, *wrong, *refused]
    output.notes(findings)
    scope, now = orders.scope(world), world.now()
    since = _since(orders.since, now)
    with store.read() as tx:
        looked_at = heartbeat.looked_at(tx, scope)
    downstream.keep(store, loaded, paths)
    done = tick(
        store,
        watching,
        now,
        sending.teller(world, loaded.contracts, channel, server, loaded.resting),
        since=since,
        unread=set(loaded.resting.values()),
        withdrawn=ended,
        past=sending.teller_of_past(world, channel),
        settle=downstream.settler(world),
        lookout=lookout,
        looked_at=looked_at,
    )
    with store.read() as tx:
        kept = compliance.stored_terms(tx, {*(one.key for one in loaded.contracts), *loaded.gone})
    news = compliance.changed_terms(kept, compliance.terms_of(promises), ended)
    with store.write() as tx:
        heartbeat.note_look(tx, scope, now)
        compliance.write_terms(tx, news)
    done = replace(done, slos=done.slos + rest.slos, open=done.open + rest.open)
    _say_since(orders, done)
    close_withdrawn(world, store, loaded)
    lay_to_rest(world, store, rest, loaded, watching, findings)
    sending.reroute(world, store, loaded.contracts, channel)
    write = output.aside if form is output.Format.JSON else output.block
    # What happened is shown before anything is waited for.
    hasty = timedelta(0) if form is output.Format.TEXT else patience
    drained = sending.send(world, store, alerts.painted(write), channel, hasty)
    if form is output.Format.JSON:
        left_out = [finding.as_dict() for finding in findings]
        output.as_json(
            {
                **_ticks.as_dict(done),
                "findings": left_out,
                "sent": drained.sent,
                "waiting": drained.waiting,
                "outstanding": [sending.outstanding_as_dict(one) for one in drained.outstanding],
            }
        )
    else:
        _ticks.describe(done)
        if drained.next_at is not None:
            drained = sending.send(world, store, alerts.painted(write), channel, patience)
    undelivered = alerts.report(drained)
    if undelivered:
        return undelivered
    if done.unknown or findings:
        return 3
    _give_sign(world, store)
    return 1 if any(change.after is CycleStatus.MISSING for change in done.changes) else 0


def _since(text: str | None, now: datetime) -> datetime | None:
    since = instant(text) if text else None
    if since is not None and since > now:
        raise UsageError(f"--since {text} is after {now:%Y-%m-%dT%H:%M:%SZ}.", "Name an instant of before.")
    return since


def _say_since(orders: _Orders, done: Tick) -> None:
    """What was watched before goes on where it was, whatever --since says."""
    before = done.slos - done.begun
    if orders.since and orders.first and before:
        output.note(
            f"dq: --since begins no SLO anew: {before} of {done.slos} "
            f"{'is' if before == 1 else 'are'} watched already, from where the last tick ended."
        )


def _give_sign(world: World, store: Store) -> None:
    """After a tick that judged everything: if nothing is left unsent either, whoever waits hears of it.

    Not of one as of another time, which shows nothing about now.
    """
    with store.read() as tx:
        left = metrics.owed(tx, world.now())
    if left or world.as_of is not None:
        return
    with store.write() as tx:
        heartbeat.complete(tx, world.now())
    try:
        url = heartbeat_url(world)
        failed = ping(url) if url else None
    except UsageError as error:
        failed = error.message.rstrip(".")
    if failed is not None:
        output.note(f"dq: the heartbeat could not be given: {failed}.")
