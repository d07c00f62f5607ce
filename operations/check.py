"""Check objects against their data, store the results, and open or resolve incidents."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection

from dq.alerts import incident_store
from dq.contracts import slo as promise
from dq.contracts.access.access_policy import (
    Address,
    has_pattern,
    is_remote,
    parse_location,
    segments_before_pattern,
)
from dq.contracts.access.data_location import matching_server, other_servers
from dq.contracts.agreement import OtherSide, agreements_of, cycle_agreements
from dq.contracts.incident import Breach, IncidentKey, Recovery, Resolution
from dq.contracts.metrics import is_unusual_rule
from dq.contracts.model import Contract, SchemaObject, clause_namer, contract_key
from dq.contracts.outcome import DqError, MissingTool, ReadError, UsageError, ValueProblem, suggestion
from dq.dataquality import results
from dq.dataquality.alarms import next_test_level
from dq.dataquality.answers.partition_cache import PartitionCache
from dq.dataquality.answers.sources import ALL, Optimization
from dq.dataquality.check import Outline, check, outline
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import filter_by_words, refuse_unknown, testable
from dq.dataquality.clauses.foreign_key import (
    NO_NEIGHBOURS,
    ContractSet,
    ExternalReference,
    has_relationships,
    referenced_objects,
)
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.clauses.metric_rule import comparing_rules
from dq.dataquality.deduplication import Precedence, precedence_column
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import CycleRecord, label
from dq.dataquality.delivery.cycle_store import RowClaim, receipts, row_claims
from dq.dataquality.model.run_context import PastResult
from dq.dataquality.quarantine import Run, write, write_good_rows
from dq.dataquality.report import Cleaned, Quarantined, Report
from dq.dataquality.request import Request, find_object
from dq.dataquality.spark.dataset import FILE_FORMATS, Dataset, locate
from dq.operations.data_places import located_data
from dq.operations.delivered_rows import with_delivered_rows, with_receipts_of_other_sides
from dq.operations.registry_files import LoadedContracts
from dq.operations.runtime.context import RuntimeContext, format_instant
from dq.operations.runtime.messages import Progress
from dq.operations.runtime.spark import LazySparkSession
from dq.store.engine import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Selection of objects and of their rows, by mutually exclusive options.

Partition = Mapping[str, str]
Pair = tuple[Contract, SchemaObject]
# Number of known due instants shown in the error for an unknown one.
_MAX_NEAREST = 3


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Requested rows. At most one field is set; none means deliveries not checked yet."""

    partitions: tuple[Partition, ...] = ()
    cycles: tuple[datetime, ...] = ()
    since: datetime | None = None
    everything: bool = False


@dataclass(frozen=True, slots=True)
class CheckTask:
    """One object and its scopes, each checked in a run of its own (None: the whole table).

    `errors` are the reasons for requested scopes that cannot be checked.
    """

    contract: Contract
    object: SchemaObject
    scopes: tuple[Partition | None, ...]
    errors: tuple[DqError, ...] = ()

    def __str__(self) -> str:
        return f"{self.contract.id}/{self.object.name}"


def select_rows(
    partitions: Sequence[Partition], cycles: Sequence[datetime], since: datetime | None, everything: bool
) -> RowSelection:
    """Return the options as one value, without duplicates. Raises UsageError if two are set."""
    options = {"--partition": partitions, "--cycle": cycles, "--since": since, "--all": everything}
    names = [name for name, value in options.items() if value]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} exclude each other.", f"Pass one of {', '.join(options)}.")
    return RowSelection(
        tuple({tuple(partition.items()): partition for partition in partitions}.values()),
        tuple(dict.fromkeys(cycles)),
        since,
        everything,
    )


