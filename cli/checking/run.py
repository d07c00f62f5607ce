"""One run of a check: an object on one scope, measured, kept, and told of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from dq.cli.checking.delivered_rows import with_delivered_rows
from dq.cli.checking.quarantining import set_apart
from dq.cli.checking.selection import Partition, Task, name_of
from dq.cli.loading.placements import located_data
from dq.cli.world.environment import Progress, World
from dq.cli.world.spark import SparkAtNeed
from dq.contracts.access.data_location import server_beside
from dq.contracts.model import Contract, SchemaObject, key
from dq.contracts.shared.outcome import Breach, DqError, MissingTool, Recovery, Unreadable, UsageError
from dq.contracts.yaml.clause_name import namer
from dq.dataquality import Report, Request
from dq.dataquality.answers.levers import ALL, Lever
from dq.dataquality.answers.partition_cache.store import PartLedger
from dq.dataquality.clauses.foreign_key import ALONE, Neighbours, has_relationships, referred
from dq.dataquality.clauses.metric_rule import columns_compared
from dq.dataquality.dry_run import Outline, outline
from dq.dataquality.local import small
from dq.dataquality.model.run_context import Earlier, EarlierMeasure
from dq.dataquality.quarantine import Run
from dq.dataquality.results import check_runs
from dq.dataquality.results import check_runs as earlier_runs
from dq.dataquality.results import check_runs as trials
from dq.dataquality.spark.readers.open import Dataset
from dq.store.engine import Store

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
    )
    report = with_delivered_rows(small.check(request, begin), request, given.store, given.server, begin)
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
        counted = earlier_runs.earlier_counts(
            tx, contract.key, one.name, {path: name(path) for path in rules}
        )
        names = {path: name(path) for path in columns_compared(one)}
        return (*counted, *earlier_runs.earlier_measures(tx, contract.key, one.name, names))


def keep(given: Setup, report: Report, scope: str) -> Report:
    """Writes a run and what it means for the incident; gives the report with what all runs come to.

    A run of some clauses opens an incident for what it found broken, and resolves one only when nothing
    that it did not ask for is known to be broken.
    """
    now = given.world.now()
    product = key(report.contract, report.version)
    with given.store.write() as tx:
        made = check_runs.save_run(
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
            trials.save_trial(tx, made, report.verification.tally)
            report = replace(report, verification=replace(report.verification, ever=trials.all_trials(tx)))
        others = check_runs.unasked(tx, made, product, report.object, scope) if report.rules else None
        event = check_runs.verdict(product, report.object, scope, report.results, now, others)
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
    )
    schema = small.schema(request)
    return outline(request if schema else replace(request, spark=given.spark.labelled(what, what)), schema)


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
