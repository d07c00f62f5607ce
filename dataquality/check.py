"""One object's contract against its data: questions, answers, verification, results; and the dry run."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from dq.contracts.model import namer
from dq.contracts.outcome import AnsweredBy, CheckResult, Severity, Status
from dq.contracts.types import DataType
from dq.dataquality.answers.memory import LeftToSpark, answers
from dq.dataquality.answers.sources import Lever, Shortcut, shortcut
from dq.dataquality.answers.statistics import File
from dq.dataquality.clauses.clause import Clause, RowScope
from dq.dataquality.clauses.coverage import Account, JsonObject, State
from dq.dataquality.clauses.kind import Shelf, answered, asked_by, metrics_of, result, second_of, subject
from dq.dataquality.clauses.metric_rule import measured_by
from dq.dataquality.model.column import classified
from dq.dataquality.model.metric import (
    SCHEMA,
    Aggregate,
    Answer,
    Answers,
    Disagreement,
    Failure,
    Kind,
    Metric,
    Proof,
    SuspectFile,
    Tally,
    Verification,
    merged,
    of_users,
)
from dq.dataquality.model.run_context import Occasion, Partition
from dq.dataquality.report import Report
from dq.dataquality.request import Chosen, OpenedData, Request, choose, occasion_of, others_of
from dq.dataquality.spark.dataset import Dataset, gathered, in_one_task
from dq.dataquality.spark.failing_rows import samples
from dq.dataquality.spark.measure import COUNT, Others, implied, measure, plan, schema_of
from dq.dataquality.spark.schema import with_notes
from dq.dataquality.spark.session import attempt, time_limit
from dq.dataquality.sql_predicate import question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dq.dataquality.answers.partition_cache import PartLedger


# Statistics and kept answers are verified: a share of them is counted from the rows, and one that is wrong
# costs all of them.

# The check of which a wrong answer is an error; no contract can ask for it.
CHECK = "statistics"
MOST_FILES = 20


@dataclass(frozen=True, slots=True)
class Verified:
    """What is known of some rows after the verification, its counts, and an error for each disagreement."""

    known: Shortcut
    proofs: int = 0
    scans: int = 0
    disagreements: tuple[Disagreement, ...] = ()
    errors: tuple[CheckResult, ...] = ()


def verify(
    known: Shortcut, frame: DataFrame, clauses: Sequence[Clause], kinds: Shelf, request: Request
) -> Verified:
    """Count a share of what is proven or kept about the rows of this frame, where a share is asked for."""
    if not request.verify_statistics:
        return Verified(known)
    seed = f"{request.contract.id} {request.object} {request.now}"
    recount = _Recount(frame, known, request.limit_seconds)
    recount.by_file(_sample(known.proven, frame, request.verify_statistics, seed))
    recount.of_all_rows(_sample(known.kept, frame, request.verify_statistics, seed))
    if any(wrong.kept for _, wrong in recount.wrong) and request.memory and isinstance(request.data, Dataset):
        request.memory.forget(str(request.data.path))
    wrong = _by_clause(recount.wrong, clauses, kinds)
    return Verified(
        recount.corrected(),
        len(known.proven) + len(known.kept),
        len(recount.answers),
        tuple(disagreement for disagreement, _ in wrong),
        tuple(_error(disagreement, clause) for disagreement, clause in wrong),
    )


def verification(share: float, parts: Sequence[Verified]) -> Verification | None:
    """The verifications of a run together; None where no share was asked for."""
    if not share:
        return None
    disagreements = tuple(disagreement for part in parts for disagreement in part.disagreements)
    proofs, scans = sum(part.proofs for part in parts), sum(part.scans for part in parts)
    return Verification(share, Tally(proofs, scans, len(disagreements)), disagreements)


def _sample(metrics: Iterable[Metric], frame: DataFrame, share: float, seed: str) -> list[Metric]:
    """This share of the metrics, by chance, and the same for the same seed; all of them for 1."""
    schema = schema_of(frame)

    def number(metric: Metric) -> float:
        text = question(metric, schema) if isinstance(metric, Aggregate) else repr(metric)
        digest = hashlib.sha256(f"{seed}\n{text}".encode()).digest()
        return int.from_bytes(digest[:7]) / 2**56

    return [metric for metric in sorted(metrics, key=repr) if number(metric) < share]


@dataclass(slots=True)
class _Recount:
    """Known answers, counted from the rows of a frame.

    `wrong` has the metrics whose rows give another answer, and how, still without the clauses that ask them.
    What could not be counted is in no answer.
    """

    frame: DataFrame
    known: Shortcut
    limit_seconds: float | None
    answers: dict[Metric, Answer] = field(default_factory=dict)
    wrong: list[tuple[Metric, Disagreement]] = field(default_factory=list)
    passes: int = 0

    def by_file(self, metrics: Sequence[Metric]) -> None:
        """Count what statistics proved.

        The rows are grouped by file, so that neither Spark nor a table's format can take an answer from the
        same statistics, and each file's answer stands next to its facts.
        """
        from pyspark.sql.functions import expr

        schema = schema_of(self.frame)
        for each in plan(metrics, schema).passes:
            asked = [metric for metric in each.metrics if isinstance(metric, Aggregate)]
            columns = [expr(question(metric, schema)).alias(f"_dq_{at}") for at, metric in enumerate(asked)]
            grouped = self.frame.groupBy(expr("input_file_name()").alias("_dq_file")).agg(*columns)
            with time_limit(self.frame.sparkSession, self.limit_seconds):
                rows = attempt(grouped.collect)
            if isinstance(rows, Failure):
                continue
            self.passes += 1
            for at, metric in enumerate(asked):
                by_file = {str(row[0]): row[at + 1] for row in rows}
                nothing: Answer = 0 if metric.name == "count" else None
                answer = reduce(partial(merged, metric), by_file.values(), nothing)
                self.answers[metric] = answer
                if not _same(answer, self.known.answers[metric]):
                    suspects = _suspects(metric, self.known, by_file)
                    self._disagree(metric, tuple(suspects[:MOST_FILES]), len(suspects))

    def of_all_rows(self, metrics: Sequence[Metric]) -> None:
        """Count what was answered with what earlier checks kept."""
        planned = plan(metrics, schema_of(self.frame))
        found = measure(self.frame, planned, limit_seconds=self.limit_seconds) if planned.passes else {}
        self.passes += len(planned.passes)
        for metric in metrics:
            answer = found.get(metric, Failure("it is not measured"))
            if not isinstance(answer, Failure):
                self.answers[metric] = answer
                if not _same(answer, self.known.answers[metric]):
                    self._disagree(metric, (), 0, kept=True)

    def _disagree(
        self, metric: Metric, files: tuple[SuspectFile, ...], suspects: int, *, kept: bool = False
    ) -> None:
        """Note a wrong answer; values of the data are not shown."""
        shown = str(self.known.answers[metric]), str(self.answers[metric])
        if isinstance(metric, Aggregate) and metric.name != "count":
            shown = f"a {metric.name}", "another one"
        self.wrong.append((metric, Disagreement((), *shown, files, suspects, kept=kept)))

    def corrected(self) -> Shortcut:
        """What is known now: after one wrong answer nothing proven or kept, but what the rows gave."""
        passes = self.known.passes + self.passes
        if not self.wrong:
            return replace(self.known, passes=passes)
        doubted = self.known.proven | self.known.kept
        others = {metric: answer for metric, answer in self.known.answers.items() if metric not in doubted}
        answers = {**others, **self.answers}
        return replace(self.known, answers=answers, proven=frozenset(), kept=frozenset(), passes=passes)


def _same(counted: Any, known: Any) -> bool:
    """Spark gives instants in the zone of this process, statistics in UTC."""
    return bool(
        (counted.astimezone(dt.UTC) if isinstance(counted, dt.datetime) else counted)
        == (known.astimezone(dt.UTC) if isinstance(known, dt.datetime) else known)
    )


def _suspects(metric: Aggregate, known: Shortcut, by_file: Mapping[str, Any]) -> list[SuspectFile]:
    """The files whose rows say something else than their statistics."""
    return [
        SuspectFile(path, ", ".join(name for name in file.writers if name) if file is not None else "")
        for path, file in _by_path(known.files, by_file).items()
        if _contradicts(metric, known.answers[metric], file, by_file.get(path))
    ]


def _contradicts(metric: Aggregate, proven: Any, file: File | None, found: Any) -> bool:
    """Whether a file's rows say something else than what its facts or the proof allow."""
    if metric.name != "count":
        beaten = found is not None and (
            proven is None or (found < proven if metric.name == "min" else found > proven)
        )
        return bool(beaten)
    counted = found or 0
    if metric.where is None:
        return file is None or counted != file.rows
    if metric.proof is Proof.NULLS and metric.proven_by is not None and file is not None:
        return bool(counted != file.of(metric.proven_by).nulls)
    return bool(counted)


