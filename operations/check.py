"""`dq.check`: objects tested on their data, results kept, incidents opened and resolved."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection

from dq.contracts import slo as promise
from dq.contracts.access.data_location import other_servers, server_beside
from dq.contracts.model import Contract, SchemaObject, key, namer
from dq.contracts.outcome import (
    Breach,
    CheckResult,
    DqError,
    GroupResult,
    MissingTool,
    Recovery,
    Severity,
    Status,
    Unreadable,
    UsageError,
    counted,
    suggestion,
)
from dq.dataquality import results
from dq.dataquality.answers.partition_cache import PartLedger
from dq.dataquality.answers.sources import ALL, Lever
from dq.dataquality.check import Outline, check, outline
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import refuse_unknown, selected, testable
from dq.dataquality.clauses.foreign_key import ALONE, Neighbours, has_relationships, referred
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.clauses.metric_rule import columns_compared
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import Kept, label
from dq.dataquality.delivery.cycle_store import RowClaim, receipts, row_claims
from dq.dataquality.model.run_context import Earlier, EarlierMeasure
from dq.dataquality.quarantine import Run, write
from dq.dataquality.report import Quarantined, Report
from dq.dataquality.request import Request, opened, pick
from dq.dataquality.spark.columnar_files import only
from dq.dataquality.spark.dataset import FILES, Dataset, locate
from dq.operations.data_places import located_data
from dq.operations.registry_files import Loaded
from dq.operations.runtime.context import Progress, World, written_instant
from dq.operations.runtime.spark import SparkAtNeed
from dq.store.engine import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# What a check is about: which objects, and which of their rows, by options that exclude each other.

Partition = Mapping[str, str]
Pair = tuple[Contract, SchemaObject]
# So many due instants are shown to somebody who named one that is not known.
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class AskedRows:
    """Which rows were asked for; at most one of these is given, and none stands for what is new."""

    partitions: tuple[Partition, ...] = ()
    cycles: tuple[datetime, ...] = ()
    since: datetime | None = None
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """One object and its scopes, each with a run of its own (None: the whole table).

    `refused` is what was asked for and cannot be tested, with the reason.
    """

    contract: Contract
    object: SchemaObject
    scopes: tuple[Partition | None, ...]
    refused: tuple[DqError, ...] = ()

    def __str__(self) -> str:
        return f"{self.contract.id}/{self.object.name}"


def asked(
    partitions: Sequence[Partition], cycles: Sequence[datetime], since: datetime | None, everything: bool
) -> AskedRows:
    """The options as one value, each partition and cycle once. Raises UsageError where two are given."""
    given = {"--partition": partitions, "--cycle": cycles, "--since": since, "--all": everything}
    names = [name for name, value in given.items() if value]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} exclude each other.", f"Give one of {', '.join(given)}.")
    return AskedRows(
        tuple({tuple(partition.items()): partition for partition in partitions}.values()),
        tuple(dict.fromkeys(cycles)),
        since,
        everything,
    )


def objects(loaded: Loaded, name: str | None) -> list[Pair]:
    """The objects of all contracts, or those of this name or id. Raises UsageError when there is none."""
    pairs = [(contract, one) for contract in loaded.contracts for one in contract.objects]
    if name is None:
        return pairs
    found = [(contract, one) for contract, one in pairs if name in (one.name, one.id)]
    if not found:
        mend = suggestion(name, [one.name for _, one in pairs], "Check --object.")
        raise UsageError(f"no contract here has an object {name!r}.", mend)
    return found


def with_rules(pairs: Sequence[Pair], words: Sequence[str], neighbours: Neighbours) -> list[Pair]:
    """The objects that have a clause of these names. Raises UsageError for a name that none of them has."""
    if not words:
        return list(pairs)
    found = [(contract, one, clauses_of(contract, one, built_in(), neighbours)) for contract, one in pairs]
    refuse_unknown(found, words)
    return [(contract, one) for contract, one, clauses in found if testable(selected(one, clauses, words))]


def tasks(store: Store, pairs: Sequence[Pair], what: AskedRows, server: str | None = None) -> list[Task]:
    """What to test of each object, in the order of the contracts.

    By default each partition that was delivered and has no run of all clauses, and the whole table where
    nobody knows what was delivered when. What was published on another server than this one was not
    delivered here. Raises UsageError for a cycle that no object has.
    """
    with store.read() as tx:
        if what.cycles:
            return _of_cycles(tx, pairs, what.cycles)
        return [Task(contract, one, _scopes(tx, contract, one, what, server)) for contract, one in pairs]


def with_places(world: World, todo: Sequence[Task], server: str | None) -> list[Task]:
    """The tasks; one without anything to test says all the same when its data could not be found."""
    return [task if task.scopes or task.refused else _placed(world, task, server) for task in todo]


def _placed(world: World, task: Task, server: str | None) -> Task:
    try:
        locate(task.contract, task.object, server, world.reach)
    except DqError as error:
        return replace(task, refused=(error,))
    return task


Scopes = tuple[Partition | None, ...]


def _scopes(
    tx: Connection, contract: Contract, one: SchemaObject, what: AskedRows, server: str | None
) -> Scopes:
    if what.partitions:
        return what.partitions
    elsewhere = other_servers(contract, server)
    if what.everything or not _delivered_by_promise(tx, contract, one, elsewhere):
        return (None,)
    if what.since is not None:
        return _once(cycle_store.delivered_since(tx, contract.key, one.name, what.since, elsewhere))
    if not one.partition_keys():
        return (None,)
    tested = results.checked(tx, contract.key, one.name)
    arrived = [
        kept for kept in cycle_store.all_cycles(tx, (contract.key, one.name)) if kept.delivered_at is not None
    ]
    # A delivery without a partition is new each time, and what was tested of it says nothing.
    return tuple(scope for scope in _named(arrived) if scope is None or name_of(scope) not in tested)


def _delivered_by_promise(
    tx: Connection, contract: Contract, one: SchemaObject, elsewhere: Collection[str]
) -> bool:
    """Whether it is known when the object is delivered: it has a promise that is watched, or receipts."""
    ready, _ = promise.read(contract)
    return any(slo.object is one for slo in ready) or bool(receipts(tx, contract.key, one.name, elsewhere))


def _of_cycles(tx: Connection, pairs: Sequence[Pair], wanted: Sequence[datetime]) -> list[Task]:
    made: list[Task] = []
    known: dict[datetime, None] = {}
    for contract, one in pairs:
        cycles = cycle_store.all_cycles(tx, (contract.key, one.name))
        known |= {kept.cycle.due_at: None for kept in cycles}
        mine = [kept for due in wanted for kept in cycles if kept.cycle.due_at == due]
        here = [kept for kept in mine if kept.delivered_at is not None]
        refused = tuple(_undelivered(kept) for kept in mine if kept.delivered_at is None)
        made.append(Task(contract, one, _named(here), refused))
    for due in wanted:
        if due not in known:
            raise UsageError(
                f"no delivery of these objects is known that was due {written_instant(due)}.",
                _near(due, known),
            )
    return made


def _undelivered(kept: Kept) -> DqError:
    due = written_instant(kept.cycle.due_at)
    message = f"the delivery due {due} is {kept.status}: it has no data to check."
    return Unreadable(message, "Name what there is with --partition, or run 'dq watch' first.")


def _near(due: datetime, known: Iterable[datetime]) -> str:
    near = sorted(known, key=lambda one: abs(one - due))[:_SHOWN]
    if not near:
        return "The ledger is empty; run 'dq watch' first, or name a --partition."
    return f"Known are {', '.join(written_instant(one) for one in sorted(near))}, among others."


def _named(cycles: Iterable[Kept]) -> Scopes:
    return _once(part for kept in cycles for part in kept.cycle.partitions or ((),))


def _once(partitions: Iterable[Sequence[tuple[str, str]]]) -> Scopes:
    """Each partition once, in this order; one without columns stands for the whole table."""
    return tuple(
        dict(pairs) or None for pairs in {label(tuple(one)): tuple(one) for one in partitions}.values()
    )


def name_of(scope: Partition | None) -> str:
    """A scope as history knows it."""
    return label(tuple(scope.items())) if scope else results.TABLE


def partition_of(text: str) -> Partition:
    """The partition in a text such as `day=2026-11-20/region=eu`. Raises UsageError for another one."""
    pairs: dict[str, str] = {}
    for part in text.split("/"):
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise UsageError(f"--partition {text!r} is not of the form key=value.", "Write day=2026-11-20.")
        if key.lower() in map(str.lower, pairs):
            raise UsageError(f"--partition {text!r} names {key!r} twice.", "Give each partition an option.")
        pairs[key] = value
    return pairs


def formats(world: World, pairs: Sequence[Pair], server: str | None) -> set[str]:
    """The formats of all data that will be read: a session has the jars that it was started with."""
    found = set()
    for contract in {id(contract): contract for contract, _ in pairs}.values():
        for one in contract.objects:
            # What cannot be located is said where it is tested.
            with suppress(DqError):
                found.add(locate(contract, one, server, world.reach).format or "")
    return found


# Row counts that producers hand in when they publish, compared with the rows that a check counts.

CHECK = "delivered_rows"
# Of the partitions that contradict their receipts, a message names so many.
_NAMED = 3


def with_delivered_rows(
    report: Report, request: Request, store: Store, server: str | None, begin: Callable[[], SparkSession]
) -> Report:
    """The report with a result for the numbers in receipts, where there are any for this scope.

    A run of chosen rules compares none.
    """
    contract, one = request.contract, pick(request.contract, request.object)
    if request.rules or request.now is None:
        return report
    with store.read() as tx:
        claims = row_claims(tx, contract.key, one.name, other_servers(contract, server), request.now)
    compared = _compared(claims, report, request, one, begin)
    if not compared:
        return report
    return replace(report, results=(*report.results, _result(one, compared)))


Compared = Sequence[tuple[RowClaim, int]]
"""Claims, each with the number of rows that are there."""


def _compared(
    claims: Sequence[RowClaim],
    report: Report,
    request: Request,
    one: SchemaObject,
    begin: Callable[[], SparkSession],
) -> Compared:
    keys = [prop.column for prop in one.partition_keys()]
    if not keys:
        # Rows of other deliveries stay in a table with a log, so that its count is of all of them.
        replaced = isinstance(request.data, Dataset) and request.data.format in FILES
        newest = max(
            (claim for claim in claims if replaced), key=lambda claim: claim.delivered_at, default=None
        )
        return [(newest, _rows(report, request, begin))] if newest is not None else []
    scopes = [_folded(scope) for scope in request.partitions or ()]
    if scopes:
        asked = [claim for claim in claims if _folded(dict(claim.partition)) in scopes]
        return [(claim, _rows(report, request, begin)) for claim in asked]
    whole = [
        claim for claim in claims if _folded(dict(claim.partition)).keys() == {key.lower() for key in keys}
    ]
    if not whole:
        return []
    table = only(opened(request.data, begin()), [dict(claim.partition) for claim in whole])
    rows = table.groupBy(*(table[key].cast("string").alias(key.lower()) for key in keys)).count().collect()
    found = {tuple(row[: len(keys)]): int(row[len(keys)]) for row in rows}
    # A partition that is gone was removed since, which is no contradiction of what was delivered.
    order = [key.lower() for key in keys]
    values = [(claim, _folded(dict(claim.partition))) for claim in whole]
    pairs = [(claim, tuple(named[key] for key in order)) for claim, named in values]
    return [(claim, found[key]) for claim, key in pairs if key in found]


def _rows(report: Report, request: Request, begin: Callable[[], SparkSession]) -> int:
    if report.rows is not None:
        return report.rows
    table = opened(request.data, begin(), request.partitions)
    return (only(table, request.partitions) if request.partitions else table).count()


def _folded(partition: Mapping[str, str]) -> dict[str, str]:
    return {key.lower(): value for key, value in partition.items()}


def _result(one: SchemaObject, compared: Compared) -> CheckResult:
    wrong = [(claim, rows) for claim, rows in compared if claim.rows != rows]
    status = Status.FAIL if wrong else Status.PASS
    if wrong:
        message = f"{one.name}: {'; '.join(_contradiction(claim, rows) for claim, rows in wrong[:_NAMED])}"
        message += f"; and {len(wrong) - _NAMED:,} more" if len(wrong) > _NAMED else ""
    else:
        message = f"{one.name}: as many rows as {counted(len(compared), 'receipt')} of 'dq publish' say"
    alone = compared[0] if len(compared) == 1 else None
    by = tuple(key for key, _ in compared[0][0].partition)
    groups = tuple(
        GroupResult(
            tuple(value for _, value in claim.partition),
            Status.PASS if claim.rows == rows else Status.FAIL,
            counted(rows, "row"),
            float(rows),
        )
        for claim, rows in compared
    )
    return CheckResult(
        check=CHECK,
        clause="receipt",
        object=one.name,
        property="",
        status=status,
        severity=Severity.ERROR,
        observed=counted(alone[1], "row")
        if alone
        else f"{len(wrong):,} of {counted(len(compared), 'partition')}",
        allowed=_claim(alone[0]) if alone else "the rows that receipts say",
        message=message,
        at=one.at(),
        value=float(alone[1]) if alone else float(len(wrong)),
        by=() if alone else by,
        groups=() if alone else groups,
        threshold={"mustBe": alone[0].rows if alone else 0},
        unit="rows" if alone else "",
        name=f"schema/{one.name}/receipt",
    )


def _contradiction(claim: RowClaim, rows: int) -> str:
    where = f"{label(claim.partition)} has " if claim.partition else ""
    return f"{where}{counted(rows, 'row')}, and its receipt says {claim.rows:,} ({_source(claim)})"


def _claim(claim: RowClaim) -> str:
    return f"{counted(claim.rows, 'row')} by its receipt ({_source(claim)})"


def _source(claim: RowClaim) -> str:
    server = f" on {claim.server}" if claim.server else ""
    return f"revision {claim.revision}, published {claim.delivered_at:%Y-%m-%d %H:%MZ}{server}"


# Bad rows of a check, written apart.


def set_apart(
    request: Request,
    report: Report,
    path: str,
    run: Run,
    begin: Callable[[], SparkSession],
    *,
    unmasked: bool,
) -> Report:
    """The report with what was written of its bad rows, or why that could not be done."""
    try:
        written = write(
            request.contract,
            request.data,
            report,
            path,
            run,
            # Of what nothing breaks, nothing is read.
            spark=begin() if report.failed else None,
            others=request.others,
            unmasked=unmasked,
            neighbours=request.neighbours,
        )
    except DqError as error:
        written = Quarantined(0, None, f"{error.message} {error.mend}")
    return replace(report, quarantine=written)


# One run of a check: an object on one scope, measured, kept, and told of.

Tell = Callable[[Connection, Breach | Recovery], None]


@dataclass(frozen=True, slots=True)
class Setup:
    """What all runs of one command share. `tell` records a breach or a recovery, see `alerting.teller`.

    `quarantine` is where bad rows are written apart, `unmasked` with classified columns.
    """

    world: World
    store: Store
    spark: SparkAtNeed
    tell: Tell
    server: str | None = None
    rules: tuple[str, ...] = ()
    quarantine: str | None = None
    unmasked: bool = False
    levers: frozenset[Lever] = ALL
    neighbours: Neighbours = ALONE
    verify_statistics: float = 0.0


T = TypeVar("T")
Work = Callable[[Setup, Contract, SchemaObject, Partition | None], T]
"""What is done with one scope of an object."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A scope of an object (None: all of it) that could not be tested at all, and why."""

    contract: Contract
    object: SchemaObject
    scope: Partition | None
    error: DqError

    @property
    def exit_code(self) -> int:
        """Nobody knows whether the promise is kept, whatever the reason; what is missing can be installed."""
        return (MissingTool if isinstance(self.error, MissingTool) else Unreadable).exit_code


