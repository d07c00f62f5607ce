"""`dq.watch`: evaluate deliveries, open and resolve incidents, send alerts. One call is one tick."""

from __future__ import annotations

import http.client
import os
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache, partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from dq.alerts import incident_store, metrics
from dq.alerts.drain import DrainResult
from dq.alerts.record import record
from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.incident import CycleStatus, Recovery, Resolution
from dq.contracts.install import NAME
from dq.contracts.outcome import Finding, ReadError, UsageError
from dq.contracts.slo import NOT_IN_FORCE, NOT_WATCHED, Cycle
from dq.contracts.yaml.parse import parse
from dq.dataquality.delivery import compliance, cycle_store, early_warning, heartbeat
from dq.dataquality.delivery.cycle import SETTLE, CycleRecord, MissingPartition, WatchTarget, label
from dq.dataquality.delivery.key_owners import delete_owners
from dq.dataquality.delivery.notify import storage_root
from dq.dataquality.delivery.probe_pool import ProbePool
from dq.dataquality.delivery.skip_cache import (
    SkippedContract,
    files_with_news,
    find_appeared,
    save_skipped,
    skip_until,
    skipped_contracts,
)
from dq.dataquality.delivery.tick import TickResult, tick
from dq.lake.storage import Files, Storages, UnreachableFiles
from dq.operations import alerting
from dq.operations.data_places import resolve_links, resolve_locations, with_folders
from dq.operations.key_ownership import make_withdrawal_reason, resolve_key_owners
from dq.operations.metrics import is_loopback
from dq.operations.notices import RegistrySubscriptions, record_recoveries
from dq.operations.registry_files import LoadedContracts, load_watched, slos
from dq.operations.runtime.context import RuntimeContext, call_context, read_secret, to_utc
from dq.store.engine import Store

if TYPE_CHECKING:
    from dq.operations.delivery_state import CatalogWrites

VARIABLE = "DQ_HEARTBEAT_URL"
SECONDS = 5.0
_HINT = f"Correct {VARIABLE}, heartbeat_url in dq.toml, or the file that {VARIABLE}_FILE names."


def heartbeat_url(context: RuntimeContext) -> str:
    """Return the operator's heartbeat URL, or "" if not set.

    Raises UsageError, without quoting the URL, if it is not `https://…`; `http` is allowed on the loopback.
    """
    file = context.environment.get(f"{VARIABLE}_FILE")
    url = read_secret(Path(file), f"{VARIABLE}_FILE") if file else context.settings.heartbeat_url
    if url:
        _parts(url)
    return url


def ping(url: str, seconds: float = SECONDS) -> str | None:
    """Request the URL once without redirects; return the error, or None. Takes at most `seconds`."""
    results: list[str | None] = []
    # A thread, because a server that sends a byte at a time outlasts socket timeouts.
    thread = threading.Thread(target=lambda: results.append(_request(_parts(url), seconds)), daemon=True)
    thread.start()
    thread.join(seconds)
    return results[0] if results else _timeout_text(seconds)


def _request(parts: SplitResult, seconds: float) -> str | None:
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
        return _timeout_text(seconds)
    # Messages of these errors may quote the URL.
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        return f"unreachable ({type(error).__name__})"
    finally:
        connection.close()
    return None if 200 <= status < 300 else f"HTTP status {status}"


def _timeout_text(seconds: float) -> str:
    return f"no answer within {seconds:g} s"


def _parts(url: str) -> SplitResult:
    address = web_address(url, WEB)
    if address is None or not url.isascii():
        raise UsageError("heartbeat_url is not a valid http:// or https:// URL.", _HINT)
    if address.scheme != "https" and not is_loopback(address.host):
        raise UsageError("heartbeat_url must be https unless it is on this machine.", _HINT)
    return urlsplit(url)