def _by_path(files: Sequence[File], by_file: Mapping[str, Any]) -> dict[str, File | None]:
    """The files by the paths that Spark has for them; those that Spark saw no row of by their own."""
    listed = {_plain(file.path): file for file in files}
    named = {path: listed.get(_plain(path)) for path in by_file}
    seen = set(map(_plain, by_file))
    return named | {file.path: file for path, file in listed.items() if path not in seen}


def _plain(path: str) -> str:
    parts = urlsplit(path)
    return unquote(parts.path) if parts.scheme else unquote(path)


def _by_clause(
    wrong: Iterable[tuple[Metric, Disagreement]], clauses: Sequence[Clause], kinds: Shelf
) -> list[tuple[Disagreement, Clause]]:
    """Each wrong answer with the first clause that asks it; one for each clause."""
    found: dict[str, tuple[Disagreement, Clause]] = {}
    for metric, disagreement in wrong:
        asking = [clause for clause in clauses if metric in asked_by(clause, kinds)]
        clause = next((clause for clause in asking if clause.path not in found), None)
        if clause is not None:
            paths = (clause.path, *(other.path for other in asking if other is not clause))
            found[clause.path] = (replace(disagreement, clauses=paths), clause)
    return list(found.values())


def _error(one: Disagreement, clause: Clause) -> CheckResult:
    made = result(clause, Status.ERROR, one.found, f"{subject(clause)}: {one.said}")
    return replace(made, check=CHECK, severity=Severity.ERROR, allowed=one.proven)


