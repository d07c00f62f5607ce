"""`dq.watch`: deliveries judged, incidents opened and resolved, alerts sent. One call is one tick."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path

from dq.alerts import metrics
from dq.alerts.drain import Drained
from dq.contracts.shared.outcome import CycleStatus, Finding, UsageError
from dq.contracts.slo import Cycle
from dq.dataquality.delivery import compliance, heartbeat
from dq.dataquality.delivery.cycle import label
from dq.dataquality.delivery.probe_pool import Lookout
from dq.dataquality.delivery.tick import Tick, tick
from dq.lake.storage import Storages
from dq.operations.alerting import downstream, routes, send
from dq.operations.data_places import placed, resolved, with_folders
from dq.operations.heartbeat import heartbeat_url, ping
from dq.operations.key_ownership import close_withdrawn, settled, withdrawals
from dq.operations.registry_files import load_watched, slos
from dq.operations.runtime.context import World, aware, called
from dq.operations.skip_cache import at_rest, lay_to_rest
from dq.store.engine import Store


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What a tick looks at, and who is told.

    `since` is where a promise begins that was never watched, by default now. `server` is the one to look at
    where a contract has several. `channel` is `contract` for those that the contracts name, else one such as
    `console` or `slack:#sales-data`. `trust_clock` judges although the clock went back.
    """

    paths: tuple[Path, ...] = (Path(),)
    since: datetime | None = None
    server: str | None = None
    channel: str = routes.FROM_CONTRACT
    trust_clock: bool = False

    def scope(self, world: World) -> str:
        """A hash of what is watched: another watcher on the same store may watch something else."""
        names = sorted(os.fsencode(world.folder / path) for path in self.paths)
        return sha256(b"\0".join(names)).hexdigest()


@dataclass(frozen=True, slots=True)
class WatchOutcome:
    """What came of a tick, as of `at` in UTC.

    `refused` is why nothing was judged; then `tick` is None. `findings` are contracts that could not be read
    and places that cannot be known. `drained` is what was sent and what waits, None before anything was sent.
    `alerts` are the blocks that went to the console's channel, and `notes` what else the caller should know.
    """

    at: datetime
    refused: str | None = None
    tick: Tick | None = None
    findings: tuple[Finding, ...] = ()
    drained: Drained | None = None
    alerts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """As `dq watch` ends: 4 alerts did not arrive, 3 something was not read, 1 a delivery is missing."""
        if self.tick is None:
            return 3
        if self.drained is not None and (undelivered := send.exit_code(self.drained)):
            return undelivered
        if self.tick.unknown or self.findings:
            return 3
        return int(any(change.after is CycleStatus.MISSING for change in self.tick.changes))

    def as_dict(self) -> dict[str, object]:
        """What `dq watch --format json` prints."""
        if self.tick is None:
            return {"at": self.at.isoformat(), "refused": self.refused}
        sent = self.drained or Drained()
        return {
            **tick_as_dict(self.tick),
            "findings": [finding.as_dict() for finding in self.findings],
            "sent": sent.sent,
            "waiting": sent.waiting,
            "outstanding": [send.outstanding_as_dict(one) for one in sent.outstanding],
        }