def run(given: Setup, contract: Contract, one: SchemaObject, scope: Partition | None) -> Report:
    """Tests one partition (None: the whole table), keeps the results, and records what they mean.

    Results and incident are written in one short transaction. Raises DqError when the data cannot be opened.
    """
    world = given.world
    what, where = f"{contract.id}/{one.name}", name_of(scope)
    begin = partial(given.spark.labelled, f"dq check {what}", f"dq check {what} {contract.version} {where}")
    request = Request(
        contract,
        located_data(world, contract, one, given.server, given.store),
        one.name,
        spark=given.spark.begun,
        partitions=[scope] if scope else None,
        now=world.now(),
        others=others(world, contract, one, given.server, given.neighbours, store=given.store),
        history=earlier(given.store, contract, one),
        rules=given.rules,
        levers=given.levers,
        # Whether a file has settled can be told by the real time only.
        memory=None if world.as_of else PartLedger(given.store, world.now(), world.settings.keep_keys),
        limit_seconds=world.settings.rule_seconds,
        neighbours=given.neighbours,
        verify_statistics=given.verify_statistics,
        begin=begin,
    )
    report = with_delivered_rows(check(request), request, given.store, given.server, begin)
    report = keep(given, report, where)
    if given.quarantine:
        at = world.now()
        named = Run(f"{at:%Y-%m-%dT%H%M%SZ}", where, at)
        return set_apart(request, report, given.quarantine, named, begin, unmasked=given.unmasked)
    return report