@dataclass(slots=True)
class SkipCache:
    """Skip cache of a tick: contracts that need not be read. Records the content hash of each file."""

    folder: Path
    terms: str
    cached: dict[str, SkippedContract]
    contents: dict[str, str] = field(default_factory=dict)

    def key_to_skip(self, file: Path, content: bytes) -> str | None:
        """Return the key of a contract to skip, or None if it must be read."""
        name, digest = str(self.folder / file), sha256(content).hexdigest()
        self.contents[name] = digest
        entry = self.cached.get(name)
        return entry.contract if entry is not None and entry.content == digest else None

    def _skipped(self) -> list[SkippedContract]:
        return [entry for name, entry in self.cached.items() if self.contents.get(name) == entry.content]

    @property
    def slos(self) -> int:
        """Number of SLOs of skipped contracts."""
        return sum(entry.slos for entry in self._skipped())

    @property
    def open(self) -> int:
        """Number of missing cycles of skipped contracts."""
        missing = (part for entry in self._skipped() for part in entry.missing)
        return len({part.cycle_id for part in missing if part.status == CycleStatus.MISSING})


def load_skip_cache(
    context: RuntimeContext,
    store: Store,
    paths: Iterable[Path],
    probe_pool: ProbePool,
    files_of: Callable[[str], Files],
    *options: object,
) -> SkipCache:
    """Load the skip cache for the current settings and `options` of the command.

    Missing partitions below the `paths` are probed here: a contract is only skipped if none has arrived.
    """
    settings = context.settings
    variables = {name: context.environment.get(name) for name in settings.vars}
    releases = [version(name) for name in (NAME, "tzdata", "holidays")]
    parts = [*releases, str(context.folder), repr(settings), repr(variables), repr(options)]
    terms = sha256("\0".join(parts).encode()).hexdigest()
    with store.read() as tx:
        stored = skipped_contracts(tx, terms, context.now(), cycle_store.open_states(tx, context.now()))
        notified = files_with_news(tx) if any(entry.missing for entry in stored.values()) else set()
    scope = [context.folder / path for path in paths]
    # Missing partitions of other watchers' entries are not probed, so those contracts are not skipped.
    skippable = {
        name: entry
        for name, entry in stored.items()
        if not entry.missing
        or (name not in notified and any(Path(name).is_relative_to(folder) for folder in scope))
    }
    owners = {part: name for name, entry in skippable.items() for part in entry.missing}
    appeared_names = {owners[part] for part in find_appeared(probe_pool, list(owners), files_of)}
    return SkipCache(
        context.folder,
        terms,
        {name: entry for name, entry in skippable.items() if name not in appeared_names},
    )


@lru_cache(maxsize=65_536)
def _contract_key(content: bytes, file: str) -> str | None:
    contract = parse(content, file).contract
    return contract.key if contract is not None else None


@dataclass(frozen=True, slots=True)
class OtherContracts:
    """Skips all contracts but that of a key, without evaluating whether something about them is due."""

    key: str
    slos: int = 0
    open: int = 0

    def key_to_skip(self, file: Path, content: bytes) -> str | None:
        """Return the key of another contract, or None for a file that must be read."""
        key = _contract_key(content, str(file))
        return key if key != self.key else None


