"""`dq.cycle`, `dq.complete_through` and `dq.status`: one delivery, a table, and the SLOs of contracts.

Read-only: alerts and counting are left to the watcher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from sqlalchemy import Connection

from dq.alerts import drain
from dq.alerts.drain import UndeliveredNotifications
from dq.alerts.incident import Incident, incident_as_row
from dq.alerts.incident_store import open_incidents_at as incidents_at
from dq.contracts import slo as promise
from dq.contracts.incident import CycleStatus, DeliveryState
from dq.contracts.model import Contract
from dq.contracts.outcome import Finding, ReadError, UsageError, iso, suggestion
from dq.contracts.slo import NOT_IN_FORCE, Cycle, Slo
from dq.contracts.yaml.parse import TEXT, read
from dq.dataquality import complete_through as completeness
from dq.dataquality import results
from dq.dataquality.alarms import AlarmCounts, alarm_counts
from dq.dataquality.complete_through import CompleteThrough
from dq.dataquality.delivery import compliance, cycle_store, heartbeat
from dq.dataquality.delivery import cycle_store as excuses
from dq.dataquality.delivery.cycle import SETTLE, CycleRecord, evaluate_cycle
from dq.dataquality.delivery.early_warning import warning_standings
from dq.dataquality.delivery.key_owners import owner_files
from dq.dataquality.delivery.notify import PLATFORM
from dq.dataquality.delivery.replay import records_as_of
from dq.dataquality.results import AgreementStanding, StagedRun
from dq.operations import alerting
from dq.operations.arrivals import open_reader, record_of
from dq.operations.key_ownership import resolve_key_owners
from dq.operations.registry_files import LoadedContracts, load, slos
from dq.operations.runtime.context import RuntimeContext, call_context, runtime_context, to_utc
from dq.store.engine import Store

SEARCH_WINDOW = timedelta(days=40)
"""Time around the given instant in which the cycle of a partition is searched."""

_FINAL = (CycleStatus.EXCUSED, CycleStatus.WITHDRAWN)


@dataclass(frozen=True, slots=True)
class CycleStanding:
    """Status of a delivery, and the reason. All instants are in UTC.

    `decide_at` is when it is declared missing, a little after `breach_at`, since evidence may appear late.
    `complete` is set if `until` was asked: True if nothing is missing up to there, False if there is a hole,
    None if that is not known yet. `reason` is then its reason.
    """

    contract: str
    object: str
    slo: str
    due_at: datetime
    breach_at: datetime
    decide_at: datetime
    status: CycleStatus
    reason: str
    delivered_at: datetime | None = None
    complete: bool | None = None

    @property
    def delivered(self) -> bool:
        """True if it has arrived, on time or late."""
        return self.status.delivered

    def as_dict(self) -> dict[str, str | bool | None]:
        """As JSON values: what `dq cycles show --format json` prints."""
        return {
            "contract": self.contract,
            "object": self.object,
            "slo": self.slo,
            "due_at": iso(self.due_at),
            "breach_at": iso(self.breach_at),
            "decide_at": iso(self.decide_at),
            "status": self.status,
            "reason": self.reason,
            "delivered_at": iso(self.delivered_at),
            "complete": self.complete,
        }


def cycle(
    contract: Contract | Path | str,
    object: str | None = None,
    *,
    partition: Mapping[str, object] | None = None,
    due: datetime | None = None,
    until: datetime | None = None,
    slo: str | None = None,
    server: str | None = None,
    around: datetime | None = None,
    now: datetime | None = None,
    folder: Path | str | None = None,
) -> CycleStanding:
    """Return the status of a delivery: of a `partition`, `due` at an instant, or of all `until` one.

    A decision of the watcher is returned as it is; otherwise receipts, markers, commits and files are probed
    as by `dq watch`, and nothing is stored. The cycle of a `partition` is the first that delivers it, due
    within 40 days `around` an instant, by default the current time. `object` and `slo` are required if there
    are several. With `until`, the delivery is the newest of the object that was due by that instant, and
    `complete` says whether there is a hole up to it, as `dq.complete_through`: only the watcher's decisions
    count, and nothing is probed. `folder` replaces the working folder, which has settings and store.

    Raises UsageError if no cycle or several match, and ReadError for a contract, a store or a location that
    cannot be read.
    """
    parsed = read(contract)
    due_at, middle, as_of = to_utc("due", due), to_utc("around", around), to_utc("now", now)
    until = to_utc("until", until)
    if [partition, due, until].count(None) != 2:
        raise UsageError("ambiguous delivery.", "Pass one of partition={…}, due=… and until=….")
    if until is not None and slo is not None:
        raise UsageError("all SLOs of an object count with until.", "Omit slo.")
    paths = [] if parsed.file == TEXT else [Path(parsed.file)]
    context = runtime_context(None, paths, Path(folder) if folder is not None else None)
    instant = as_of or context.now()
    if until is not None:
        with closing(context.store()) as store, store.read() as tx:
            return _until(tx, _slos(parsed, object, slo, server), until, as_of)
    values = {key: str(value) for key, value in (partition or {}).items()}
    selected_slo, delivery_cycle = _matching_cycle(
        _slos(parsed, object, slo, server), values, due_at, middle or instant, parsed.id
    )
    with closing(context.store()) as store:
        return _stored_or_probed(context, store, selected_slo, delivery_cycle, server, instant)


def _slos(contract: Contract, object: str | None, slo: str | None, server: str | None) -> list[Slo]:
    ready, findings = promise.read_slos(contract)
    if findings:
        details = [str(finding) for finding in findings]
        raise ReadError(f"{contract.id}: invalid delivery SLOs:", "Run 'dq validate'.", details)
    matches = [
        candidate
        for candidate in ready
        if object in (None, candidate.object.name) and slo in (None, candidate.id) and candidate.is_on(server)
    ]
    if not matches:
        names = ", ".join(f"{candidate.object.name}/{candidate.id}" for candidate in ready) or "none"
        raise UsageError(f"{contract.id} has no such SLO; it has: {names}.", "Use one of them.")
    return matches


def _matching_cycle(
    slos: list[Slo], values: Mapping[str, str], due: datetime | None, around: datetime, name: str
) -> tuple[Slo, Cycle]:
    """Return the delivery of these partition values, or due then. Raises UsageError unless one matches."""
    matches: dict[tuple[str, str, str], tuple[Slo, Cycle]] = {}
    for slo in slos:
        for match in _near(slo, values, due, around):
            matches.setdefault(slo.key, (slo, match))
    if not matches:
        description = (
            f"due {due.isoformat()}" if due else "/".join(f"{key}={text}" for key, text in values.items())
        )
        raise UsageError(
            f"{name} has no delivery {description}.", "Run 'dq schedule explain' or 'dq status'."
        )
    if len(matches) > 1:
        names = ", ".join(f"{object_name}/{slo}" for _, object_name, slo in matches)
        raise UsageError(f"several SLOs of {name} match: {names}.", "Pass object, slo or server.")
    return next(iter(matches.values()))


def _near(slo: Slo, values: Mapping[str, str], due: datetime | None, around: datetime) -> Iterator[Cycle]:
    if due is not None:
        yield from slo.cycles(due - timedelta(microseconds=1), due)
        return
    for candidate in slo.cycles(around - SEARCH_WINDOW, around + SEARCH_WINDOW):
        if any(values.items() <= dict(part).items() for part in candidate.partitions):
            yield candidate


def _until(tx: Connection, slos: list[Slo], until: datetime, as_of: datetime | None) -> CycleStanding:
    contract, names = slos[0].contract.key, sorted({slo.object.name for slo in slos})
    if len(names) > 1:
        raise UsageError(f"several objects of {contract} have SLOs: {', '.join(names)}.", "Pass object.")
    due = [
        cycle
        for slo in slos
        if not slo.expects_new_data
        for cycle in slo.cycles(until - SEARCH_WINDOW, until)
    ]
    if not due:
        raise UsageError(
            f"{contract}/{names[0]}: no partition is due within 40 days before {iso(until)}.",
            "Run 'dq schedule explain'.",
        )
    newest = max(due, key=lambda cycle: cycle.due_at)
    standing = completeness.complete_through(tx, contract, names[0], as_of)
    if standing.state is DeliveryState.UNWATCHED or (standing.since and until < standing.since):
        since = f"before {iso(standing.since)}" if standing.since else "yet"
        raise UsageError(
            f"{contract}/{names[0]}: no delivery was watched {since}.",
            "Run 'dq watch', or pass a later time.",
        )
    record = cycle_store.find_cycle(tx, newest.key, newest.due_at)
    stored = next(iter(records_as_of(tx, [record] if record else [], as_of)), None)
    status, delivered_at = (stored.status, stored.delivered_at) if stored else (CycleStatus.PENDING, None)
    complete, reason = _completeness(standing, newest.due_at)
    return replace(_standing(newest, status, reason, delivered_at), complete=complete)


def _completeness(standing: CompleteThrough, due_at: datetime) -> tuple[bool | None, str]:
    """Return whether the cycles due up to an instant have no hole, None if unknown, and the reason."""
    if standing.hole is not None and standing.hole.due_at <= due_at:
        complete = None if standing.state is DeliveryState.UNKNOWN else False
        return complete, f"{standing.hole.text} is {standing.state}. {standing.reason}"
    if standing.includes(due_at):
        return True, "Nothing is missing."
    if standing.checked is None:
        return None, "No delivery was evaluated yet."
    return None, f"Deliveries are evaluated only up to {standing.checked.text}."


def _stored_or_probed(
    context: RuntimeContext, store: Store, slo: Slo, cycle: Cycle, server: str | None, now: datetime
) -> CycleStanding:
    with store.read() as tx:
        stored = cycle_store.find_cycle(tx, slo.key, cycle.due_at)
        newest_excuse = excuses.newest_excuses(tx, [slo.contract.key]).get((slo.key, cycle.due_at))
    if stored is not None and (stored.status.delivered or stored.status in _FINAL):
        return _standing(cycle, stored.status, stored.reason, stored.delivered_at)
    excuse = (
        ""
        if newest_excuse is not None and newest_excuse.undone
        else newest_excuse.text
        if newest_excuse is not None
        else cycle.excuse
    )
    if excuse:
        return _standing(cycle, CycleStatus.EXCUSED, excuse)
    if now < cycle.due_at - SEARCH_WINDOW:
        return _standing(cycle, CycleStatus.SCHEDULED, "Not checked yet.")
    return _probe(context, store, slo, stored or record_of(cycle), server, now)


def _probe(
    context: RuntimeContext, store: Store, slo: Slo, stored: CycleRecord, server: str | None, now: datetime
) -> CycleStanding:
    [observed] = open_reader(context, store, slo, server, now).observe([stored])
    evaluation = evaluate_cycle(observed, now, None)
    delivered_at = evaluation.evidence.delivered_at if evaluation.evidence is not None else None
    return _standing(stored.cycle, evaluation.result.status, evaluation.result.reason, delivered_at)


def _standing(
    cycle: Cycle, status: CycleStatus, reason: str, delivered_at: datetime | None = None
) -> CycleStanding:
    return CycleStanding(
        cycle.contract,
        cycle.object,
        cycle.slo,
        cycle.due_at,
        cycle.breach_at,
        cycle.breach_at + SETTLE,
        status,
        reason,
        delivered_at,
    )


def complete_through(
    contract: Contract | Path | str,
    object: str | None = None,
    *,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> CompleteThrough:
    """Return the last cycle up to which an object has no hole, as far as the store knows.

    `contract` is a contract, its file, or its key: the id, e.g. `orders`, for version 2 `orders@2`. A key
    needs no contract file. `object` is required if several objects of the contract have SLOs. `now` is an
    aware instant, by default the current time. `folder` replaces the working folder, which has settings and
    store.

    Raises UsageError if no SLO of the object was ever watched, or several objects match, and ReadError for a
    contract or a store that cannot be read.
    """
    is_key = isinstance(contract, str) and "\n" not in contract and not contract.endswith(_CONTRACT_SUFFIXES)
    key = str(contract) if is_key else read(contract).key
    context, _ = call_context(None, folder, now)
    with closing(context.store()) as store, store.read() as tx:
        objects = {slo[1] for slo in cycle_store.known_slos(tx) if slo[0] == key}
        if not objects:
            names = {slo[0] for slo in cycle_store.known_slos(tx)}
            raise UsageError(
                f"the store has no deliveries of {key!r}.",
                suggestion(key, names, "Run 'dq watch', or pass the key of a contract that it watches."),
            )
        if object is None and len(objects) > 1:
            raise UsageError(
                f"several objects of {key} have SLOs: {', '.join(sorted(objects))}.", "Pass object."
            )
        if object is not None and object not in objects:
            raise UsageError(
                f"the store has no deliveries of {key}/{object}.",
                suggestion(object, objects, f"It has: {', '.join(sorted(objects))}."),
            )
        [name] = objects if object is None else [object]
        return completeness.complete_through(tx, key, name, context.as_of)


_CONTRACT_SUFFIXES = (".yaml", ".yml")
# Time that withdrawn cycles are shown.
_SHOW_WITHDRAWN_FOR = timedelta(days=7)
Quality = Mapping[tuple[str, str], Sequence[results.StoredResult]]


class Grouping(StrEnum):
    """Grouping of lines in `dq status`."""

    PROMISE = "promise"
    PRODUCT = "product"
    DOMAIN = "domain"
    ALL = "all"


_GROUP_NAMES: dict[Grouping, Callable[[Slo], str]] = {
    Grouping.PRODUCT: lambda slo: slo.contract.data_product or slo.contract.key,
    Grouping.DOMAIN: lambda slo: slo.contract.domain or "(none)",
    Grouping.ALL: lambda _: "all",
}


@dataclass(frozen=True, slots=True)
class PromisesStanding:
    """Status of the SLOs of some contracts, as of `at`.

    `deliveries` has each SLO with its cycles and its error budget, `groups` their aggregates, `checks` the
    last results of each check by contract and object, `audited` the newest audit of each partition,
    `withdrawn` the cycles withdrawn within seven days, `outstanding` undelivered alerts (empty for a past
    instant, since their history is not stored). `findings` are read errors. `complete_through` has an entry
    for each object with SLOs, `unwatched` a warning for each schedule that is not watched. `agreements` has
    each rule that two sides agree for cycles in a row, `alarms` the alarms of the check `unusual` by contract
    and object. All instants are in UTC; `as_dict()` is the output of
    `dq status --format json`.
    """

    at: datetime
    contracts: tuple[Contract, ...]
    deliveries: tuple[compliance.SloCompliance, ...]
    groups: tuple[compliance.GroupCompliance, ...]
    checks: Quality
    audited: tuple[StagedRun, ...]
    incidents: tuple[Incident, ...]
    withdrawn: tuple[CycleRecord, ...]
    outstanding: tuple[UndeliveredNotifications, ...]
    findings: tuple[Finding, ...]
    complete_through: tuple[CompleteThrough, ...] = ()
    unwatched: tuple[Finding, ...] = ()
    agreements: tuple[AgreementStanding, ...] = ()
    alarms: Mapping[tuple[str, str], AlarmCounts] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "groups": [compliance.group_as_dict(group) for group in self.groups],
            "deliveries": [
                {
                    **compliance.promise_as_dict(standing),
                    "cycles": [compliance.cycle_as_dict(stored_cycle) for stored_cycle in standing.cycles],
                }
                for standing in self.deliveries
            ],
            "complete_through": [standing.as_dict() for standing in self.complete_through],
            "checks": [line.as_dict() for lines in self.checks.values() for line in lines],
            "agreements": [standing.as_dict() for standing in self.agreements],
            "unusual": [
                {"contract": contract, "object": name, **counts.as_dict()}
                for (contract, name), counts in self.alarms.items()
            ],
            "incidents": [incident_as_row(incident) for incident in self.incidents],
            "audits": [_audit(run) for run in self.audited],
            "withdrawn": [_withdrawal(stored_cycle) for stored_cycle in self.withdrawn],
            "outstanding": [alerting.outstanding_as_dict(entry) for entry in self.outstanding],
            "findings": [finding.as_dict() for finding in self.findings],
            "unwatched": [finding.as_dict() for finding in self.unwatched],
        }


def _audit(run: StagedRun) -> dict[str, object]:
    """Return an audit as JSON values, with its failures."""
    return {
        "contract": run.contract,
        "version": run.version,
        "object": run.object,
        "scope": run.scope,
        "staged": run.staged,
        "verdict": run.verdict,
        "at": run.at.isoformat(),
        "counts": {str(status): number for status, number in run.counts.items()},
        "failures": [{"clause": clause, "message": message} for clause, message in run.broken],
    }


def _withdrawal(stored_cycle: CycleRecord) -> dict[str, object]:
    return {
        **compliance.cycle_as_dict(stored_cycle),
        "contract": stored_cycle.cycle.contract,
        "slo": stored_cycle.cycle.slo,
        "reason": stored_cycle.reason,
    }


def status(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    product: str | None = None,
    domain: str | None = None,
    by: str = "promise",
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> PromisesStanding:
    """Return the status of the SLOs of the contracts at these files and folders, as `dq status` does.

    Only the store is read; a missing store is created empty. `product` and `domain` filter contracts, `by`
    aggregates SLOs in `groups`: `product`, `domain` or `all`. `folder` replaces the working folder, which has
    settings and store, and is the base of relative paths. `now` is an aware instant, by default the current
    time.

    Raises UsageError if no contract matches the product or domain, or for invalid arguments, and ReadError
    for a path or a store that cannot be read. A contract that cannot be read is in `findings`.
    """
    if by not in list(Grouping):
        raise UsageError(f"by={by!r} is not a grouping.", f"Choose one of {', '.join(Grouping)}.")
    context, places = call_context(paths, folder, now)
    return build_status(context, places, Grouping(by), contract_filter(product, domain))


def contract_filter(product: str | None, domain: str | None) -> Callable[[Contract], bool]:
    """Return a predicate for contracts of this product (or with this key or id) and domain."""

    def matches(contract: Contract) -> bool:
        has_product = product is None or product in (contract.key, contract.id, contract.data_product)
        return has_product and domain in (None, contract.domain)

    return matches


def build_status(
    context: RuntimeContext,
    paths: Sequence[Path],
    grouping: Grouping = Grouping.PROMISE,
    matches: Callable[[Contract], bool] = lambda _: True,
) -> PromisesStanding:
    """Return the status of the SLOs of the matching contracts. Raises as `status`."""
    with closing(context.store()) as store:
        return _build(
            context, store, resolve_key_owners(context, store, load(paths, context.note)), grouping, matches
        )


def _build(
    context: RuntimeContext,
    store: Store,
    loaded: LoadedContracts,
    grouping: Grouping,
    matches: Callable[[Contract], bool],
) -> PromisesStanding:
    selected = [contract for contract in loaded.contracts if matches(contract)]
    if loaded.contracts and not selected:
        raise UsageError(
            "no contract matches this product or domain.",
            "Run 'dq status --by product' or 'dq status --by domain'.",
        )
    loaded = replace(loaded, contracts=selected)
    promises, slo_findings = slos(loaded, context.note)
    now, as_of = context.now(), context.as_of
    pairs = [
        (contract.key, schema_object.name) for contract in selected for schema_object in contract.objects
    ]
    with store.read() as tx:
        checks = results.latest(tx, {contract.key for contract in selected}, as_of)
        warnings = warning_standings(tx, [slo.key[0] for slo in promises], as_of)
        deliveries = [
            compliance.slo_compliance(
                slo,
                records_as_of(tx, cycle_store.all_cycles(tx, slo.key), as_of),
                now,
                warnings.get(slo.key),
            )
            for slo in promises
        ]
        keys = {PLATFORM, *(contract.key for contract in selected)}
        return PromisesStanding(
            at=now,
            contracts=tuple(selected),
            deliveries=tuple(deliveries),
            groups=tuple(compliance.group_compliance(deliveries, _GROUP_NAMES[grouping]))
            if grouping is not Grouping.PROMISE
            else (),
            checks={pair: checks.get(pair, []) for pair in pairs},
            agreements=tuple(
                standing
                for contract in selected
                for schema_object in contract.objects
                for standing in results.agreement_standings(tx, contract, schema_object, as_of)
            ),
            alarms={pair: counts for pair, counts in alarm_counts(tx, as_of).items() if pair in pairs},
            audited=tuple(audit for pair in pairs for audit in results.newest_audits(tx, *pair, as_of)),
            incidents=tuple(
                incident for incident in incidents_at(tx, as_of) if incident.key.contract in keys
            ),
            withdrawn=tuple(_withdrawn(tx, loaded, now)),
            outstanding=() if heartbeat.has_later_tick(tx, as_of) else tuple(drain.all_undelivered(tx, now)),
            findings=(*loaded.findings, *slo_findings),
            complete_through=tuple(
                completeness.complete_through(tx, *pair, as_of)
                for pair in dict.fromkeys(slo.key[:2] for slo in promises)
            ),
            unwatched=tuple(
                finding
                for contract in selected
                if contract.status not in NOT_IN_FORCE
                for finding in promise.unwatched_schedules(contract)
            ),
        )


def _withdrawn(tx: Connection, loaded: LoadedContracts, now: datetime) -> list[CycleRecord]:
    """Return the recently withdrawn cycles of these contracts, and of removed ones."""
    current_keys, known_keys = {contract.key for contract in loaded.contracts}, owner_files(tx)
    recent = cycle_store.withdrawn_cycles(tx, now - _SHOW_WITHDRAWN_FOR, now)
    return [
        stored_cycle
        for stored_cycle in recent
        if stored_cycle.cycle.contract in current_keys or stored_cycle.cycle.contract not in known_keys
    ]
