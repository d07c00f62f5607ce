"""`dq.propose_deliveries` and `dq.backtest_deliveries`: delivery terms from past arrivals, and their test."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from dq.contracts.access import files
from dq.contracts.access.data_location import resolve
from dq.contracts.access.discovery import discover
from dq.contracts.access.files import FileRejected, read, read_own
from dq.contracts.extension import VENDOR
from dq.contracts.extension import delivery as delivery_terms
from dq.contracts.incident import CycleStatus
from dq.contracts.lineage import database_name, table_name
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import DqError, Finding, ReadError, Severity, UsageError, ValueProblem
from dq.contracts.schedule.calendar import country_of, holiday_name_problem, parse_zone
from dq.contracts.slo import Cycle, Partition, Slo, parse_objective, read_slos
from dq.contracts.yaml.insertion import Addition, can_insert, insert
from dq.contracts.yaml.parse import parse
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.budget import CycleCounts, allowed_misses
from dq.dataquality.delivery.cycle import CycleRecord, Evidence, Observation, evaluate_cycle, label
from dq.dataquality.delivery.notify import local_time
from dq.dataquality.delivery.pattern import (
    DeliveryPattern,
    ProposedDelivery,
    duration_text,
    find_pattern,
    percent_text,
)
from dq.operations.arrivals import LAST, PastArrivals, existing_store, open_reader, past_arrivals, record_of
from dq.operations.check import select_objects
from dq.operations.registry_files import load, single_contract
from dq.operations.runtime.context import RuntimeContext, call_context
from dq.operations.runtime.spark import open_named_catalog
from dq.store.engine import Store

JsonObject = dict[str, object]

OBJECTIVE = "95%"
"""Objective to aim at by default, that of delivery terms without one."""

# Proposed delivery terms.


@dataclass(frozen=True, slots=True)
class ProposeDeliveriesRequest:
    """Arguments of a proposal; see `propose_deliveries` for the fields."""

    contract: Path
    output: Path | None = None
    object: str | None = None
    server: str | None = None
    zones: tuple[str, ...] = ()
    holidays: tuple[str, ...] = ()
    objective: str = OBJECTIVE
    last: int = LAST
    catalog: str = ""
    role_arn: str = ""
    catalog_id: str = ""


@dataclass(frozen=True, slots=True)
class ObjectDeliveries:
    """Delivery terms of one object: the `pattern` of its arrivals, and the entries as written.

    `existing` are the ids of delivery terms that the contract already has; then no entry is written.
    """

    contract: str
    object: str
    past: PastArrivals
    pattern: DeliveryPattern
    entries: tuple[JsonObject, ...] = ()
    existing: tuple[str, ...] = ()
    is_added: bool = False

    def as_dict(self) -> JsonObject:
        """Return the terms as JSON values."""
        return {
            "contract": self.contract,
            "object": self.object,
            "arrivals": len(self.past.arrivals),
            "source": self.past.source or None,
            "unreadable": self.past.unreadable,
            "reason": self.pattern.reason or None,
            "deliveries": [
                {
                    "schedule": delivery.schedule.expression,
                    "timezone": delivery.schedule.timezone,
                    "grace_minutes": delivery.grace // timedelta(minutes=1),
                    "objective": float(delivery.objective),
                    "cycles": len(delivery.cycles),
                    "would_be_misses": delivery.misses,
                    "missing": delivery.missing,
                    "evidence": delivery.evidence,
                    "entry": entry,
                }
                for delivery, entry in zip(self.pattern.deliveries, self.entries, strict=True)
            ],
            "notes": list(self.pattern.notes),
            "existing": list(self.existing),
            "added": self.is_added,
        }


@dataclass(frozen=True, slots=True)
class ProposeDeliveriesOutcome:
    """Contract's text with proposed delivery terms, and those of each object with their evidence.

    `is_changed`: at least one delivery was added.
    """

    text: str
    proposals: tuple[ObjectDeliveries, ...]
    is_changed: bool
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq propose --deliveries`: 0 written, or nothing to propose."""
        return 0

    def as_list(self) -> list[JsonObject]:
        """Return the output of `dq propose --deliveries --format json` as JSON values."""
        return [proposal.as_dict() for proposal in self.proposals]


