"""`dq.watch`: deliveries judged, incidents opened and resolved, alerts sent. One call is one tick."""

from __future__ import annotations

import http.client
import os
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from dq.alerts import metrics
from dq.alerts.drain import Drained
from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.install import NAME
from dq.contracts.outcome import CycleStatus, Finding, UsageError
from dq.contracts.slo import NOT_IN_FORCE, Cycle
from dq.dataquality.delivery import compliance, cycle_store, heartbeat
from dq.dataquality.delivery.cycle import SETTLE, Kept, MissingPart, Watched, label
from dq.dataquality.delivery.notify import root_of
from dq.dataquality.delivery.probe_pool import Lookout
from dq.dataquality.delivery.skip_cache import (
    RestingContract,
    appeared,
    rest_of,
    resting_contracts,
    save_skipped,
    spoken_of,
)
from dq.dataquality.delivery.tick import Tick, tick
from dq.lake.storage import Files, SilentFiles, Storages
from dq.operations import alerting
from dq.operations.data_places import placed, resolved, with_folders
from dq.operations.key_ownership import close_withdrawn, settled, withdrawals
from dq.operations.metrics import is_loopback
from dq.operations.registry_files import Loaded, load_watched, slos
from dq.operations.runtime.context import World, aware, called, secret_in
from dq.store.engine import Store

VARIABLE = "DQ_HEARTBEAT_URL"
SECONDS = 5.0
_MEND = f"Correct {VARIABLE}, heartbeat_url in dq.toml, or the file that {VARIABLE}_FILE names."


def heartbeat_url(world: World) -> str:
    """The operator's URL; empty where there is none.

    Raises UsageError, which does not quote it, for one that is not `https://…`; on the loopback `http` does.
    """
    file = world.environment.get(f"{VARIABLE}_FILE")
    url = secret_in(Path(file), f"{VARIABLE}_FILE") if file else world.settings.heartbeat_url
    if url:
        _parts(url)
    return url


def ping(url: str, seconds: float = SECONDS) -> str | None:
    """Asks for the URL once, following nothing; why that failed, or None. Takes at most `seconds`."""
    ended: list[str | None] = []
    # A thread, because a server that answers a byte at a time outlasts every timeout of a socket.
    asking = threading.Thread(target=lambda: ended.append(_ask(_parts(url), seconds)), daemon=True)
    asking.start()
    asking.join(seconds)
    return ended[0] if ended else _late(seconds)


def _ask(parts: SplitResult, seconds: float) -> str | None:
    host, port = parts.hostname or "", parts.port
    secure = parts.scheme == "https"
    connection = (
        http.client.HTTPSConnection(host, port, timeout=seconds, context=ssl.create_default_context())
        if secure
        else http.client.HTTPConnection(host, port, timeout=seconds)
    )
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    try:
        connection.request("GET", path, headers={"User-Agent": "dq", "Connection": "close"})
        status = connection.getresponse().status
    except TimeoutError:
        return _late(seconds)
    # What these say may quote the address.
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        return f"it could not be reached ({type(error).__name__})"
    finally:
        connection.close()
    return None if 200 <= status < 300 else f"the answer was HTTP {status}"


def _late(seconds: float) -> str:
    return f"no answer within {seconds:g} s"


def _parts(url: str) -> SplitResult:
    address = web_address(url, WEB)
    if address is None or not url.isascii():
        raise UsageError("heartbeat_url is no URL that can be asked for.", _MEND)
    if address.scheme != "https" and not is_loopback(address.host):
        raise UsageError("heartbeat_url is not https, and not of this machine.", _MEND)
    return urlsplit(url)


@dataclass(slots=True)
class Rest:
    """What rests in this tick. Asked for each file in turn, it remembers what it was shown."""

    folder: Path
    terms: str
    kept: dict[str, RestingContract]
    contents: dict[str, str] = field(default_factory=dict)

    def of(self, file: Path, content: bytes) -> str | None:
        """The key of a contract that rests; None for one that is to be read."""
        name, found = str(self.folder / file), sha256(content).hexdigest()
        self.contents[name] = found
        before = self.kept.get(name)
        return before.contract if before is not None and before.content == found else None

    def _resting(self) -> list[RestingContract]:
        return [one for name, one in self.kept.items() if self.contents.get(name) == one.content]

    @property
    def slos(self) -> int:
        """How many promises of this tick's files rest."""
        return sum(one.slos for one in self._resting())

    @property
    def open(self) -> int:
        """How many of their cycles are still missing."""
        missing = (part for one in self._resting() for part in one.missing)
        return len({part.cycle_id for part in missing if part.status == CycleStatus.MISSING})


def at_rest(
    world: World,
    store: Store,
    paths: Iterable[Path],
    lookout: Lookout,
    files_of: Callable[[str], Files],
    *given: object,
) -> Rest:
    """What rests now under the settings of the operator and what else was `given` to the command.

    Of what is missing below the `paths` nothing has come: that is looked for here.
    """
    own = world.settings
    variables = {name: world.environment.get(name) for name in own.vars}
    releases = [version(name) for name in (NAME, "tzdata", "holidays")]
    said = [*releases, str(world.folder), repr(own), repr(variables), repr(given)]
    terms = sha256("\0".join(said).encode()).hexdigest()
    with store.read() as tx:
        laid = resting_contracts(tx, terms, world.now(), cycle_store.open_states(tx, world.now()))
        heard = spoken_of(tx) if any(one.missing for one in laid.values()) else set()
    scope = [world.folder / path for path in paths]
    # What another watcher has laid down is not looked for, and so it does not rest here.
    quiet = {
        name: one
        for name, one in laid.items()
        if not one.missing
        or (name not in heard and any(Path(name).is_relative_to(folder) for folder in scope))
    }
    owners = {part: name for name, one in quiet.items() for part in one.missing}
    woken = {owners[part] for part in appeared(lookout, list(owners), files_of)}
    return Rest(world.folder, terms, {name: one for name, one in quiet.items() if name not in woken})