def select_objects(loaded: LoadedContracts, name: str | None) -> list[Pair]:
    """Return all objects, or those with this name or id. Raises UsageError if there are none."""
    pairs = [(contract, schema_object) for contract in loaded.contracts for schema_object in contract.objects]
    if name is None:
        return pairs
    matches = [
        (contract, schema_object)
        for contract, schema_object in pairs
        if name in (schema_object.name, schema_object.id)
    ]
    if not matches:
        hint = suggestion(name, [schema_object.name for _, schema_object in pairs], "Check --object.")
        raise UsageError(f"no object {name!r} in these contracts.", hint)
    return matches


def select_with_rules(
    pairs: Sequence[Pair], rule_names: Sequence[str], neighbours: ContractSet
) -> list[Pair]:
    """Return the objects with a clause of these names. Raises UsageError for a name that matches none."""
    if not rule_names:
        return list(pairs)
    candidates = [
        (contract, schema_object, clauses_of(contract, schema_object, built_in(), neighbours))
        for contract, schema_object in pairs
    ]
    refuse_unknown(candidates, rule_names)
    return [
        (contract, schema_object)
        for contract, schema_object, clauses in candidates
        if testable(filter_by_words(schema_object, clauses, rule_names))
    ]


def plan_tasks(
    store: Store, pairs: Sequence[Pair], selection: RowSelection, server: str | None = None
) -> list[CheckTask]:
    """Return the scopes to check of each object, in the order of the contracts.

    By default each delivered partition without a run of all clauses, or the whole table if deliveries are not
    tracked. Deliveries published on other servers are ignored. Raises UsageError for an unknown cycle.
    """
    with store.read() as tx:
        if selection.cycles:
            return _tasks_for_cycles(tx, pairs, selection.cycles, server)
        return [
            CheckTask(contract, schema_object, _scopes(tx, contract, schema_object, selection, server))
            for contract, schema_object in pairs
        ]


def with_location_errors(
    context: RuntimeContext, todo: Sequence[CheckTask], server: str | None
) -> list[CheckTask]:
    """Return the tasks; one without scopes gets an error if its data cannot be located."""
    return [
        task if task.scopes or task.errors else _with_location_error(context, task, server) for task in todo
    ]


def _with_location_error(context: RuntimeContext, task: CheckTask, server: str | None) -> CheckTask:
    try:
        locate(task.contract, task.object, server, context.reach)
    except DqError as error:
        return replace(task, errors=(error,))
    return task


Scopes = tuple[Partition | None, ...]


def _scopes(
    tx: Connection,
    contract: Contract,
    schema_object: SchemaObject,
    selection: RowSelection,
    server: str | None,
) -> Scopes:
    if selection.partitions:
        return selection.partitions
    other_server_names = other_servers(contract, server)
    if selection.everything or not _delivered_by_promise(tx, contract, schema_object, other_server_names):
        return (None,)
    # New data in any partition does not say which one to check.
    ignored = _slos_of_new_data(contract, schema_object) if schema_object.partition_keys() else set()
    ignored |= _slos_of_other_servers(contract, server)
    if selection.since is not None:
        return _unique_scopes(
            cycle_store.delivered_since(
                tx, contract.key, schema_object.name, selection.since, other_server_names, ignored
            )
        )
    if not schema_object.partition_keys():
        return (None,)
    tested = results.fully_checked_scopes(tx, contract.key, schema_object.name)
    delivered = [
        stored_cycle
        for stored_cycle in cycle_store.all_cycles(tx, (contract.key, schema_object.name))
        if stored_cycle.delivered_at is not None and stored_cycle.cycle.slo not in ignored
    ]
    # A delivery without a partition is always checked, since earlier runs may be of an older delivery.
    return tuple(
        scope for scope in _cycle_scopes(delivered) if scope is None or scope_name(scope) not in tested
    )


def _slos_of_new_data(contract: Contract, schema_object: SchemaObject) -> set[str]:
    ready, _ = promise.read_slos(contract)
    return {slo.id for slo in ready if slo.object is schema_object and slo.expects_new_data}


def _slos_of_other_servers(contract: Contract, server: str | None) -> set[str]:
    ready, _ = promise.read_slos(contract)
    return {slo.id for slo in ready if not slo.is_on(server)}


