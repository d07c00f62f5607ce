"""The back-test of one object: what its rules would have said of each partition that is there.

Each partition is tested as a check of it alone would test it, so that every verdict is that check's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dq.contracts.model import SchemaObject
from dq.contracts.shared.errors import DqError, Unreadable, UsageError
from dq.contracts.shared.outcome import CheckResult, Status
from dq.contracts.yaml.clause_name import namer
from dq.dataquality.backtest.partitions import FoundPartition, partitions
from dq.dataquality.backtest.report import Backtest, RuleHistory, UnreadPartition, Untold
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import Clause, RowScope
from dq.dataquality.clauses.judge import unmeasured
from dq.dataquality.clauses.measured.rule import compared
from dq.dataquality.clauses.preparation import select
from dq.dataquality.model.metric import Failure
from dq.dataquality.model.run_context import Earlier, EarlierMeasure, Partition
from dq.dataquality.object_check import check
from dq.dataquality.request import Request, pick, prepare
from dq.dataquality.results.earlier_runs import COUNTED
from dq.dataquality.spark.readers.dataset import Dataset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAST = 90
_TABLE = "it speaks of the whole table, not of one partition; 'dq check --all' tests it"

Outcome = dict[str, CheckResult] | DqError
"""What one partition came to: the result of each rule by its path, or why it could not be tested."""

SideBySide = Callable[[Callable[[FoundPartition], Outcome], Sequence[FoundPartition]], Iterable[Outcome]]


def backtest(request: Request, last: int = LAST, side_by_side: SideBySide = map) -> Backtest:
    """What every rule that is asked for would have said of each of the last partitions.

    Takes what `check` takes; `partitions` must not be given, and `history` is not looked at: rules that
    compare with earlier runs compare with the partitions before. They are tested one after another; without
    such a rule `side_by_side` says how many at once. Rules about the whole table are not tested, and said
    so. Raises UsageError for a table without partitions, a number below 1, an unknown object or rule, and
    Unreadable where the partitions cannot be listed.
    """
    if last < 1:
        raise UsageError(f"the last {last} partitions are none.", "Give a number from 1.")
    if request.partitions:
        raise UsageError("a back-test finds its partitions by itself.", "Give last=… instead.")
    contract, one = request.contract, pick(request.contract, request.object)
    found = partitions(_session(request), request.data, [prop.column for prop in one.partition_keys()])
    chosen = found[-last:]
    selected = _selected(request, one, chosen)
    told = [clause for clause in selected if clause.extent.rows is RowScope.PARTITION]
    asked = replace(request, object=one.name, rules=tuple(clause.path for clause in told))
    outcomes = _outcomes(asked, told, chosen, side_by_side) if told else []
    tested, name = [one.partition for one in chosen], namer(one)
    return Backtest(
        contract=contract.id,
        version=contract.version,
        object=one.name,
        partitions=tuple(tested),
        present=len(found),
        rules=tuple(_history(name(clause.path), clause, tested, outcomes) for clause in told),
        untold=tuple(
            Untold(clause.check, clause.path, clause.property, clause.at, _TABLE)
            for clause in selected
            if clause not in told
        ),
        unread=tuple(
            UnreadPartition(partition, f"{outcome.message} {outcome.mend}".strip())
            for partition, outcome in zip(tested, outcomes, strict=False)
            if isinstance(outcome, DqError)
        ),
        at=request.now,
    )


def _session(request: Request) -> SparkSession:
    if not isinstance(request.data, Dataset):
        return request.data.sparkSession
    if request.spark is None:
        raise UsageError("a place can only be read with a session.", "Give spark=….")
    return request.spark


def _selected(request: Request, one: SchemaObject, chosen: Sequence[FoundPartition]) -> Sequence[Clause]:
    """The clauses that are asked for, as a check of a partition has them: a key that holds the partition's
    column speaks of the partition."""
    for newest in reversed(chosen):
        # Where a partition cannot be opened, another one tells the same.
        with suppress(Unreadable):
            return prepare(replace(request, object=one.name, partitions=[dict(newest.partition)])).clauses
    kinds = built_in() if request.kinds is None else request.kinds
    return select(request.contract, one, kinds, request.rules, neighbours=request.neighbours).clauses


def _outcomes(
    request: Request, clauses: Sequence[Clause], chosen: Sequence[FoundPartition], side_by_side: SideBySide
) -> list[Outcome]:
    if not compared(pick(request.contract, request.object)) and all(
        one.check not in COUNTED for one in clauses
    ):
        return list(side_by_side(lambda one: _tested(request, one.partition, ()), chosen))
    past: list[Earlier | EarlierMeasure] = []
    outcomes = []
    for one in chosen:
        outcome = _tested(request, one.partition, past)
        outcomes.append(outcome)
        if not isinstance(outcome, DqError):
            past += _measures(outcome.values(), one.partition, request.now or datetime.now(UTC))
    return outcomes


def _tested(request: Request, partition: Partition, past: Sequence[Earlier | EarlierMeasure]) -> Outcome:
    try:
        report = check(replace(request, partitions=[dict(partition)], history=tuple(past)))
    except DqError as error:
        return error
    return {result.clause: result for result in report.results}


def _measures(
    results: Iterable[CheckResult], partition: Partition, now: datetime
) -> Iterable[Earlier | EarlierMeasure]:
    """What the rules of later partitions compare with, as the store would keep it of a run of this one."""
    for one in results:
        if one.check in COUNTED and one.value is not None:
            yield Earlier(one.check, one.clause, now, int(one.value), partition)
        if not one.of:
            continue
        groups = tuple((each.key, each.value) for each in one.groups if each.value is not None)
        if one.by or one.value is not None:
            number = None if one.by else one.value
            yield EarlierMeasure(one.check, one.clause, one.of, now, number, groups, partition)


def _history(
    name: str, clause: Clause, tested: Sequence[Partition], outcomes: Sequence[Outcome]
) -> RuleHistory:
    results = []
    for partition, outcome in zip(tested, outcomes, strict=True):
        if isinstance(outcome, DqError):
            result = unmeasured(clause, Failure("the partition could not be tested"))
        else:
            result = outcome.get(clause.path) or unmeasured(clause, Failure("the check has no result of it"))
        results.append((partition, result))
    allowed = next(
        (result.allowed for _, result in results if result.status is not Status.ERROR), clause.allowed
    )
    return RuleHistory(
        check=clause.check,
        clause=clause.path,
        name=name,
        property=clause.property,
        severity=clause.severity,
        allowed=allowed,
        at=clause.at,
        results=tuple(results),
    )