def earlier(store: Store, contract: Contract, one: SchemaObject) -> Sequence[Earlier | EarlierMeasure]:
    """What earlier runs measured of the object, for the rules that compare with it."""
    name = namer(one)
    rules = [rule.path() for element in (one, *one.walk()) for rule in element.quality]
    with store.read() as tx:
        counted = results.earlier_counts(tx, contract.key, one.name, {path: name(path) for path in rules})
        names = {path: name(path) for path in columns_compared(one)}
        return (*counted, *results.earlier_measures(tx, contract.key, one.name, names))


def keep(given: Setup, report: Report, scope: str) -> Report:
    """Writes a run and what it means for the incident; gives the report with what all runs come to.

    A run of some clauses opens an incident for what it found broken, and resolves one only when nothing
    that it did not ask for is known to be broken.
    """
    now = given.world.now()
    product = key(report.contract, report.version)
    with given.store.write() as tx:
        made = results.save_run(
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
            results.save_trial(tx, made, report.verification.tally)
            report = replace(report, verification=replace(report.verification, ever=results.all_trials(tx)))
        others = results.unasked(tx, made, product, report.object, scope) if report.rules else None
        event = results.verdict(product, report.object, scope, report.results, now, others)
        if event is not None:
            given.tell(tx, event)
    return report


def foresee(given: Setup, contract: Contract, one: SchemaObject, scope: Partition | None) -> Outline:
    """What `run` would do; nothing is measured and nothing kept. Raises what `run` raises."""
    what = f"dq check --dry-run {contract.id}/{one.name}"
    request = Request(
        contract,
        located_data(given.world, contract, one, given.server, given.store),
        one.name,
        spark=given.spark.begun,
        partitions=[scope] if scope else None,
        now=given.world.now(),
        history=earlier(given.store, contract, one),
        rules=given.rules,
        levers=given.levers,
        neighbours=given.neighbours,
        begin=partial(given.spark.labelled, what, what),
    )
    return outline(request)


def refused(task: Task) -> list[Failed]:
    """What was asked for of an object, and has no data to be tested."""
    return [Failed(task.contract, task.object, None, error) for error in task.refused]


def run_all(given: Setup, task: Task, work: Work[T], progress: Progress) -> list[T | Failed]:
    """The work on every scope of a task, one after another; what cannot be opened is a value too."""
    done: list[T | Failed] = [*refused(task)]
    for scope in task.scopes:
        with progress.step(f"{task} {name_of(scope)}"):
            try:
                done.append(work(given, task.contract, task.object, scope))
            except DqError as error:
                done.append(Failed(task.contract, task.object, scope, error))
    return done


def others(
    world: World,
    contract: Contract,
    one: SchemaObject,
    server: str | None,
    neighbours: Neighbours,
    store: Store | None = None,
) -> dict[str, Dataset]:
    """What the object's relationships refer to, where its data can be found, in other contracts too.

    What cannot be found is a note.
    """
    if not has_relationships(one):
        return {}
    wanted = {other.name: (contract, other) for other in contract.objects}
    found = {}
    for name, (holder, other) in {**wanted, **referred(contract, one, neighbours)}.items():
        try:
            place = server if holder is contract else server_beside(contract, server, holder)
            found[name] = located_data(world, holder, other, place, store)
        except UsageError as error:
            world.note(f"{error.message} {error.mend}")
    return found