def _delivered_by_promise(
    tx: Connection, contract: Contract, schema_object: SchemaObject, other_server_names: Collection[str]
) -> bool:
    """True if deliveries of the object are tracked, by a delivery SLO or by receipts."""
    ready, _ = promise.read_slos(contract)
    return any(slo.object is schema_object and not slo.expects_new_data for slo in ready) or bool(
        receipts(tx, contract.key, schema_object.name, other_server_names)
    )


def _tasks_for_cycles(
    tx: Connection, pairs: Sequence[Pair], due_instants: Sequence[datetime], server: str | None
) -> list[CheckTask]:
    tasks: list[CheckTask] = []
    known_dues: dict[datetime, None] = {}
    for contract, schema_object in pairs:
        ignored = _slos_of_other_servers(contract, server)
        cycles = [
            stored_cycle
            for stored_cycle in cycle_store.all_cycles(tx, (contract.key, schema_object.name))
            if stored_cycle.cycle.slo not in ignored
        ]
        known_dues |= {stored_cycle.cycle.due_at: None for stored_cycle in cycles}
        matches = [
            stored_cycle
            for due in due_instants
            for stored_cycle in cycles
            if stored_cycle.cycle.due_at == due
        ]
        delivered = [stored_cycle for stored_cycle in matches if stored_cycle.delivered_at is not None]
        errors = tuple(
            _undelivered_error(stored_cycle) for stored_cycle in matches if stored_cycle.delivered_at is None
        )
        tasks.append(CheckTask(contract, schema_object, _cycle_scopes(delivered), errors))
    for due in due_instants:
        if due not in known_dues:
            raise UsageError(
                f"no delivery of these objects was due at {format_instant(due)}.",
                _near_hint(due, known_dues),
            )
    return tasks


def _undelivered_error(stored_cycle: CycleRecord) -> DqError:
    due = format_instant(stored_cycle.cycle.due_at)
    message = f"the delivery due {due} is {stored_cycle.status}: no data to check."
    return ReadError(message, "Pass an existing partition with --partition, or run 'dq watch' first.")


def _near_hint(due: datetime, known_dues: Iterable[datetime]) -> str:
    nearest = sorted(known_dues, key=lambda instant: abs(instant - due))[:_MAX_NEAREST]
    if not nearest:
        return "No deliveries recorded; run 'dq watch' first, or pass --partition."
    return f"Known due times include {', '.join(format_instant(instant) for instant in sorted(nearest))}."


def _cycle_scopes(cycles: Iterable[CycleRecord]) -> Scopes:
    return _unique_scopes(part for stored_cycle in cycles for part in stored_cycle.cycle.partitions or ((),))


def _unique_scopes(partitions: Iterable[Sequence[tuple[str, str]]]) -> Scopes:
    """Return each partition once, in order; one without columns becomes None, the whole table."""
    return tuple(
        dict(pairs) or None
        for pairs in {label(tuple(partition)): tuple(partition) for partition in partitions}.values()
    )


def scope_name(scope: Partition | None) -> str:
    """Return the name of a scope in the store."""
    return label(tuple(scope.items())) if scope else results.TABLE


def parse_partition(text: str) -> Partition:
    """Parse a partition, e.g. `day=2026-11-20/region=eu`. Raises UsageError if invalid."""
    pairs: dict[str, str] = {}
    for part in text.split("/"):
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise UsageError(f"invalid --partition {text!r}: expected KEY=VALUE", "Use e.g. day=2026-11-20.")
        if key.lower() in map(str.lower, pairs):
            raise UsageError(
                f"--partition {text!r} has {key!r} twice.", "Pass one --partition per partition."
            )
        pairs[key] = value
    return pairs