def save_skip_cache(
    context: RuntimeContext,
    store: Store,
    skip_cache: SkipCache,
    loaded: LoadedContracts,
    targets: Sequence[WatchTarget],
    findings: Iterable[Finding],
) -> None:
    """Store which of the loaded contracts can be skipped: nothing is missing, or it is already notified."""
    now, files_with_findings = context.now(), {finding.at.file for finding in findings}
    promises: dict[str, list[WatchTarget]] = {}
    for target in targets:
        promises.setdefault(target.slo.contract.key, []).append(target)
    # Names that are not UTF-8 differ from their display form: such contracts are not skipped.
    candidates = {
        contract.key: name
        for contract in loaded.contracts
        if contract.status not in NOT_IN_FORCE and contract.file not in files_with_findings
        if (name := str(skip_cache.folder / contract.file)) in skip_cache.contents
    }
    if not candidates:
        return
    open_cycles: dict[str, dict[tuple[str, str, str], list[CycleRecord]]] = {}
    warned = [target.slo for target in targets if target.slo.false_warnings is not None]
    with store.read() as tx:
        warning_times = early_warning.next_evaluations(tx, candidates, warned, now)
        for key, cycles in cycle_store.open_cycles(tx, now, candidates).items():
            open_cycles.setdefault(key[0], {})[key] = cycles
    entries = []
    for contract, name in candidates.items():
        contract_targets = promises.get(contract, [])
        # The location did not answer, so it is unknown whether it is allowed.
        if any(isinstance(target.files, UnreachableFiles) for target in contract_targets):
            continue
        missing = _missing(contract_targets, open_cycles.get(contract, {}), now)
        if missing is None:
            continue
        parts, times = missing
        times += warning_times.get(contract, [])
        until = min((*times, *_next_due(contract_targets, now)), default=None)
        if until is not None and until <= now:
            continue
        entries.append(
            SkippedContract(
                name,
                skip_cache.contents[name],
                skip_cache.terms,
                contract,
                len(contract_targets),
                now,
                until,
                tuple(parts),
            )
        )
    if entries:
        with store.write() as tx:
            save_skipped(tx, entries)


def _missing(
    targets: Iterable[WatchTarget], open_cycles: dict[tuple[str, str, str], list[CycleRecord]], now: datetime
) -> tuple[list[MissingPartition], list[datetime]] | None:
    """Return the missing parts of a contract and its next evaluations, or None if it cannot be skipped."""
    parts: list[MissingPartition] = []
    times: list[datetime] = []
    by_key = {target.slo.key: target for target in targets}
    for key, cycles in open_cycles.items():
        target = by_key.get(key)
        root = storage_root(target) if target else ""
        for stored_cycle in cycles:
            skip = skip_until(target, root, stored_cycle, now, SETTLE) if target else None
            if skip is None:
                return None
            parts += skip.parts
            times += [skip.until] if skip.until is not None else []
    return parts, times


def _next_due(targets: Iterable[WatchTarget], now: datetime) -> list[datetime]:
    first = (next(iter(target.slo.schedule.after(now)), None) for target in targets)
    return [due.at for due in first if due is not None]


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """Arguments of a tick.

    `since` is the start of SLOs that were never watched, by default now. `server` is required if a contract
    has several. `channel` is `contract` for the channels of the contracts, or one channel, e.g. `console` or
    `slack:#sales-data`. `trust_clock` evaluates although the clock went back. `contract` is the key of the
    only contract of the paths to evaluate, or None for all of them.
    """

    paths: tuple[Path, ...] = (Path(),)
    since: datetime | None = None
    server: str | None = None
    channel: str = alerting.FROM_CONTRACT
    trust_clock: bool = False
    contract: str | None = None

    def scope(self, context: RuntimeContext) -> str:
        """Return a hash of the watched paths, since other watchers on the store may have other paths."""
        names = sorted(os.fsencode(context.folder / path) for path in self.paths)
        if self.contract is not None:
            names.append(os.fsencode(self.contract))
        return sha256(b"\0".join(names)).hexdigest()


