"""One object's contract against its data: clauses, plan, measurement, judgement, report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dq.contracts.shared.outcome import AnsweredBy, CheckResult, Status
from dq.contracts.types import DataType
from dq.contracts.yaml.clause_name import namer
from dq.dataquality.answers.files import Shortcut, shortcut
from dq.dataquality.answers.levers import Lever
from dq.dataquality.answers.partition_cache.cache import recalled
from dq.dataquality.clauses.clause import Clause, RowScope
from dq.dataquality.clauses.kind import Shelf, answered, asked_by, metrics_of, second_of
from dq.dataquality.model.classification import classified
from dq.dataquality.model.metric import SCHEMA, Aggregate, Answers, Metric
from dq.dataquality.model.run_context import Occasion
from dq.dataquality.report import Report
from dq.dataquality.request import Chosen, Prepared, Request, prepare
from dq.dataquality.spark.failing_rows import samples
from dq.dataquality.spark.measure import COUNT, implied, measure, schema_of
from dq.dataquality.spark.partitions import only
from dq.dataquality.spark.plan import plan
from dq.dataquality.spark.readers.open import Dataset, gathered, in_one_task
from dq.dataquality.spark.schema import with_notes
from dq.dataquality.spark.session import time_limit
from dq.dataquality.verification import Hearing, heard, verification

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check(request: Request, given: Answers | None = None) -> Report:
    """Every clause that is asked for, tested on its data.

    `given` are answers on all rows that another reader has already. Raises UsageError for an unknown object,
    partition column or rule and a `now` without zone, and Unreadable when the data cannot be opened. What is
    wrong inside the data is in the report.
    """
    prepared = prepare(request)
    scoped = only(prepared.table, request.partitions) if request.partitions else prepared.table
    results: dict[str, CheckResult] = {}
    sources: dict[str, AnsweredBy] = {}
    passes = 0
    hearings: list[Hearing] = []
    counted: object = None
    for rows, frame in ((RowScope.PARTITION, scoped), (RowScope.TABLE, prepared.table)):
        clauses = [clause for clause in prepared.clauses if clause.extent.rows is rows]
        known_before = Shortcut(given, passes=int(bool(clauses))) if given else None
        told = known_before or _shortcut(clauses, prepared, request, rows)
        hearings.append(heard(told, frame, clauses, prepared.kinds, request))
        known = hearings[-1].known
        answers, ran = _measured(frame, clauses, prepared, known.answers, request.limit_seconds)
        if rows is RowScope.PARTITION or not request.partitions:
            counted = answers.get(COUNT) if counted is None else counted
        judged = {clause.path: answered(clause, answers, prepared.kinds) for clause in clauses}
        if request.samples:
            few = gathered(frame, answers.get(COUNT))
            judged = _sampled(few, clauses, judged, prepared, request.limit_seconds)
        results |= judged
        passes += ran + known.passes
        sources |= {clause.path: found_in(clause, known, prepared.kinds) for clause in clauses}
    results = with_notes(
        results, prepared.table, prepared.one, partial(by_schema, prepared.clauses, prepared.kinds)
    )
    errors = tuple(error for hearing in hearings for error in hearing.errors)
    report = report_of(
        request, prepared, prepared.clauses, prepared.occasion, results, sources, passes, errors,
        rows=counted if isinstance(counted, int) else None,
    )  # fmt: skip
    return replace(
        report,
        notes=tuple(dict.fromkeys(note for hearing in hearings for note in hearing.known.notes)),
        verification=verification(request.verify_statistics, hearings),
    )


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
    asked: Prepared | Chosen,
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


def _shortcut(clauses: Sequence[Clause], prepared: Prepared, request: Request, rows: RowScope) -> Shortcut:
    """What is known without a scan of the rows: by statistics, by kept answers, and by Python tasks."""
    data = request.data
    # The files below a table tell not all of one whose partitions lie elsewhere too.
    source = data if isinstance(data, Dataset) and not data.placed else None
    parts = (request.partitions or ()) if rows is RowScope.PARTITION else ()
    metrics, table = metrics_of(clauses, prepared.kinds), prepared.table
    memory, now, levers = request.memory, request.now, request.levers
    tasks_from, limit_seconds = request.tasks_from, request.limit_seconds
    if memory is None or now is None or parts or Lever.KEPT not in levers:
        return shortcut(metrics, table, source, parts, levers, tasks_from, limit_seconds)
    first, last = levers & {Lever.STATISTICS}, levers - {Lever.STATISTICS}
    told = shortcut(metrics, table, source, parts, first, tasks_from, limit_seconds)
    # What a window leaves of the rows is another question at each run.
    lasting = metrics_of([one for one in clauses if one.extent.window is None], prepared.kinds)
    rest = [one for one in lasting if one not in told.answers]
    # Rows that Spark keeps are not those of the files that answers are kept for.
    secret = classified(prepared.one)
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


def _measured(
    frame: DataFrame,
    clauses: Sequence[Clause],
    prepared: Prepared,
    known: Answers,
    limit_seconds: float | None,
) -> tuple[Answers, int]:
    """The answers to every question of these clauses, and the number of passes that they took.

    `known` are those that need no pass any more.
    """
    if not clauses:
        return {}, 0
    kinds, others, schema = prepared.kinds, prepared.others, schema_of(frame)
    asked = [one for one in metrics_of(clauses, kinds) if one not in known]
    # It costs nothing beside other counts, and tells whether the session's many tasks pay.
    more_than_one = any(not isinstance(one, Aggregate) for one in asked)
    counted = [COUNT] if more_than_one and any(isinstance(one, Aggregate) for one in asked) else []
    made = plan((one for one in [*asked, *counted] if one not in known), schema)
    small = in_one_task(frame) if made.passes else frame
    gather = gathered if small is frame else lambda frame, _rows: frame
    answers = measure(small, made, others, known, limit_seconds, gather)
    passes = sum(not implied(one, answers) for one in made.passes)
    second = plan(second_of(clauses, answers, kinds), schema)
    if second.passes or second.failures:
        few = gather(small, answers.get(COUNT))
        answers = {**answers, **measure(few, second, others, limit_seconds=limit_seconds)}
    return answers, passes + len(second.passes)


def _sampled(
    frame: DataFrame,
    clauses: Sequence[Clause],
    results: Mapping[str, CheckResult],
    prepared: Prepared,
    limit_seconds: float | None,
) -> dict[str, CheckResult]:
    """The results with samples where rows or keys break a failed clause, and fewer would keep it."""
    broken = broken_by_rows(clauses, results)
    if not broken:
        return dict(results)
    with time_limit(frame.sparkSession, limit_seconds):
        found = samples(frame, schema_of(frame), prepared.one, broken, prepared.others)
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