def formats(context: RuntimeContext, pairs: Sequence[Pair], server: str | None) -> set[str]:
    """Return the formats of all data that will be read: jars must be set when the session starts."""
    names = set()
    for contract in {id(contract): contract for contract, _ in pairs}.values():
        for schema_object in contract.objects:
            # Data that cannot be located is reported by its check.
            with suppress(DqError):
                names.add(locate(contract, schema_object, server, context.reach).format or "")
            for side in (agreement.other for agreement in agreements_of(schema_object).values()):
                if side.contract is None and side.server is not None:
                    with suppress(DqError):
                        compared = find_object(contract, side.object)
                        names.add(locate(contract, compared, side.server, context.reach).format or "")
    return names


# Quarantine of bad rows, and folders of good rows.


def quarantine_rows(
    request: Request,
    report: Report,
    path: str,
    run: Run,
    begin: Callable[[], SparkSession],
    *,
    unmasked: bool,
    precedence: Precedence | None = None,
) -> Report:
    """Write the bad rows of a report; return it with the quarantine result, or with the problem."""
    try:
        quarantined = write(
            request.contract,
            request.data,
            report,
            path,
            run,
            # Nothing is read if no clause failed.
            spark=begin() if report.failed else None,
            other_objects=request.other_objects,
            unmasked=unmasked,
            neighbours=request.neighbours,
            precedence=precedence,
        )
    except DqError as error:
        quarantined = Quarantined(0, None, f"{error.message} {error.hint}")
    return replace(report, quarantine=quarantined)


def clean_rows(request: Request, report: Report, folder: str, precedence: Precedence | None) -> Report:
    """Write the good rows of a report; return it with their number and folder, or with the problem."""
    try:
        cleaned = write_good_rows(request, report, folder, precedence)
    except DqError as error:
        cleaned = Cleaned(0, None, f"{error.message} {error.hint}")
    return replace(report, cleaned=cleaned)


def refuse_unusable_precedence(
    pairs: Sequence[Pair], precedence: Precedence, rule_names: Sequence[str], neighbours: ContractSet
) -> None:
    """Raise UsageError, with all problems, for objects without a key or without the column."""
    problems = []
    for contract, schema_object in pairs:
        clauses = clauses_of(contract, schema_object, built_in(), neighbours)
        try:
            selected = filter_by_words(schema_object, clauses, rule_names)
            precedence_column(contract, schema_object, selected, precedence)
        except UsageError as error:
            problems.append(error)
    if problems:
        hint = problems[0].hint if len(pairs) == 1 else f"{problems[0].hint} Or select objects with --object."
        raise UsageError("; ".join(problem.message.rstrip(".") for problem in problems) + ".", hint)


def good_rows_folder(path: str, contract: Contract, schema_object: SchemaObject) -> str:
    """Return the folder of an object's good rows below the path of `--clean`."""
    names = (quote(name, safe="") for name in (contract.key, schema_object.name))
    # `quote` leaves dots, and `..` is another folder.
    return "/".join(
        [path.rstrip("/"), *(name if name.strip(".") else name.replace(".", "%2E") for name in names)]
    )


def refuse_unusable_folder(
    context: RuntimeContext,
    pairs: Sequence[Pair],
    contracts: Sequence[Contract],
    server: str | None,
    path: str,
    quarantine: str | None,
) -> None:
    """Raise UsageError if good rows may not be written below the path, or would be mixed with other rows.

    Good rows are not masked, so they may only be written where contracts may have their data.
    """
    if has_pattern(path):
        raise UsageError(f"--clean: {path!r} is a pattern.", "Name one folder.")
    folders = [good_rows_folder(path, contract, schema_object) for contract, schema_object in pairs]
    reach = context.reach
    for folder in (path, *folders):
        allowed = reach.validate(folder)
        if isinstance(allowed, ValueProblem):
            raise UsageError(f"--clean: {folder!r} {allowed.message}.", allowed.hint)
    addresses = [_real_address(context, folder) for folder in folders]
    bad_rows = None if quarantine is None else _real_address(context, quarantine)
    if bad_rows is not None and any(folder is not None and bad_rows.is_below(folder) for folder in addresses):
        raise UsageError(
            f"--clean: the good rows would replace the bad rows in {quarantine!r}.",
            "Choose another folder for --quarantine.",
        )
    for contract in contracts:
        for schema_object in contract.objects:
            overlap = _overlap(addresses, _locations(context, contract, schema_object, server))
            if overlap is not None:
                raise UsageError(
                    f"--clean: the good rows in {str(overlap)!r} would be mixed with the data of "
                    f"{contract.id} {schema_object.name}, or replace it.",
                    "Choose a folder that is neither inside nor above the data.",
                )