# One object's contract against its data: clauses, plan, measurement, judgement, report.


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
        [error for scope in scopes for error in scope.verified.errors],
        rows=next((rows for rows in counted if isinstance(rows, int)), None),
    )
    return replace(
        report,
        notes=tuple(dict.fromkeys(note for scope in scopes for note in scope.known.notes)),
        verification=verification(request.verify_statistics, [scope.verified for scope in scopes]),
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
        self.verified = Verified(self.known)

    @property
    def frame(self) -> DataFrame:
        """The rows as Spark has them."""
        return self.data.rows(self.rows)

    def ask(self, metrics: Iterable[Metric]) -> Answers:
        """What is known when each source has answered what it can of the metrics; Spark answers the rest."""
        asked = list(metrics)
        for source in (_in_memory, _without_scan, _by_spark):
            if left := self.known.unanswered(asked):
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
    request, kinds, table = scope.request, scope.chosen.kinds, scope.data.table
    # The files below a table tell not all of one whose partitions lie elsewhere too.
    dataset = request.data if isinstance(request.data, Dataset) and not request.data.placed else None
    parts = (request.partitions or ()) if scope.rows is RowScope.PARTITION else ()
    recall = None
    if request.memory is not None and request.now is not None and not parts and Lever.KEPT in request.levers:
        recall = partial(_recalled, scope, dataset, request.memory, request.now)
    known = shortcut(metrics, table, dataset, parts, request.options, recall)
    scope.verified = verify(known, scope.frame, scope.clauses, kinds, request)
    return scope.verified.known


def _recalled(
    scope: _Scope, dataset: Dataset | None, memory: PartLedger, now: dt.datetime, metrics: Collection[Metric]
) -> Shortcut:
    """By what earlier checks kept of the table's folders."""
    from dq.dataquality.answers.partition_cache import recalled

    # What a window leaves of the rows is another question at each run.
    clauses = [clause for clause in scope.clauses if clause.extent.window is None]
    asked = set(metrics)
    lasting = [metric for metric in metrics_of(clauses, scope.chosen.kinds) if metric in asked]
    options, secret = scope.request.options, classified(scope.chosen.one)
    return recalled(lasting, scope.data.table, dataset, memory, now, options, secret)


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


# What a check would do: the passes over the data, what each answers, and what is not tested, and why.

# What a pass of this kind is, for a reader.
_SAID = {
    Kind.SCHEMA: "the columns and types, without reading",
    Kind.ROWS: "one scan that counts",
    Kind.INTERPRETED: "one scan that looks inside of arrays and maps",
    Kind.DISTINCT: "different keys",
    Kind.DUPLICATES: "repeated keys, a shuffle",
    Kind.SINGLE: "keys that stand once, a shuffle",
    Kind.RANKED: "one scan that sorts values",
    Kind.GROUPED: "groups of rows, a small shuffle",
    Kind.SQL: "a query of the contract",
    Kind.UNMATCHED: "keys looked up in another object, a join",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One pass: over which rows, of what kind, how many questions it answers, and for which clauses."""

    rows: RowScope
    kind: Kind
    questions: int
    clauses: tuple[str, ...]

    @property
    def says(self) -> str:
        """What the pass is, for a reader."""
        return _SAID.get(self.kind, str(self.kind))


@dataclass(frozen=True, slots=True)
class Outline:
    """What a check of one scope would do.

    `passes` are at most those that run: what statistics of the files prove is not scanned. `errors` are
    clauses, by path, whose result will be an error, with its reason. `untested` are those without a result.
    """

    contract: str
    version: str
    object: str
    partitions: tuple[Partition, ...]
    passes: tuple[Step, ...]
    errors: tuple[tuple[str, str], ...]
    untested: tuple[Account, ...]
    rules: tuple[str, ...] = ()

    def as_dict(self) -> JsonObject:
        """The outline as JSON values."""
        return {
            "contract": self.contract,
            "version": self.version,
            "object": self.object,
            "partitions": [dict(one) for one in self.partitions],
            "rules": list(self.rules),
            "passes": [
                {
                    "rows": one.rows.value,
                    "kind": one.kind.value,
                    "says": one.says,
                    "questions": one.questions,
                    "clauses": list(one.clauses),
                }
                for one in self.passes
            ],
            "errors": [{"clause": path, "reason": reason} for path, reason in self.errors],
            "untested": [account.as_dict() for account in self.untested],
        }


def outline(request: Request) -> Outline:
    """What `check` would do for this request; only the schema of the data is read.

    Raises what `check` raises.
    """
    chosen, occasion, data = choose(request), occasion_of(request), OpenedData(request)
    schema = data.schema
    if data.small is None:
        # Says now what is wrong with a partition, and not in the run.
        data.rows(RowScope.PARTITION)
    clauses = chosen.on(request, schema, occasion)
    passes: list[Step] = []
    errors = {clause.path: clause.refused for clause in clauses if clause.refused}
    for rows in RowScope:
        asking = _asking([clause for clause in clauses if clause.extent.rows is rows], chosen.kinds)
        made = plan(asking, schema)
        by_schema = tuple(dict.fromkeys(asking.get(SCHEMA, ())))
        if by_schema:
            passes.append(Step(rows, Kind.SCHEMA, 1, by_schema))
        for each in made.passes:
            paths = dict.fromkeys(path for metric in each.metrics for path in asking[metric])
            passes.append(Step(rows, each.kind, len(each.metrics), tuple(paths)))
        missing = dict(_unmet(made.failures, asking))
        passes += _sorting(one for one in clauses if one.extent.rows is rows and one.path not in missing)
        errors |= missing
    return Outline(
        contract=request.contract.id,
        version=request.contract.version,
        object=chosen.one.name,
        partitions=occasion.partitions,
        passes=tuple(passes),
        errors=tuple(errors.items()),
        untested=_untested(clauses, chosen.accounts),
        rules=tuple(request.rules),
    )


def _sorting(clauses: Iterable[Clause]) -> Iterator[Step]:
    """The passes of quantiles, which are asked when it is known how many values there are."""
    found: dict[tuple[bool, object], list[Clause]] = {}
    for clause in clauses:
        asked = measured_by(clause)
        if asked is not None and asked.terms.kind.name == "quantile":
            shared = (asked.by, clause.extent.where) if asked.by else None
            found.setdefault((bool(asked.by), shared), []).append(clause)
    for (grouped, _), sorting in found.items():
        kind = Kind.GROUPED if grouped else Kind.RANKED
        paths = tuple(clause.path for clause in sorting)
        yield Step(sorting[0].extent.rows, kind, 2 * len(sorting), paths)


def _asking(clauses: Sequence[Clause], kinds: Shelf) -> dict[Metric, list[str]]:
    """The clauses that ask for each metric, by path."""
    asking: dict[Metric, list[str]] = {}
    for clause in clauses:
        for metric in asked_by(clause, kinds):
            asking.setdefault(metric, []).append(clause.path)
    return asking


def _unmet(
    failures: Sequence[tuple[Metric, Failure]], asking: Mapping[Metric, Sequence[str]]
) -> Iterator[tuple[str, str]]:
    for metric, failure in failures:
        for path in asking[metric]:
            yield path, failure.message


def _untested(clauses: Sequence[Clause], accounts: Sequence[Account]) -> tuple[Account, ...]:
    refused = {clause.path for clause in clauses if clause.refused}
    return tuple(
        account for account in accounts if account.state is not State.ENFORCED and account.path not in refused
    )