def propose_deliveries(
    contract: Path | str,
    object: str | None = None,
    *,
    output: Path | str | None = None,
    zones: Sequence[str] = (),
    holidays: Sequence[str] = (),
    objective: str = OBJECTIVE,
    last: int = LAST,
    server: str | None = None,
    catalog: str = "",
    role_arn: str = "",
    catalog_id: str = "",
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> ProposeDeliveriesOutcome:
    """Add delivery terms to a contract, derived from past arrivals, as `dq propose --deliveries` does.

    Arrivals are those of the `last` partitions or updates, by the evidence that `dq watch` reads and by its
    stored deliveries. Candidate time zones are `zones`, those that the contract and its neighbours name, and
    UTC; candidate holidays are `holidays`, those that they name, and those of the zones' countries. Grace
    covers `objective`. With a `catalog` (`glue`), a partition of the registered table has arrived when the
    catalog got it; `role_arn` and `catalog_id` are for one in another account. The text is written to
    `output`, a new file or the contract itself; without it no file is changed. An object that has delivery
    terms keeps them. `folder` replaces the working folder, `now` is an aware instant. Needs neither Spark nor
    Java.

    Raises UsageError for an `output` that exists and for invalid arguments, and ReadError for a contract with
    errors or data that cannot be read.
    """
    context, [path] = call_context(contract, folder, now)
    file = None if output is None else Path(output) if folder is None else Path(folder) / output
    request = ProposeDeliveriesRequest(
        path,
        file,
        object,
        server,
        tuple(zones),
        tuple(holidays),
        objective,
        last,
        catalog,
        role_arn,
        catalog_id,
    )
    return replace(run_proposal(context, request), notes=tuple(context.messages.notes))


def run_proposal(context: RuntimeContext, request: ProposeDeliveriesRequest) -> ProposeDeliveriesOutcome:
    """Run the operation. Raises as `propose_deliveries`."""
    path, file = request.contract, request.output
    objective = _checked(request)
    loaded = load([path], context.note)
    contract = single_contract(loaded)
    in_place = file is not None and file.exists() and file.samefile(path)
    if file is not None and os.path.lexists(file) and not in_place:
        raise UsageError(f"{file} already exists.", "Choose another --output, or the contract itself.")
    zones, holidays = _candidates(contract, request)
    before = data = read_own(path)
    proposals = []
    with existing_store(context) as store:
        for _, schema_object in select_objects(loaded, request.object):
            with context.messages.step(f"{contract.id}/{schema_object.name}"):
                registered = _registered(context, store, request, contract, schema_object)
                past = past_arrivals(
                    context,
                    store,
                    contract,
                    schema_object,
                    request.server,
                    context.now(),
                    request.last,
                    registered,
                )
            pattern = find_pattern(
                past.arrivals, zones, objective, holidays=holidays, unit=past.form.unit if past.form else ""
            )
            data, proposal = _with_terms(data, contract, schema_object, past, pattern)
            proposals.append(proposal)
    if file is not None and not in_place:
        files.write(file, data)
    elif file is not None and data != before:
        files.replace(files.file_ref(path), before, data)
    return ProposeDeliveriesOutcome(data.decode("utf-8-sig"), tuple(proposals), data != before)


def _registered(
    context: RuntimeContext,
    store: Store,
    request: ProposeDeliveriesRequest,
    contract: Contract,
    schema_object: SchemaObject,
) -> dict[str, datetime]:
    """Return when the catalog got each partition, by label. Raises ReadError if it does not know."""
    if not request.catalog:
        return {}
    location = resolve(contract, schema_object, request.server, context.reach)
    key = (database_name(contract, location.database), table_name(schema_object))
    catalog = open_named_catalog(context, store, request.catalog, request.role_arn, request.catalog_id)
    if catalog.read(*key) is None:
        table = ".".join(key)
        raise ReadError(
            f"{contract.id}/{schema_object.name}: the catalog {request.catalog} has no table {table}.",
            "Register it, or omit --catalog to use the times of the files.",
        )
    columns = {
        partition_key.column.lower(): partition_key.column for partition_key in schema_object.partition_keys()
    }
    partitions = catalog.partitions(*key) if columns else []
    if partitions and all(partition.registered_at is None for partition in partitions):
        raise UsageError(
            f"the catalog {request.catalog} does not keep when it got a partition.", "Omit --catalog."
        )
    return {
        label(
            tuple((columns.get(column, column), value) for column, value in partition.values)
        ): registered_at
        for partition in partitions
        if (registered_at := partition.registered_at) is not None
    }


def _checked(request: ProposeDeliveriesRequest) -> Fraction:
    """Return the objective. Raises UsageError for invalid arguments."""
    if request.last < 1:
        raise UsageError(f"last={request.last} is below 1.", "Pass a number of at least 1.")
    for name in request.zones:
        zone = parse_zone(name)
        if isinstance(zone, ValueProblem):
            raise UsageError(zone.message, zone.hint)
    for name in request.holidays:
        problem = holiday_name_problem(name)
        if problem is not None:
            raise UsageError(problem.message, problem.hint)
    objective = parse_objective(request.objective)
    if isinstance(objective, ValueProblem):
        raise UsageError(objective.message, objective.hint)
    return objective


# Candidate zones and holidays: those that somebody named for this contract or its neighbours.

_ZONE = re.compile(r"\btimezone:\s*[\"']?([A-Za-z_]+(?:/[A-Za-z_+-]+)+)")
_HOLIDAYS = re.compile(r"\bholidays:\s*\[([A-Z0-9, \"'-]+)\]")
_MAX_NEIGHBOURS, _MAX_ZONES = 2_000, 6


def _candidates(contract: Contract, request: ProposeDeliveriesRequest) -> tuple[list[str], list[str]]:
    own_zones = [
        terms.timezone
        for sla in contract.sla_properties
        for terms in [delivery_terms(contract, sla)[0]]
        if terms
    ]
    named_zones: Counter[str] = Counter()
    named_holidays: Counter[str] = Counter()
    for text in _neighbours(request.contract):
        named_zones.update(_ZONE.findall(text))
        for names in _HOLIDAYS.findall(text):
            named_holidays.update(re.findall(r"[A-Z][A-Z0-9-]+", names))
    common = [name for name, _ in named_zones.most_common(_MAX_ZONES)]
    zones = dict.fromkeys([*request.zones, *own_zones, "UTC", *common])
    valid = [name for name in zones if not isinstance(parse_zone(name), ValueProblem)]
    countries = [country for zone in valid if (country := country_of(zone))]
    holidays = dict.fromkeys(
        [*request.holidays, *(name for name, _ in named_holidays.most_common(_MAX_ZONES)), *countries]
    )
    return valid, [name for name in holidays if holiday_name_problem(name) is None]


def _neighbours(path: Path) -> Iterator[str]:
    """Yield the texts of the contracts in the contract's folder."""
    with suppress(ReadError):
        for file in discover([path.parent]).contracts[:_MAX_NEIGHBOURS]:
            with suppress(FileRejected):
                yield read(file).decode("utf-8", "replace")


# Entries of the contract.


def _with_terms(
    data: bytes,
    contract: Contract,
    schema_object: SchemaObject,
    past: PastArrivals,
    pattern: DeliveryPattern,
) -> tuple[bytes, ObjectDeliveries]:
    existing = tuple(slo.id for slo in read_slos(contract)[0] if slo.object.name == schema_object.name)
    taken = set(re.findall(rb"\bid:\s*[\"']?([\w.-]+)", data))
    entries: list[JsonObject] = []
    additions: list[Addition] = []
    for delivery in pattern.deliveries:
        name = _unused(_name_of(delivery), taken)
        terms = _terms(delivery, past)
        entry: JsonObject = {
            "id": name,
            "property": "frequency",
            **_frequency(delivery),
            "element": schema_object.name,
            "scheduler": "cron",
            "schedule": delivery.schedule.expression,
        }
        if contract.odcs >= (3, 2, 0):
            entry["customProperties"] = [{"property": "delivery", "vendor": VENDOR, "value": terms}]
            additions.append(Addition(("slaProperties",), "", entry, delivery.evidence))
        else:
            additions.append(Addition(("slaProperties",), "", entry, delivery.evidence))
            item = {"property": f"delivery:{name}", "value": terms}
            additions.append(Addition(("customProperties",), "", item, delivery.evidence))
            entry = {**entry, "delivery": terms}
        entries.append(entry)
    proposal = ObjectDeliveries(contract.id, schema_object.name, past, pattern, tuple(entries), existing)
    if existing or not additions or not all(can_insert(data, [addition.path for addition in additions])):
        return data, proposal
    new = insert(data, contract.file, additions)
    blocking = [finding for finding in parse(new, contract.file).findings if finding.severity.blocks]
    return (data, proposal) if blocking else (new, replace(proposal, is_added=True))


def _unused(name: str, taken: set[bytes]) -> str:
    number = 1
    while (candidate := name if number == 1 else f"{name}-{number}").encode() in taken:
        number += 1
    taken.add(candidate.encode())
    return candidate


def _gap(delivery: ProposedDelivery) -> timedelta:
    instants = [cycle.due_at for cycle in delivery.cycles]
    gaps = sorted(later - earlier for earlier, later in pairwise(instants))
    return gaps[len(gaps) // 2]


def _name_of(delivery: ProposedDelivery) -> str:
    gap = _gap(delivery)
    if gap < timedelta(hours=2):
        return "hourly"
    if gap < timedelta(days=5):
        return "daily"
    return "weekly" if gap < timedelta(days=12) else "monthly"


def _frequency(delivery: ProposedDelivery) -> JsonObject:
    minutes = round(_gap(delivery) / timedelta(minutes=1))
    if minutes < 60:
        return {"value": minutes, "unit": "min"}
    if minutes < 1_380:
        return {"value": round(minutes / 60), "unit": "h"}
    days = round(minutes / 1_440)
    return {"value": days, "unit": "d"} if days < 28 else {"value": 1, "unit": "mo"}


def _terms(delivery: ProposedDelivery, past: PastArrivals) -> JsonObject:
    terms: JsonObject = {
        "timezone": delivery.schedule.timezone,
        "grace": duration_text(delivery.grace),
    }
    templates = past.form.templates(delivery.lags) if past.form is not None and delivery.lags else None
    if templates is not None:
        terms["partition"] = templates
    elif past.is_partitioned or past.source == "file":
        # Files of a table without partitions that are still there were appended.
        terms["expect"] = "new_data"
    if delivery.schedule.calendar is not None:
        terms["calendar"] = {"holidays": list(delivery.schedule.calendar.holidays)}
    terms["objective"] = percent_text(delivery.objective)
    return terms


# Back-tests of delivery terms.

LAST_CYCLES = 90
"""Number of newest cycles that a back-test evaluates."""

_LONGEST = timedelta(days=4_000)


@dataclass(frozen=True, slots=True)
class BacktestDeliveriesRequest:
    """Arguments of a back-test; see `backtest_deliveries` for the fields."""

    paths: tuple[Path, ...]
    last: int = LAST_CYCLES
    object: str | None = None
    server: str | None = None


@dataclass(frozen=True, slots=True)
class PastDelivery:
    """A cycle with the status that a watcher would have given it."""

    due_at: datetime
    status: CycleStatus
    delivered_at: datetime | None
    reason: str

    def as_dict(self) -> JsonObject:
        """As JSON values."""
        return {
            "due_at": self.due_at.isoformat(),
            "status": self.status,
            "delivered_at": self.delivered_at.isoformat() if self.delivered_at else None,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Counted(CycleCounts):
    """Numbers of deliveries: on time, missed (late or missing), and neither (unknown, excused)."""

    good: int
    late: int
    missing: int
    unknown: int
    excused: int

    @property
    def bad(self) -> int:  # type: ignore[override]  # an attribute elsewhere
        """Number of missed deliveries."""
        return self.late + self.missing

    @staticmethod
    def of_deliveries(deliveries: Iterable[PastDelivery]) -> Counted:
        """Count deliveries by status."""
        statuses = [delivery.status for delivery in deliveries]
        return Counted(
            good=sum(status.good for status in statuses),
            late=statuses.count(CycleStatus.LATE),
            missing=sum(status.bad for status in statuses) - statuses.count(CycleStatus.LATE),
            unknown=sum(status in (CycleStatus.UNKNOWN, CycleStatus.WITHDRAWN) for status in statuses),
            excused=statuses.count(CycleStatus.EXCUSED),
        )


@dataclass(frozen=True, slots=True)
class DeliveryBacktest:
    """Back-test of one SLO. `skipped` cycles were due before the first arrival, and are not evaluated.

    `error` is the reason why nothing could be evaluated, or None.
    """

    slo: Slo
    deliveries: tuple[PastDelivery, ...] = ()
    skipped: int = 0
    error: DqError | None = None

    @property
    def counted(self) -> Counted:
        """Numbers of all deliveries."""
        return Counted.of_deliveries(self.deliveries)

    @property
    def months(self) -> dict[str, Counted]:
        """Numbers by the month of the due time in the schedule's zone, e.g. `2026-05`."""
        by_month: dict[str, list[PastDelivery]] = {}
        for delivery in self.deliveries:
            by_month.setdefault(local_time(self.slo, delivery.due_at)[:7], []).append(delivery)
        return {month: Counted.of_deliveries(past) for month, past in by_month.items()}

    @property
    def misses(self) -> list[PastDelivery]:
        """The missed deliveries, oldest first."""
        return [delivery for delivery in self.deliveries if delivery.status.bad]

    def allowed(self, counted: Counted) -> int:
        """Return how many deliveries the objective allows to miss."""
        return allowed_misses(counted.good + counted.bad, self.slo.objective)

    @property
    def exit_code(self) -> int:
        """Exit code: 3 nothing could be evaluated, 1 the objective would have been missed."""
        if self.error is not None or self.counted.attainment is None:
            return ReadError.exit_code
        return int(self.counted.bad > self.allowed(self.counted))

    def as_dict(self) -> JsonObject:
        """As JSON values."""
        counted = self.counted
        return {
            "contract": self.slo.contract.key,
            "object": self.slo.object.name,
            "slo": self.slo.id,
            "schedule": self.slo.schedule.expression,
            "timezone": self.slo.schedule.timezone,
            "grace_minutes": self.slo.grace / timedelta(minutes=1),
            "objective": float(self.slo.objective),
            "attainment": float(counted.attainment) if counted.attainment is not None else None,
            **self._count_as_dict(counted),
            "skipped": self.skipped,
            "months": [
                {"month": month, **self._count_as_dict(of_month)} for month, of_month in self.months.items()
            ],
            "misses": [delivery.as_dict() for delivery in self.misses],
            "error": str(self.error) if self.error is not None else None,
        }

    def _count_as_dict(self, counted: Counted) -> JsonObject:
        return {
            "on_time": counted.good,
            "late": counted.late,
            "missing": counted.missing,
            "unknown": counted.unknown,
            "excused": counted.excused,
            "allowed": self.allowed(counted),
        }


@dataclass(frozen=True, slots=True)
class BacktestDeliveriesOutcome:
    """Back-tests of the delivery SLOs of some contracts; `findings` are contracts and SLOs with errors."""

    results: tuple[DeliveryBacktest, ...]
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq backtest --deliveries`: 3 something could not be evaluated, 1 an objective would
        have been missed.
        """
        codes = {result.exit_code for result in self.results}
        codes |= {ReadError.exit_code} if self.findings else set()
        return next((code for code in (3, 1) if code in codes), 0)

    def as_list(self) -> list[JsonObject]:
        """Return the output of `dq backtest --deliveries --format json` as JSON values."""
        return [result.as_dict() for result in self.results]

    def missed_objectives(self) -> list[Finding]:
        """Return a finding for each objective that would have been missed, at its entry."""
        return [
            Finding(
                "objective-missed",
                Severity.WARNING,
                f"{result.slo.id}: {result.counted.bad} of {result.counted.good + result.counted.bad} "
                f"deliveries would have been missed, {result.allowed(result.counted)} allowed.",
                "Run 'dq propose --deliveries', or fix the pipeline first.",
                result.slo.sla.locate("schedule"),
                result.slo.sla.path("schedule"),
                contract=result.slo.contract.id,
            )
            for result in self.results
            if result.exit_code == 1
        ]


def backtest_deliveries(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    last: int = LAST_CYCLES,
    object: str | None = None,
    server: str | None = None,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> BacktestDeliveriesOutcome:
    """Evaluate the delivery SLOs of contracts on the past, as `dq backtest --deliveries` does.

    Each of the `last` cycles gets the status of `dq watch`, as if it had run at the breach: from the stored
    delivery, or from the evidence that is there now. Contracts of every status are tested, drafts included.
    `object` selects objects; `server` is required if a contract has several. `folder` replaces the working
    folder, `now` is an aware instant. Nothing is stored, and no alert is sent.

    Raises UsageError for invalid arguments, and ReadError for a path that cannot be read. An SLO whose data
    cannot be read has an `error`.
    """
    context, places = call_context(paths, folder, now)
    request = BacktestDeliveriesRequest(places, last, object, server)
    return replace(run_backtest(context, request), notes=tuple(context.messages.notes))


def run_backtest(context: RuntimeContext, request: BacktestDeliveriesRequest) -> BacktestDeliveriesOutcome:
    """Run the operation. Raises as `backtest_deliveries`."""
    if request.last < 1:
        raise UsageError(f"last={request.last} is below 1.", "Pass a number of at least 1.")
    loaded = load(request.paths, context.note)
    selected = {
        (contract.key, schema_object.name)
        for contract, schema_object in select_objects(loaded, request.object)
    }
    findings, results = list(loaded.findings), []
    with existing_store(context) as store:
        for contract in loaded.contracts:
            slos, slo_findings = read_slos(contract)
            findings += slo_findings
            for slo in slos:
                if slo.key[:2] in selected and slo.is_on(request.server):
                    with context.messages.step(f"{contract.id}/{slo.object.name} {slo.id}"):
                        results.append(_tested(context, store, slo, request))
    return BacktestDeliveriesOutcome(tuple(results), tuple(findings))


def _tested(
    context: RuntimeContext, store: Store, slo: Slo, request: BacktestDeliveriesRequest
) -> DeliveryBacktest:
    now = context.now()
    records = [record_of(cycle) for cycle in _past_cycles(slo, now, request.last)]
    if not records:
        return DeliveryBacktest(slo)
    with store.read() as tx:
        stored = cycle_store.all_cycles(tx, slo.key[:2])
        excuses = cycle_store.newest_excuses(tx, [slo.contract.key])
    try:
        horizon = now - records[0].cycle.due_at + timedelta(days=40)
        reader = open_reader(context, store, slo, request.server, now, horizon)
        observations = reader.observe(records)
    except DqError as error:
        return DeliveryBacktest(slo, error=error)
    own = {
        record.cycle.due_at: record
        for record in stored
        if record.cycle.slo == slo.id and (record.status.good or record.status.bad)
    }
    # Copies on other servers arrive at other times.
    recorded = _recorded(
        record for record in stored if not slo.server or record.cycle.slo.endswith(f"@{slo.server}")
    )
    deliveries = []
    for record, observation in zip(records, observations, strict=True):
        cycle = record.cycle
        excuse = excuses.get((slo.key, cycle.due_at))
        text = (excuse.text if not excuse.undone else "") if excuse is not None else cycle.excuse
        decided = own.get(cycle.due_at)
        if text:
            deliveries.append(PastDelivery(cycle.due_at, CycleStatus.EXCUSED, None, text))
        elif decided is not None and decided.cycle.breach_at == cycle.breach_at:
            deliveries.append(
                PastDelivery(cycle.due_at, decided.status, decided.delivered_at, decided.reason)
            )
        else:
            observation = _with_recorded(observation, recorded.get(cycle.partitions))
            # A watcher that ran at the breach knows that later data is late.
            result = evaluate_cycle(observation, now, cycle.breach_at).result
            deliveries.append(
                PastDelivery(cycle.due_at, result.status, result.delivered_at(cycle), result.reason)
            )
    first = next((at for at, past in enumerate(deliveries) if past.delivered_at is not None), 0)
    return DeliveryBacktest(slo, tuple(deliveries[first:]), first)


def _past_cycles(slo: Slo, now: datetime, last: int) -> list[Cycle]:
    """Return the newest cycles whose breach is past, oldest first."""
    length = timedelta(days=40)
    while True:
        cycles = [cycle for cycle in slo.cycles(now - length, now) if cycle.breach_at < now]
        if len(cycles) >= last or length >= _LONGEST:
            return cycles[-last:]
        length *= 3


def _with_recorded(observation: Observation, delivered_at: datetime | None) -> Observation:
    """Return an observation with the stored arrival of its partitions if it is earlier than the evidence.

    Files may have been rewritten, or removed, since.
    """
    evidence = observation.evidence or Evidence("file")
    if delivered_at is None or (evidence.delivered_at is not None and evidence.delivered_at <= delivered_at):
        return observation
    evidence = replace(evidence, delivered_at=delivered_at, readable=True, arriving=None, names_cycle=True)
    return replace(observation, evidence=evidence)


def _recorded(stored: Iterable[CycleRecord]) -> dict[tuple[Partition, ...], datetime]:
    """Return when the partitions of stored cycles arrived, by all partitions of the cycle."""
    times: dict[tuple[Partition, ...], datetime] = {}
    for record in stored:
        if record.delivered_at is not None and record.cycle.partitions:
            partitions = record.cycle.partitions
            times[partitions] = min(record.delivered_at, times.get(partitions, record.delivered_at))
    return times