def _locations(
    context: RuntimeContext, contract: Contract, schema_object: SchemaObject, server: str | None
) -> list[Address]:
    """Return the folders of an object's data: empty for a catalog table or an unusable location."""
    try:
        data = located_data(context, contract, schema_object, server)
    except DqError:
        return []
    folders = (data.path, *(partition.folder for partition in data.external_partitions))
    addresses = (_real_address(context, folder) for folder in folders if folder is not None)
    return [address for address in addresses if address is not None]


def _real_address(context: RuntimeContext, location: str) -> Address | None:
    """Return a location with its links resolved, up to its first pattern, or None if it cannot be parsed."""
    address = parse_location(location)
    if isinstance(address, ValueProblem):
        return None
    address = replace(address, segments=segments_before_pattern(address.segments))
    if address.scheme:
        return address
    real_path = Path(os.path.realpath(context.folder.joinpath(*address.segments)))
    return replace(address, segments=real_path.parts)


def _overlap(folders: Sequence[Address | None], locations: Sequence[Address]) -> Address | None:
    """Return the first folder that is inside or above one of the locations, or None."""
    return next(
        (
            folder
            for folder in folders
            for location in locations
            if folder is not None and (folder.is_below(location) or location.is_below(folder))
        ),
        None,
    )


# One run of a check: one object and scope is measured, stored and reported.

Notify = Callable[[Connection, Breach | Recovery], None]


@dataclass(frozen=True, slots=True)
class CheckSetup:
    """Shared inputs of the runs of a command. `notify` records an event, see `alerting.make_notifier`.

    `prepare` is called with the contract of failed checks before the transaction with their event.
    `quarantine` is the location for bad rows, `unmasked` with classified columns. `clean` is that for good
    rows, and `precedence` decides which row of a repeated key is good.
    """

    context: RuntimeContext
    store: Store
    spark: LazySparkSession
    notify: Notify
    prepare: Callable[[Collection[Contract]], object] = lambda _: None
    server: str | None = None
    rules: tuple[str, ...] = ()
    quarantine: str | None = None
    unmasked: bool = False
    optimizations: frozenset[Optimization] = ALL
    neighbours: ContractSet = NO_NEIGHBOURS
    verify_statistics: float = 0.0
    precedence: Precedence | None = None
    clean: str | None = None


T = TypeVar("T")
Work = Callable[[CheckSetup, Contract, SchemaObject, Partition | None], T]
"""Function applied to one scope of an object."""


@dataclass(frozen=True, slots=True)
class FailedScope:
    """A scope of an object (None: the whole table) that could not be checked, with the error."""

    contract: Contract
    object: SchemaObject
    scope: Partition | None
    error: DqError

    @property
    def exit_code(self) -> int:
        """Exit code: the result is unknown, whatever the reason; or a tool is missing."""
        return (MissingTool if isinstance(self.error, MissingTool) else ReadError).exit_code