def watch(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    since: datetime | None = None,
    server: str | None = None,
    channel: str = routes.FROM_CONTRACT,
    trust_clock: bool = False,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> WatchOutcome:
    """Judge every delivery that came due, open and resolve incidents, and send alerts, as `dq watch` does.

    `paths` are files and folders of contracts. `folder` stands for the working folder, where settings and
    store are, and from which relative paths lead. `now` and `since` are aware instants; without `now` the
    present one counts. The other arguments are those of `WatchRequest`.

    Raises UsageError for what does not fit, for a channel that is not set up and for settings that cannot be
    understood, Unreadable for a path without contracts, and StoreError for a store that does not answer.
    """
    begin = aware("since", since)
    world, places = called(paths, folder, now)
    heartbeat_url(world)
    request = WatchRequest(places, begin, server, channel, trust_clock)
    with closing(world.store()) as store:
        outcome = judge(world, store, request, Lookout().of_tick(world.settings.storage_seconds))
        outcome = deliver(world, store, request, outcome)
        give_sign(world, store, outcome)
    return replace(outcome, alerts=tuple(world.messages.alerts), notes=tuple(world.messages.notes))


def judge(world: World, store: Store, request: WatchRequest, lookout: Lookout) -> WatchOutcome:
    """The tick; its alerts are recorded, and not sent. `lookout` knows which storages are silent.

    Raises as `watch`.
    """
    now = world.now()
    reason = _doubt(world, store, trusted=request.trust_clock)
    if reason is not None:
        return WatchOutcome(now, reason)
    if request.since is not None and request.since > now:
        raise UsageError(
            f"--since {request.since:%Y-%m-%dT%H:%M:%SZ} is after {now:%Y-%m-%dT%H:%M:%SZ}.",
            "Name an instant of before.",
        )
    paths, server, channel = list(request.paths), request.server, request.channel
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
    scope = request.scope(world)
    with store.read() as tx:
        looked_at = heartbeat.looked_at(tx, scope)
    downstream.keep(store, loaded, paths)
    done = tick(
        store,
        watching,
        now,
        send.teller(world, loaded.contracts, channel, server, loaded.resting),
        since=request.since,
        unread=set(loaded.resting.values()),
        withdrawn=ended,
        past=send.teller_of_past(world, channel),
        settle=downstream.settler(world),
        lookout=lookout,
        looked_at=looked_at,
    )
    with store.read() as tx:
        stored = compliance.stored_terms(tx, {*(contract.key for contract in loaded.contracts), *loaded.gone})
    news = compliance.changed_terms(stored, compliance.terms_of(promises), ended)
    with store.write() as tx:
        heartbeat.note_look(tx, scope, now)
        compliance.write_terms(tx, news)
    done = replace(done, slos=done.slos + rest.slos, open=done.open + rest.open)
    close_withdrawn(world, store, loaded)
    lay_to_rest(world, store, rest, loaded, watching, findings)
    send.reroute(world, store, loaded.contracts, channel)
    return WatchOutcome(now, tick=done, findings=tuple(findings))


def deliver(
    world: World,
    store: Store,
    request: WatchRequest,
    outcome: WatchOutcome,
    patience: timedelta | None = None,
) -> WatchOutcome:
    """Send what waits. See `send.send` for `patience`."""
    if outcome.tick is None:
        return outcome
    return replace(outcome, drained=send.send(world, store, request.channel, patience))


def give_sign(world: World, store: Store, outcome: WatchOutcome) -> None:
    """After a tick that judged everything: if nothing is left unsent either, whoever waits hears of it.

    Not of one as of another time, which shows nothing about now.
    """
    if outcome.exit_code > 1 or world.as_of is not None:
        return
    with store.read() as tx:
        if metrics.owed(tx, world.now()):
            return
    with store.write() as tx:
        heartbeat.complete(tx, world.now())
    try:
        url = heartbeat_url(world)
        failed = ping(url) if url else None
    except UsageError as error:
        failed = error.message.rstrip(".")
    if failed is not None:
        world.note(f"the heartbeat could not be given: {failed}.")


def _doubt(world: World, store: Store, *, trusted: bool) -> str | None:
    """Why this tick may not judge; else None, and it is the last one from now on."""
    now, real = world.now(), world.as_of is None
    uptime = world.uptime() if real else None
    with store.read() as tx:
        reason = heartbeat.doubt(tx, now, real=real, uptime=uptime)
    reason = reason or heartbeat.to_come(now, replace(world, as_of=None).now())
    if reason is not None and not trusted:
        if uptime is not None:
            with store.write() as tx:
                heartbeat.note_doubt(tx, now, uptime)
        return reason
    with store.write() as tx:
        heartbeat.beat(tx, now, uptime)
    return None


def delivery_as_dict(cycle: Cycle) -> Mapping[str, object]:
    """What tells one delivery from all others, for machines."""
    return {
        "contract": cycle.contract,
        "object": cycle.object,
        "slo": cycle.slo,
        "due_at": cycle.due_at.isoformat(),
    }


def tick_as_dict(done: Tick) -> dict[str, object]:
    """The tick for machines."""
    return {
        "at": done.at.isoformat(),
        "slos": done.slos,
        "new_cycles": done.new_cycles,
        "open": done.open,
        "changes": [
            {
                **delivery_as_dict(change.kept.cycle),
                "partitions": [label(partition) for partition in change.kept.cycle.partitions],
                "before": change.kept.status,
                "after": change.after,
                "reason": change.reason,
            }
            for change in done.changes
        ],
        "unknown": [
            {**delivery_as_dict(unknown.kept.cycle), "reason": unknown.reason} for unknown in done.unknown
        ],
    }