@dataclass(frozen=True, slots=True)
class WatchOutcome:
    """Result of a tick, as of `at` in UTC.

    `refused` is the reason why nothing was evaluated; then `tick` is None. `findings` are contracts that
    could not be read and unknown locations. `drained` has the sent and waiting alerts, or is None before
    sending. `catalog` has the tables whose state was written, or is None without the setting. `alerts` are
    the blocks of the console channel, and `notes` further messages.
    """

    at: datetime
    refused: str | None = None
    tick: TickResult | None = None
    findings: tuple[Finding, ...] = ()
    drained: DrainResult | None = None
    catalog: CatalogWrites | None = None
    alerts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq watch`: 4 alerts did not arrive, 3 something was not read, or not written to the
        catalog, 1 a delivery is missing.
        """
        if self.tick is None:
            return 3
        if self.drained is not None and (undelivered := alerting.exit_code(self.drained)):
            return undelivered
        if self.catalog is not None and self.catalog.failed:
            return 3
        if self.tick.unknown or any(finding.rule != NOT_WATCHED for finding in self.findings):
            return 3
        return int(any(change.after is CycleStatus.MISSING for change in self.tick.changes))

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq watch --format json` as JSON values."""
        if self.tick is None:
            return {"at": self.at.isoformat(), "refused": self.refused}
        sent = self.drained or DrainResult()
        return {
            **tick_as_dict(self.tick),
            "findings": [finding.as_dict() for finding in self.findings],
            "sent": sent.sent,
            "overdue": sent.overdue,
            "outstanding": [alerting.outstanding_as_dict(entry) for entry in sent.undelivered],
            "catalog": self.catalog.as_dict() if self.catalog is not None else None,
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
    """Evaluate every due delivery, open and resolve incidents, and send alerts, as `dq watch` does.

    `paths` are files and folders of contracts. `folder` replaces the working folder, which has settings and
    store, and is the base of relative paths. `now` and `since` are aware instants; `now` defaults to the
    current time. The other arguments are those of `WatchRequest`.

    Raises UsageError for invalid arguments or settings and for a channel that is not configured, ReadError
    for a path without contracts, and StoreError if the store cannot be read.
    """
    begin = to_utc("since", since)
    context, places = call_context(paths, folder, now)
    heartbeat_url(context)
    request = WatchRequest(places, begin, server, channel, trust_clock)
    with closing(context.store()) as store:
        outcome = run_tick(context, store, request, ProbePool().for_tick(context.settings.storage_seconds))
        outcome = send_alerts(context, store, request, outcome)
        outcome = write_catalog(context, store, outcome)
        send_heartbeat(context, store, outcome)
    return replace(outcome, alerts=tuple(context.messages.alerts), notes=tuple(context.messages.notes))


def run_tick(
    context: RuntimeContext, store: Store, request: WatchRequest, probe_pool: ProbePool
) -> WatchOutcome:
    """Run the tick; alerts are recorded, but not sent. `probe_pool` remembers storages that do not respond.

    Raises as `watch`.
    """
    now = context.now()
    reason = _refusal_reason(context, store, trusted=request.trust_clock)
    if reason is not None:
        return WatchOutcome(now, reason)
    if request.since is not None and request.since > now:
        raise UsageError(
            f"--since {request.since:%Y-%m-%dT%H:%M:%SZ} is after the current time {now:%Y-%m-%dT%H:%M:%SZ}.",
            "Pass an earlier time.",
        )
    paths, server, channel = list(request.paths), request.server, request.channel
    reach = context.reach_by(partial(resolve_links, probe_pool))
    files = Storages(reach, probe_pool.seconds).of
    skip_cache = (
        load_skip_cache(context, store, paths, probe_pool, files, server, channel)
        if request.contract is None
        else OtherContracts(request.contract)
    )
    loaded = resolve_key_owners(
        context,
        store,
        load_watched(store, paths, skip_cache.key_to_skip, context.note),
        paths,
        update_store=True,
    )
    if isinstance(skip_cache, OtherContracts):
        loaded = _only(loaded, skip_cache.key)
    promises, problems = slos(loaded, context.note)
    withdrawal_reason = make_withdrawal_reason(loaded, promises, problems)
    problems += alerting.refused(loaded.contracts, channel, context.settings)
    targets, refused = resolve_locations(promises, server, reach, files, probe_pool)
    targets = with_folders(store, targets)
    findings = [*loaded.findings, *problems, *refused]
    scope = request.scope(context)
    with store.read() as tx:
        ticks = [heartbeat.last_scope_tick(tx, scope)]
        if request.contract is not None:
            # A tick of all contracts has also evaluated this one.
            ticks.append(heartbeat.last_scope_tick(tx, replace(request, contract=None).scope(context)))
        terms = compliance.stored_terms(
            tx, {*(contract.key for contract in loaded.contracts), *loaded.removed}
        )
    alerting.save_lineage(store, loaded, paths)
    notices, subscriptions = alerting.make_notices(context), RegistrySubscriptions(context)
    result = tick(
        store,
        targets,
        now,
        alerting.make_notifier(
            context, loaded.contracts, channel, server, loaded.skipped, notices, subscriptions
        ),
        since=request.since,
        unchanged_contracts=set(loaded.skipped.values()) if request.contract is None else (),
        withdrawal_reason=withdrawal_reason,
        record_unnotified=alerting.make_past_notifier(context, channel),
        prepare=subscriptions.read,
        settle=alerting.make_settler(context, notices),
        inputs_by_product=alerting.inputs_by_product,
        probe_pool=probe_pool,
        last_tick_at=max((at for at in ticks if at is not None), default=None),
    )
    news = compliance.changed_terms(terms, compliance.terms_by_slo(promises), withdrawal_reason)
    with store.write() as tx:
        heartbeat.record_scope_tick(tx, scope, now)
        compliance.write_terms(tx, news)
    result = replace(
        result, slos=result.slos + skip_cache.slos, open_cycles=result.open_cycles + skip_cache.open
    )
    _close_withdrawn(context, store, loaded)
    if context.settings.watch_catalog:
        # Imported here, and below: slow to import, and rarely used.
        from dq.operations.delivery_state import record_changes

        record_changes(context, store, promises, server)
    if isinstance(skip_cache, SkipCache):
        save_skip_cache(context, store, skip_cache, loaded, targets, findings)
    alerting.reroute(context, store, loaded.contracts, channel)
    return WatchOutcome(now, tick=result, findings=tuple(findings))


def _close_withdrawn(context: RuntimeContext, store: Store, loaded: LoadedContracts) -> None:
    """Resolve open incidents of removed or retired contracts, and release the keys of removed ones."""
    reasons = dict(loaded.removed)
    for contract in loaded.contracts:
        if contract.status in NOT_IN_FORCE:
            reasons[contract.key] = f"The contract is now {contract.status}."
    if not reasons:
        return
    with store.read() as tx:
        unresolved = incident_store.unresolved(tx, list(reasons))
    if not unresolved and not loaded.removed:
        return
    with store.write() as tx:
        for incident in unresolved:
            facts = (("withdrawn", reasons[incident.key.contract]),)
            recoveries = [
                Recovery(incident.key, subject, context.now(), facts, Resolution.WITHDRAWN)
                for subject in incident.open_subjects
            ]
            for recovery in recoveries:
                record(tx, recovery, (), context.now())
            record_recoveries(tx, recoveries, context.now())
        delete_owners(tx, list(loaded.removed))


def _only(loaded: LoadedContracts, key: str) -> LoadedContracts:
    """Return the loaded contracts without findings about others. Raises ReadError without this contract."""
    contracts = [contract for contract in loaded.contracts if contract.key == key]
    if not contracts:
        raise ReadError(
            f"contract {key!r} is not in the registry, or cannot be read.",
            "If it was removed, delete its schedules: dq register --apply --prune.",
            [str(finding) for finding in loaded.findings],
        )
    files = {contract.file for contract in contracts}
    findings = [finding for finding in loaded.findings if finding.at.file in files]
    return replace(loaded, contracts=contracts, findings=findings)


def send_alerts(
    context: RuntimeContext,
    store: Store,
    request: WatchRequest,
    outcome: WatchOutcome,
    patience: timedelta | None = None,
) -> WatchOutcome:
    """Send waiting alerts. See `alerting.send` for `patience`."""
    if outcome.tick is None:
        return outcome
    return replace(outcome, drained=alerting.send(context, store, request.channel, patience))


def write_catalog(context: RuntimeContext, store: Store, outcome: WatchOutcome) -> WatchOutcome:
    """Write how far each changed table is complete to the catalog of the settings, if there is one."""
    if outcome.tick is None or not context.settings.watch_catalog:
        return outcome
    from dq.operations.delivery_state import write_states

    return replace(outcome, catalog=write_states(context, store))


def send_heartbeat(context: RuntimeContext, store: Store, outcome: WatchOutcome) -> None:
    """Send the heartbeat after a tick that evaluated everything and left nothing unsent.

    Replays as of another time send none.
    """
    if outcome.exit_code > 1 or context.as_of is not None:
        return
    with store.read() as tx:
        if metrics.count_overdue(tx, context.now()):
            return
    with store.write() as tx:
        heartbeat.record_complete_tick(tx, context.now())
    try:
        url = heartbeat_url(context)
        failed = ping(url) if url else None
    except UsageError as error:
        failed = error.message.rstrip(".")
    if failed is not None:
        context.note(f"heartbeat failed: {failed}.")


def _refusal_reason(context: RuntimeContext, store: Store, *, trusted: bool) -> str | None:
    """Return the reason why this tick must not evaluate, or None after recording it as the last tick."""
    now, is_current = context.now(), context.as_of is None
    uptime = context.uptime() if is_current else None
    ahead = heartbeat.future_problem(now, replace(context, as_of=None).now())
    with store.write() as tx:
        reason = heartbeat.evaluation_problem(tx, now, is_current=is_current, uptime=uptime) or ahead
        if reason is None or trusted:
            heartbeat.record_tick(tx, now, uptime)
            return None
        if uptime is not None:
            heartbeat.record_leap(tx, now, uptime)
    return reason


def delivery_as_dict(cycle: Cycle) -> Mapping[str, object]:
    """Return the identity of a delivery as JSON values."""
    return {
        "contract": cycle.contract,
        "object": cycle.object,
        "slo": cycle.slo,
        "due_at": cycle.due_at.isoformat(),
    }


def tick_as_dict(result: TickResult) -> dict[str, object]:
    """Return the tick as JSON values."""
    return {
        "at": result.as_of.isoformat(),
        "slos": result.slos,
        "new_cycles": result.new_cycles,
        "open": result.open_cycles,
        "changes": [
            {
                **delivery_as_dict(change.record.cycle),
                "partitions": [label(partition) for partition in change.record.cycle.partitions],
                "before": change.record.status,
                "after": change.after,
                "reason": change.reason,
            }
            for change in result.changes
        ],
        "unknown": [
            {**delivery_as_dict(unknown.record.cycle), "reason": unknown.reason} for unknown in result.unknown
        ],
        "at_risk": [
            {**delivery_as_dict(warned.cycle), "breach_at": warned.cycle.breach_at.isoformat()}
            for warned in result.warned
        ],
    }


@dataclass(frozen=True, slots=True)
class PromiseVerdicts:
    """Stored verdicts of a contract's deliveries: of each SLO the newest due one, and all that are open.

    `next_at` is when an open one must be evaluated again at the earliest: at its breach, or for its alert.
    """

    verdicts: tuple[CycleRecord, ...]
    next_at: datetime | None

    def as_dicts(self) -> list[dict[str, object]]:
        """Return the verdicts as JSON values."""
        return [
            {
                **delivery_as_dict(record.cycle),
                "breach_at": record.cycle.breach_at.isoformat(),
                "partitions": [label(partition) for partition in record.cycle.partitions],
                "status": record.status,
                "reason": record.reason,
                "delivered_at": record.delivered_at.isoformat() if record.delivered_at else None,
                "source": record.source,
            }
            for record in self.verdicts
        ]


def verdicts(context: RuntimeContext, store: Store, contract: str) -> PromiseVerdicts:
    """Return the stored verdicts of a contract, by its key."""
    now = context.now()
    with store.read() as tx:
        records = {record.id: record for record in cycle_store.newest_cycles(tx, contract, now)}
        for open_cycles in cycle_store.open_cycles(tx, now, [contract]).values():
            records |= {record.id: record for record in open_cycles if record.cycle.due_at <= now}
    times = [
        record.cycle.breach_at if record.status is CycleStatus.PENDING else record.notify_at
        for record in records.values()
        if record.status is CycleStatus.PENDING
        or (record.status is CycleStatus.MISSING and not record.notified)
    ]
    by_due = sorted(records.values(), key=lambda record: (record.cycle.due_at, record.cycle.key))
    return PromiseVerdicts(tuple(by_due), min(times, default=None))