def run(
    setup: CheckSetup, contract: Contract, schema_object: SchemaObject, scope: Partition | None
) -> Report:
    """Check one partition (None: the whole table), store the results, and record events.

    Results and incident are written in one short transaction. Raises DqError when the data cannot be opened.
    """
    context = setup.context
    object_label, scope_label = f"{contract.id}/{schema_object.name}", scope_name(scope)
    begin = partial(
        setup.spark.for_job,
        f"dq check {object_label}",
        f"dq check {object_label} {contract.version} {scope_label}",
    )
    data = located_data(context, contract, schema_object, setup.server, setup.store)
    if scope and _lacks_folder(data, scope):
        context.note(
            f"{object_label} {scope_label}: the partition has no folder, so there are no rows to check."
        )
    request = Request(
        contract,
        data,
        schema_object.name,
        spark=setup.spark.current,
        partitions=[scope] if scope else None,
        now=context.now(),
        other_objects=referenced_data(
            context, contract, schema_object, setup.server, setup.neighbours, store=setup.store
        ),
        history=load_history(setup.store, contract, schema_object),
        arrivals=load_arrivals(setup.store, contract, schema_object, context.now()),
        unusual_level=load_unusual_level(setup, schema_object),
        rules=setup.rules,
        optimizations=setup.optimizations,
        # Only the real clock tells if a file is stable.
        memory=None
        if context.as_of
        else PartitionCache(setup.store, context.now(), context.settings.keep_keys),
        limit_seconds=context.settings.rule_seconds,
        neighbours=setup.neighbours,
        verify_statistics=setup.verify_statistics,
        start_session=begin,
    )
    claims = published_counts(setup.store, contract, schema_object, setup.server, context.now())
    report = with_receipts_of_other_sides(
        with_delivered_rows(check(request), request, claims),
        request,
        partial(_claims_of_other_side, setup, contract),
    )
    if any(result.status in results.BROKEN for result in report.results):
        setup.prepare([contract])
    report = save_run(setup, report, scope_label, contract, schema_object)
    if setup.quarantine:
        now = context.now()
        quarantine_run = Run(f"{now:%Y-%m-%dT%H%M%SZ}", scope_label, now)
        report = quarantine_rows(
            request,
            report,
            setup.quarantine,
            quarantine_run,
            begin,
            unmasked=setup.unmasked,
            precedence=setup.precedence,
        )
    if setup.clean:
        folder = context.resolve_path(good_rows_folder(setup.clean, contract, schema_object))
        report = clean_rows(request, report, folder, setup.precedence)
    return report


def _lacks_folder(data: Dataset, scope: Partition) -> bool:
    """Return True if a partition of local files has no folder.

    False if that is not known without a listing: elsewhere, in another layout, or with several texts of one
    value, e.g. month=1 and month=01.
    """
    values = {column.lower(): text for column, text in scope.items()}
    leading = list(takewhile(values.__contains__, map(str.lower, data.partitions)))
    if data.path is None or is_remote(data.path) or data.format not in FILE_FORMATS:
        return False
    if data.layout or data.external_partitions or not leading:
        return False
    folders = [Path(data.path)]
    for column in leading:
        try:
            below = [entry for folder in folders for entry in folder.iterdir()]
        except OSError:
            return False
        partitions = [entry for entry in below if entry.name.lower().startswith(f"{column}=")]
        if not partitions:
            return False
        folders = [
            entry for entry in partitions if _may_be_equal(entry.name.partition("=")[2], values[column])
        ]
    return not folders


def _may_be_equal(folder_text: str, text: str) -> bool:
    """Return True unless two texts of a partition value certainly differ, as dates do."""
    return folder_text == text or not (_ISO_DATE.fullmatch(folder_text) and _ISO_DATE.fullmatch(text))


_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def published_counts(
    store: Store, contract: Contract, schema_object: SchemaObject, server: str | None, now: datetime
) -> list[RowClaim]:
    """Return the row counts of the object's receipts as of `now`."""
    with store.read() as tx:
        return row_claims(tx, contract.key, schema_object.name, other_servers(contract, server), now)


