"""The back-test of one object: what its rules would have said of each partition that is there.

All partitions are asked together, and one alone where that has no answer. Every verdict is that of a check of
the partition alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from dq.contracts.shared.errors import DqError, UsageError
from dq.contracts.shared.outcome import CheckResult, Status
from dq.contracts.types import DataType
from dq.contracts.yaml.clause_name import namer
from dq.dataquality.backtest.partitions import FoundPartition, partitions
from dq.dataquality.backtest.report import Backtest, RuleHistory, UnreadPartition, Untold
from dq.dataquality.backtest.together import ToldTogether, together
from dq.dataquality.clauses.clause import Clause, RowScope
from dq.dataquality.clauses.kind import Shelf, answered, asked_by, then_asked, unmeasured
from dq.dataquality.clauses.metric_rule import columns_compared
from dq.dataquality.clauses.preparation import in_scope
from dq.dataquality.model.metric import Answers, Failure
from dq.dataquality.model.run_context import Earlier, EarlierMeasure, Partition
from dq.dataquality.object_check import by_schema, check
from dq.dataquality.request import Chosen, Request, choose, occasion_of
from dq.dataquality.results.check_runs import COUNTED
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.spark.schema import with_notes

LAST = 90
_TABLE = "it speaks of the whole table, not of one partition; 'dq check --all' tests it"

Past = Sequence[Earlier | EarlierMeasure]


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The result of a rule in a partition, and whether all partitions were asked together for it."""

    result: CheckResult
    together: bool


Outcome = dict[str, RuleResult] | DqError
"""What one partition came to: the result of each rule by its path, or why it could not be tested."""

SideBySide = Callable[[Callable[[FoundPartition], Outcome], Sequence[FoundPartition]], Iterable[Outcome]]


def backtest(request: Request, last: int = LAST, side_by_side: SideBySide = map) -> Backtest:
    """What every rule that is asked for would have said of each of the last partitions.

    Takes what `check` takes; `partitions` must not be given, and `history` is not looked at: rules that
    compare with earlier runs compare with the partitions before. All partitions are asked together; where
    that tells nothing, one is checked alone, and `side_by_side` says how many of these at once. Rules about
    the whole table are not tested, and said so. Raises UsageError for a table without partitions, a number
    below 1, an unknown object or rule, and Unreadable where the partitions cannot be listed.
    """
    if last < 1:
        raise UsageError(f"the last {last} partitions are none.", "Give a number from 1.")
    if request.partitions:
        raise UsageError("a back-test finds its partitions by itself.", "Give last=… instead.")
    contract, chosen = request.contract, choose(request)
    one = chosen.one
    found = partitions(request.session(), request.data, [prop.column for prop in one.partition_keys()])
    last_ones = found[-last:]
    # Those that a check of a partition tests there: so is a key that holds the partition's column.
    newest = tuple(each.partition for each in last_ones[-1:])
    told = [one for one in chosen.clauses if in_scope(one, newest).extent.rows is RowScope.PARTITION]
    asked = replace(
        request, object=one.name, rules=tuple(clause.path for clause in told), samples=False, memory=None
    )
    tested = _Tested(asked, choose(asked), last_ones, len(found)) if told else None
    outcomes = _outcomes(tested, side_by_side) if tested else []
    name = namer(one)
    return Backtest(
        contract=contract.id,
        version=contract.version,
        object=one.name,
        partitions=tuple(each.partition for each in last_ones),
        present=len(found),
        rules=tuple(_history(name(clause.path), clause, last_ones, outcomes) for clause in told),
        untold=tuple(
            Untold(clause.check, clause.path, clause.property, clause.at, _TABLE)
            for clause in chosen.clauses
            if clause not in told
        ),
        unread=tuple(
            UnreadPartition(each.partition, f"{outcome.message} {outcome.mend}".strip())
            for each, outcome in zip(last_ones, outcomes, strict=False)
            if isinstance(outcome, DqError)
        ),
        at=request.now,
    )