def lay_to_rest(
    world: World,
    store: Store,
    rest: Rest,
    loaded: Loaded,
    watched: Sequence[Watched],
    findings: Iterable[Finding],
) -> None:
    """Keeps which of the contracts that were read rest now: all is well with them, or missing and told."""
    now, troubled = world.now(), {finding.at.file for finding in findings}
    promises: dict[str, list[Watched]] = {}
    for one in watched:
        promises.setdefault(one.slo.contract.key, []).append(one)
    # A name that is not UTF-8 is shown otherwise than it is: such a contract does not rest.
    quiet = {
        one.key: name
        for one in loaded.contracts
        if one.status not in NOT_IN_FORCE and one.file not in troubled
        if (name := str(rest.folder / one.file)) in rest.contents
    }
    if not quiet:
        return
    open_cycles: dict[str, dict[tuple[str, str, str], list[Kept]]] = {}
    with store.read() as tx:
        for key, kept in cycle_store.open_cycles(tx, now, quiet).items():
            open_cycles.setdefault(key[0], {})[key] = kept
    laid = []
    for contract, name in quiet.items():
        own = promises.get(contract, [])
        # Nobody knows whether its place may be used.
        if any(isinstance(one.files, SilentFiles) for one in own):
            continue
        missing = _missing(own, open_cycles.get(contract, {}), now)
        if missing is None:
            continue
        parts, times = missing
        until = min((*times, *_next_due(own, now)), default=None)
        laid.append(
            RestingContract(
                name, rest.contents[name], rest.terms, contract, len(own), now, until, tuple(parts)
            )
        )
    if laid:
        with store.write() as tx:
            save_skipped(tx, laid)


def _missing(
    own: Iterable[Watched], open_cycles: dict[tuple[str, str, str], list[Kept]], now: datetime
) -> tuple[list[MissingPart], list[datetime]] | None:
    """What is missing of a contract's promises, and when it is judged again; None where it may not rest."""
    parts: list[MissingPart] = []
    times: list[datetime] = []
    by_key = {one.slo.key: one for one in own}
    for key, cycles in open_cycles.items():
        one = by_key.get(key)
        root = root_of(one) if one else ""
        for kept in cycles:
            found = rest_of(one, root, kept, now, SETTLE) if one else None
            if found is None:
                return None
            parts += found.parts
            times += [found.until] if found.until is not None else []
    return parts, times


def _next_due(own: Iterable[Watched], now: datetime) -> list[datetime]:
    first = (next(iter(one.slo.schedule.after(now)), None) for one in own)
    return [due.at for due in first if due is not None]


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
    channel: str = alerting.FROM_CONTRACT
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
        if self.drained is not None and (undelivered := alerting.exit_code(self.drained)):
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
            "outstanding": [alerting.outstanding_as_dict(one) for one in sent.outstanding],
        }


def watch(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    since: datetime | None = None,
    server: str | None = None,
    channel: str = alerting.FROM_CONTRACT,
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
    wrong += alerting.refused(loaded.contracts, channel, world.settings)
    watching, refused = placed(promises, server, reach, files, lookout)
    watching = with_folders(store, watching)
    findings = [*loaded.findings, *wrong, *refused]
    scope = request.scope(world)
    with store.read() as tx:
        looked_at = heartbeat.looked_at(tx, scope)
        terms = compliance.stored_terms(tx, {*(contract.key for contract in loaded.contracts), *loaded.gone})
    alerting.keep(store, loaded, paths)
    done = tick(
        store,
        watching,
        now,
        alerting.teller(world, loaded.contracts, channel, server, loaded.resting),
        since=request.since,
        unread=set(loaded.resting.values()),
        withdrawn=ended,
        past=alerting.teller_of_past(world, channel),
        settle=alerting.settler(world),
        lookout=lookout,
        looked_at=looked_at,
    )
    news = compliance.changed_terms(terms, compliance.terms_of(promises), ended)
    with store.write() as tx:
        heartbeat.note_look(tx, scope, now)
        compliance.write_terms(tx, news)
    done = replace(done, slos=done.slos + rest.slos, open=done.open + rest.open)
    close_withdrawn(world, store, loaded)
    lay_to_rest(world, store, rest, loaded, watching, findings)
    alerting.reroute(world, store, loaded.contracts, channel)
    return WatchOutcome(now, tick=done, findings=tuple(findings))


def deliver(
    world: World,
    store: Store,
    request: WatchRequest,
    outcome: WatchOutcome,
    patience: timedelta | None = None,
) -> WatchOutcome:
    """Send what waits. See `alerting.send` for `patience`."""
    if outcome.tick is None:
        return outcome
    return replace(outcome, drained=alerting.send(world, store, request.channel, patience))


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
    ahead = heartbeat.to_come(now, replace(world, as_of=None).now())
    with store.write() as tx:
        reason = heartbeat.doubt(tx, now, real=real, uptime=uptime) or ahead
        if reason is None or trusted:
            heartbeat.beat(tx, now, uptime)
            return None
        if uptime is not None:
            heartbeat.note_doubt(tx, now, uptime)
    return reason


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