def _claims_of_other_side(
    setup: CheckSetup, contract: Contract, side: OtherSide
) -> tuple[SchemaObject, Sequence[RowClaim]] | None:
    """Return the object that another side is, and the row counts of its receipts; None if it is unknown."""
    try:
        holder, server = _contract_and_server(contract, side, setup.server, setup.neighbours)
        schema_object = find_object(holder, side.object)
    except (ExternalReference, UsageError):
        return None
    now = setup.context.now()
    return schema_object, published_counts(setup.store, holder, schema_object, server, now)


def load_history(store: Store, contract: Contract, schema_object: SchemaObject) -> Sequence[PastResult]:
    """Return earlier measurements of the object, for rules that compare with them."""
    name = clause_namer(schema_object)
    rules = [rule.path() for element in (schema_object, *schema_object.walk()) for rule in element.quality]
    with store.read() as tx:
        counts = results.earlier_counts(
            tx, contract.key, schema_object.name, {path: name(path) for path in rules}
        )
        names = {path: name(path) for path in comparing_rules(schema_object)}
        agreements = {path: name(path) for path in cycle_agreements(schema_object)}
        return (
            *counts,
            *results.earlier_measures(tx, contract.key, schema_object.name, names),
            *results.earlier_comparisons(tx, contract.key, schema_object.name, agreements),
        )


def load_arrivals(
    store: Store, contract: Contract, schema_object: SchemaObject, now: datetime
) -> Mapping[tuple[tuple[str, str], ...], float]:
    """Return the minutes from due to delivered of the object's deliveries up to `now`, by partition."""
    with store.read() as tx:
        return cycle_store.arrival_minutes(tx, contract.key, schema_object.name, now)


def load_unusual_level(setup: CheckSetup, schema_object: SchemaObject) -> float | None:
    """Return the level of each rule `unusual` of the object by the limit of all tables, None without one."""
    accepted = setup.context.settings.unusual_false_alarms
    rules = sum(
        is_unusual_rule(rule)
        for element in (schema_object, *schema_object.walk())
        for rule in element.quality
    )
    if not accepted or not rules:
        return None
    with setup.store.read() as tx:
        return next_test_level(tx, accepted, rules, setup.context.now())


def save_run(
    setup: CheckSetup, report: Report, scope: str, contract: Contract, schema_object: SchemaObject
) -> Report:
    """Store a run and update its incident; return the report with the totals of all verifications.

    A run of selected clauses opens an incident for failures, and resolves one only if no other clause is
    known to fail. Rules for cycles in a row are subjects of their own, by all results in the store.
    """
    now = setup.context.now()
    product = contract_key(report.contract, report.version)
    with setup.store.write() as tx:
        run_id = results.save_run(
            tx,
            contract=product,
            object=report.object,
            version=report.version,
            scope=scope,
            results=report.results,
            jobs=report.passes,
            now=now,
            rules=report.rules,
        )
        if report.verification is not None:
            results.save_verification(tx, run_id, report.verification.tally)
            report = replace(
                report, verification=replace(report.verification, ever=results.total_verifications(tx))
            )
        other_results = (
            results.unrenewed_results(tx, run_id, product, report.object, scope) if report.rules else None
        )
        event = results.verdict(product, report.object, scope, report.results, now, other_results)
        events = [
            *([event] if event is not None else []),
            *_streak_events(tx, report, contract, schema_object, now),
        ]
        # Breaches first, so that the incident is not resolved and reopened.
        for event in sorted(events, key=lambda event: isinstance(event, Recovery)):
            setup.notify(tx, event)
    return report


def _streak_events(
    tx: Connection, report: Report, contract: Contract, schema_object: SchemaObject, now: datetime
) -> Iterator[Breach | Recovery]:
    """Yield the events of rules for cycles in a row that this run evaluated, and of removed rules."""
    by_name = {result.name: result for result in report.results if result.streak is not None}
    standings = results.agreement_standings(tx, contract, schema_object)
    for standing in standings:
        if standing.name in by_name:
            yield results.streak_event(standing, by_name[standing.name], now)
    key = IncidentKey(contract.key, schema_object.name, results.GROUP)
    incident = incident_store.newest(tx, key)
    current = {standing.subject for standing in standings}
    for subject in incident.open_subjects if incident is not None else ():
        if subject.startswith(results.STREAK_SUBJECT) and subject not in current:
            fact = ("withdrawn", "the contract does not have the rule any longer")
            yield Recovery(key, subject, now, (fact,), Resolution.WITHDRAWN)