@dataclass(frozen=True, slots=True)
class _Tested:
    """The partitions of a table that are tested, of so many, and by what."""

    request: Request
    chosen: Chosen
    partitions: Sequence[FoundPartition]
    present: int

    def of(self, one: FoundPartition, past: Past = ()) -> Request:
        """A check of this partition."""
        return replace(self.request, partitions=[dict(one.partition)], history=tuple(past))

    def clauses(self, one: FoundPartition, schema: DataType, past: Past = ()) -> tuple[Clause, ...]:
        """The clauses as a check of this partition has them."""
        asked = self.of(one, past)
        return self.chosen.on(asked, schema, occasion_of(asked))


def _outcomes(tested: _Tested, side_by_side: SideBySide) -> list[Outcome]:
    """What was told of all partitions together, and by a check of each alone what was not."""
    chosen = tested.chosen
    told = together(tested.request, chosen, tested.partitions, tested.clauses, tested.present)
    left = {
        one: tuple(
            clause.path
            for clause in chosen.clauses
            if one not in told or not _answers(clause, told[one].answers, chosen.kinds)
        )
        for one in tested.partitions
    }
    alone = [one for one in tested.partitions if left[one]]
    waits = {*columns_compared(chosen.one), *(one.path for one in chosen.clauses if one.check in COUNTED)}
    checked: dict[FoundPartition, Outcome] = {}
    if all(waits.isdisjoint(left[one]) for one in alone):
        found = side_by_side(lambda one: _alone(tested, one, left[one]), alone)
        checked = dict(zip(alone, found, strict=True))
    past: list[Earlier | EarlierMeasure] = []
    outcomes: list[Outcome] = []
    for one in tested.partitions:
        outcome = checked.get(one) or (_alone(tested, one, left[one], past) if left[one] else {})
        if not isinstance(outcome, DqError):
            judged = _judged(tested, one, told[one], set(left[one]), past) if one in told else {}
            outcome = judged | outcome
            results = (each.result for each in outcome.values())
            past += _measures(results, one.partition, tested.request.now or datetime.now(UTC))
        outcomes.append(outcome)
    return outcomes


def _answers(clause: Clause, answers: Answers, kinds: Shelf) -> bool:
    """Whether all that the clause asks is answered."""
    asked = asked_by(clause, kinds)
    return all(one in answers for one in asked) and all(
        one in answers for one in then_asked(clause, answers, kinds)
    )


def _judged(
    tested: _Tested, one: FoundPartition, told: ToldTogether, alone: Set[str], past: Past
) -> dict[str, RuleResult]:
    """The results of a partition's clauses by what was told of all partitions together."""
    kinds = tested.chosen.kinds
    clauses = tested.clauses(one, schema_of(told.table), past)
    judged = {each.path: answered(each, told.answers, kinds) for each in clauses if each.path not in alone}
    noted = with_notes(judged, told.table, tested.chosen.one, partial(by_schema, clauses, kinds))
    return {path: RuleResult(result, together=True) for path, result in noted.items()}


def _alone(tested: _Tested, one: FoundPartition, paths: Sequence[str], past: Past = ()) -> Outcome:
    try:
        report = check(replace(tested.of(one, past), rules=tuple(paths)))
    except DqError as error:
        return error
    return {result.clause: RuleResult(result, together=False) for result in report.results}


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
    name: str, clause: Clause, tested: Sequence[FoundPartition], outcomes: Sequence[Outcome]
) -> RuleHistory:
    results, together = [], 0
    for one, outcome in zip(tested, outcomes, strict=True):
        if isinstance(outcome, DqError):
            result = unmeasured(clause, Failure("the partition could not be tested"))
        elif clause.path in outcome:
            result = outcome[clause.path].result
            together += outcome[clause.path].together
        else:
            result = unmeasured(clause, Failure("the check has no result of it"))
        results.append((one.partition, result))
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
        together=together,
    )
