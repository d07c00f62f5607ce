"""One object's contract against its data: clauses, plan, measurement, judgement, report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dq.contracts.shared.outcome import AnsweredBy, CheckResult, Status
from dq.contracts.types import DataType
from dq.contracts.yaml.clause_name import namer
from dq.dataquality.answers.memory import LeftToSpark, answers
from dq.dataquality.answers.partition_cache.cache import recalled
from dq.dataquality.answers.sources import Lever, Shortcut, shortcut
from dq.dataquality.clauses.clause import Clause, RowScope
from dq.dataquality.clauses.kind import Shelf, answered, asked_by, metrics_of, second_of
from dq.dataquality.model.column import classified
from dq.dataquality.model.metric import SCHEMA, Aggregate, Answers, Metric, of_users
from dq.dataquality.model.run_context import Occasion
from dq.dataquality.report import Report
from dq.dataquality.request import Chosen, OpenedData, Request, choose, occasion_of, others_of
from dq.dataquality.spark.failing_rows import samples
from dq.dataquality.spark.measure import COUNT, Others, implied, measure, schema_of
from dq.dataquality.spark.plan import plan
from dq.dataquality.spark.readers.open import Dataset, gathered, in_one_task
from dq.dataquality.spark.schema import with_notes
from dq.dataquality.spark.session import time_limit
from dq.dataquality.verification import Hearing, heard, verification

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check(request: Request) -> Report:
    """Every clause that is asked for, tested on its data.

    Raises UsageError for an unknown object, partition column or rule and a `now` without zone, and Unreadable
    when the data cannot be opened. What is wrong inside the data is in the report.
    """
    try:
        return _check(request, OpenedData(request))
    except LeftToSpark:
        return _check(request, OpenedData(request, in_memory=False))


def _check(request: Request, data: OpenedData) -> Report:
    """Choose clauses, ask what they need, let each source answer what it can, evaluate, show broken rows."""
    chosen, occasion = choose(request), occasion_of(request)
    clauses, kinds = chosen.on(request, data.schema, occasion), chosen.kinds
    others = others_of(request, chosen.one, lambda: data.table)
    results: dict[str, CheckResult] = {}
    scopes = [
        _Scope(request, chosen, data, rows, [one for one in clauses if one.extent.rows is rows], others)
        for rows in (RowScope.PARTITION, RowScope.TABLE)
    ]
    for scope in scopes:
        found = evaluate(scope.clauses, kinds, scope.ask)
        results |= _sampled(scope, found) if request.samples else found
    if data.small is None:
        # Files that are small have the same columns, or are Spark's.
        by_columns = partial(by_schema, clauses, kinds)
        results = with_notes(results, data.table, chosen.one, by_columns)
    sources = {
        clause.path: found_in(clause, scope.known, kinds) for scope in scopes for clause in scope.clauses
    }
    counted = [scope.known.answers.get(COUNT) for scope in scopes[: 1 if request.partitions else 2]]
    report = report_of(
        request,
        chosen,
        clauses,
        occasion,
        results,
        sources,
        sum(scope.known.passes for scope in scopes),
        [error for scope in scopes for error in scope.hearing.errors],
        rows=next((rows for rows in counted if isinstance(rows, int)), None),
    )
    return replace(
        report,
        notes=tuple(dict.fromkeys(note for scope in scopes for note in scope.known.notes)),
        verification=verification(request.verify_statistics, [scope.hearing for scope in scopes]),
    )


class _Scope:
    """The rows that some clauses speak of, and what is known of them."""

    def __init__(
        self,
        request: Request,
        chosen: Chosen,
        data: OpenedData,
        rows: RowScope,
        clauses: Sequence[Clause],
        others: Others,
    ) -> None:
        self.request, self.chosen, self.data, self.rows = request, chosen, data, rows
        self.clauses, self.others = clauses, others
        self.known = Shortcut()
        self.hearing = Hearing(self.known)

    @property
    def frame(self) -> DataFrame:
        """The rows as Spark has them."""
        return self.data.rows(self.rows)

    def ask(self, metrics: Iterable[Metric]) -> Answers:
        """What is known when each source has answered what it can of the metrics; Spark answers the rest."""
        asked = list(metrics)
        for source in (_in_memory, _without_scan, _by_spark):
            left = [metric for metric in asked if metric not in self.known.answers]
            if left:
                self.known = source(left, self)
        return self.known.answers


AnswerSource = Callable[[Sequence[Metric], _Scope], Shortcut]
"""From metrics and rows to what is known of these rows, with the answers to what it can tell."""


# The check whose patterns are dq's own, and take no longer the longer a text is.
_OWN_PATTERNS = "format"


def _in_memory(metrics: Sequence[Metric], scope: _Scope) -> Shortcut:
    """Of a small table in this process: all but what takes as long as the contract's author likes."""
    small, kinds = scope.data.small_rows(scope.rows), scope.chosen.kinds
    if small is None:
        return scope.known
    theirs = metrics_of((one for one in scope.clauses if one.check != _OWN_PATTERNS), kinds)
    told = answers([one for one in metrics if one not in theirs or not of_users(one)], small)
    passes = int(any(one is not SCHEMA for one in metrics)) if not scope.known.answers else 0
    return replace(scope.known, answers={**scope.known.answers, **told}, passes=scope.known.passes + passes)