def dry_run(
    setup: CheckSetup, contract: Contract, schema_object: SchemaObject, scope: Partition | None
) -> Outline:
    """Return the plan of `run` without measuring or storing anything. Raises as `run`."""
    job_label = f"dq check --dry-run {contract.id}/{schema_object.name}"
    request = Request(
        contract,
        located_data(setup.context, contract, schema_object, setup.server, setup.store),
        schema_object.name,
        spark=setup.spark.current,
        partitions=[scope] if scope else None,
        now=setup.context.now(),
        history=load_history(setup.store, contract, schema_object),
        arrivals=load_arrivals(setup.store, contract, schema_object, setup.context.now()),
        rules=setup.rules,
        optimizations=setup.optimizations,
        neighbours=setup.neighbours,
        start_session=partial(setup.spark.for_job, job_label, job_label),
    )
    return outline(request)


def untestable_scopes(task: CheckTask) -> list[FailedScope]:
    """Return the requested scopes of a task that cannot be checked."""
    return [FailedScope(task.contract, task.object, None, error) for error in task.errors]


def run_all(setup: CheckSetup, task: CheckTask, work: Work[T], progress: Progress) -> list[T | FailedScope]:
    """Apply the work to every scope of a task sequentially; a DqError becomes a value."""
    outcomes: list[T | FailedScope] = [*untestable_scopes(task)]
    for scope in task.scopes:
        with progress.step(f"{task} {scope_name(scope)}"):
            try:
                outcomes.append(work(setup, task.contract, task.object, scope))
            except DqError as error:
                outcomes.append(FailedScope(task.contract, task.object, scope, error))
    return outcomes


def referenced_data(
    context: RuntimeContext,
    contract: Contract,
    schema_object: SchemaObject,
    server: str | None,
    neighbours: ContractSet,
    store: Store | None = None,
) -> dict[str, Dataset]:
    """Return the data of objects that the object's relationships refer to, including other contracts'.

    Data that the object should agree with is included. Objects without a usable location are reported as
    notes.
    """
    datasets = {}
    for agreement in agreements_of(schema_object).values():
        side = agreement.other
        try:
            datasets[side.name] = _other_side(context, contract, side, server, neighbours, store)
        except (ExternalReference, UsageError) as error:
            context.note(f"{side}: {error}")
    if not has_relationships(schema_object):
        return datasets
    own_objects = {sibling.name: (contract, sibling) for sibling in contract.objects}
    for name, (holder, target) in {
        **own_objects,
        **referenced_objects(contract, schema_object, neighbours),
    }.items():
        try:
            target_server = server if holder is contract else matching_server(contract, server, holder)
            datasets[name] = located_data(context, holder, target, target_server, store)
        except UsageError as error:
            context.note(f"{error.message} {error.hint}")
    return datasets


def _other_side(
    context: RuntimeContext,
    contract: Contract,
    side: OtherSide,
    server: str | None,
    neighbours: ContractSet,
    store: Store | None,
) -> Dataset:
    """Return the data of the other side of a comparison. Raises UsageError and ExternalReference."""
    holder, other_server = _contract_and_server(contract, side, server, neighbours)
    return located_data(context, holder, find_object(holder, side.object), other_server, store)


def _contract_and_server(
    contract: Contract, side: OtherSide, server: str | None, neighbours: ContractSet
) -> tuple[Contract, str | None]:
    """Return the contract of another side, and its server. Raises UsageError and ExternalReference."""
    if side.contract is None:
        return contract, side.server or server
    holder = neighbours.contract_with(side.contract, side.object)
    return holder, side.server or matching_server(contract, server, holder)