def _without_scan(metrics: Sequence[Metric], scope: _Scope) -> Shortcut:
    """By statistics, kept answers and Python tasks; asked once, and of what no small table tells."""
    if scope.known.answers:
        return scope.known
    request, kinds = scope.request, scope.chosen.kinds
    scope.hearing = heard(_shortcut(metrics, scope), scope.frame, scope.clauses, kinds, request)
    return scope.hearing.known


def _by_spark(metrics: Sequence[Metric], scope: _Scope) -> Shortcut:
    """By passes over the rows; with a failure for what has no answer."""
    known, frame, limit_seconds = scope.known, scope.frame, scope.request.limit_seconds
    # It costs nothing beside other counts, and tells whether the session's many tasks pay.
    more_than_one = any(not isinstance(one, Aggregate) for one in metrics) and SCHEMA not in known.answers
    counted = [COUNT] if more_than_one and any(isinstance(one, Aggregate) for one in metrics) else []
    made = plan((one for one in [*metrics, *counted] if one not in known.answers), schema_of(frame))
    small = in_one_task(frame) if made.passes else frame
    gather = gathered if small is frame else lambda frame, _rows: frame
    told = measure(small, made, scope.others, known.answers, limit_seconds, gather)
    passes = sum(not implied(one, told) for one in made.passes)
    return replace(known, answers=told, passes=known.passes + passes)


def evaluate(
    clauses: Sequence[Clause], kinds: Shelf, ask: Callable[[Iterable[Metric]], Answers]
) -> dict[str, CheckResult]:
    """The result of each clause, by its path, from the answers to all that the clauses ask.

    `ask` is called again with what the first answers call for, where they call for more.
    """
    answers = dict(ask(metrics_of(clauses, kinds)))
    if more := second_of(clauses, answers, kinds):
        answers |= ask(more)
    return {clause.path: answered(clause, answers, kinds) for clause in clauses}


def report_of(
    request: Request,
    asked: Chosen,
    clauses: Sequence[Clause],
    occasion: Occasion,
    results: Mapping[str, CheckResult],
    sources: Mapping[str, AnsweredBy],
    passes: int,
    errors: Sequence[CheckResult] = (),
    *,
    rows: int | None,
) -> Report:
    """What the results of these clauses come to; `sources` are where their answers were found. Both are by
    the clauses' paths. `errors` stand after them."""
    name = namer(asked.one)
    given = (*(results[clause.path] for clause in clauses), *errors)
    return Report(
        contract=request.contract.id,
        version=request.contract.version,
        object=asked.one.name,
        partitions=occasion.partitions,
        results=tuple(
            replace(one, name=name(one.clause), answered_by=_answered_by(one, sources)) for one in given
        ),
        accounts=asked.accounts,
        passes=passes,
        proven=sum(one is AnsweredBy.STATISTICS for one in sources.values()),
        kept=sum(one is AnsweredBy.KEPT for one in sources.values()),
        at=request.now,
        rules=tuple(request.rules),
        rows=rows,
    )


def _shortcut(metrics: Sequence[Metric], scope: _Scope) -> Shortcut:
    """What is known without a scan of the rows: by statistics, by kept answers, and by Python tasks."""
    request, rows, table = scope.request, scope.rows, scope.data.table
    data, kinds = request.data, scope.chosen.kinds
    # The files below a table tell not all of one whose partitions lie elsewhere too.
    source = data if isinstance(data, Dataset) and not data.placed else None
    parts = (request.partitions or ()) if rows is RowScope.PARTITION else ()
    memory, now, levers = request.memory, request.now, request.levers
    tasks_from, limit_seconds = request.tasks_from, request.limit_seconds
    if memory is None or now is None or parts or Lever.KEPT not in levers:
        return shortcut(metrics, table, source, parts, levers, tasks_from, limit_seconds)
    first, last = levers & {Lever.STATISTICS}, levers - {Lever.STATISTICS}
    told = shortcut(metrics, table, source, parts, first, tasks_from, limit_seconds)
    # What a window leaves of the rows is another question at each run.
    lasting = metrics_of([one for one in scope.clauses if one.extent.window is None], kinds)
    rest = [one for one in lasting if one not in told.answers]
    # Rows that Spark keeps are not those of the files that answers are kept for.
    secret = classified(scope.chosen.one)
    kept = recalled(rest, table, source, memory, now, levers, tasks_from, limit_seconds, secret)
    known = {**told.answers, **kept.answers}
    rest = [one for one in metrics if one not in known]
    more = shortcut(rest, table, source, parts, last, tasks_from, limit_seconds) if rest else Shortcut()
    passes = told.passes + kept.passes + more.passes
    notes = tuple(dict.fromkeys((*told.notes, *more.notes)))
    return Shortcut({**known, **more.answers}, told.proven, passes, told.files, notes, kept.kept)


def by_schema(clauses: Iterable[Clause], kinds: Shelf, schema: DataType) -> dict[str, CheckResult]:
    """The results, for a schema, of the clauses that ask for nothing else."""
    # Clauses have no hash: arguments of their rules may be lists and mappings.
    return {
        clause.path: answered(clause, {SCHEMA: schema}, kinds)
        for clause in clauses
        if tuple(asked_by(clause, kinds)) == (SCHEMA,)
    }


def found_in(clause: Clause, known: Shortcut, kinds: Shelf) -> AnsweredBy:
    """Where the answer to a clause is found, by what is known before the rows are read."""
    asked = asked_by(clause, kinds)
    if asked == (SCHEMA,):
        return AnsweredBy.SCHEMA
    if asked and known.proven.issuperset(asked):
        return AnsweredBy.STATISTICS
    return AnsweredBy.KEPT if asked and (known.proven | known.kept).issuperset(asked) else AnsweredBy.SCAN


def _answered_by(result: CheckResult, found: Mapping[str, AnsweredBy]) -> AnsweredBy | None:
    return None if result.status is Status.ERROR else found.get(result.clause)


def _sampled(scope: _Scope, results: Mapping[str, CheckResult]) -> dict[str, CheckResult]:
    """The results with samples where rows or keys break a failed clause, and fewer would keep it."""
    broken = broken_by_rows(scope.clauses, results)
    if not broken:
        return dict(results)
    frame = gathered(scope.frame, scope.known.answers.get(COUNT))
    with time_limit(frame.sparkSession, scope.request.limit_seconds):
        found = samples(frame, schema_of(frame), scope.chosen.one, broken, scope.others)
    return {path: replace(each, samples=found.get(path, ())) for path, each in results.items()}


def broken_by_rows(clauses: Iterable[Clause], results: Mapping[str, CheckResult]) -> list[Clause]:
    """The failed clauses of which rows or keys can be shown, because fewer of these would keep them."""
    return [
        clause
        for clause in clauses
        if results[clause.path].status is Status.FAIL
        and (number := results[clause.path].value)
        and clause.of_rows
        and clause.too_many(number)
    ]
