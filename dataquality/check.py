"""Check of one object: metrics, answers, verification of statistics, results; and the dry run."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from dq.contracts.agreement import Agreement, OtherSide
from dq.contracts.check_result import AnsweredBy, CheckResult, Status
from dq.contracts.model import SchemaObject, clause_namer
from dq.contracts.outcome import DqError, MissingTool, Severity, join_limited
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.answers.iceberg_statistics import files as iceberg_files
from dq.dataquality.answers.memory import (
    RequiresSpark,
    SmallTable,
    answers,
    leave_errors_to_spark,
    small_samples,
)
from dq.dataquality.answers.sources import KnownAnswers, Optimization, answer_without_scan
from dq.dataquality.answers.statistics import FileStatistics, Partitions, StatisticsRequest, try_spark
from dq.dataquality.answers.table_age import oldest_instant
from dq.dataquality.clauses.clause import Clause, RowScope
from dq.dataquality.clauses.coverage import ClauseCoverage, EnforcementState, JsonObject
from dq.dataquality.clauses.foreign_key import ExternalReference
from dq.dataquality.clauses.kind import (
    CheckKinds,
    evaluate_clause,
    follow_up_metrics_for_all,
    metrics_for,
    metrics_for_all,
    result,
    subject,
)
from dq.dataquality.clauses.metric_rule import metric_request_of
from dq.dataquality.model.column import MASK, classified, reason_not_shown, struct_field
from dq.dataquality.model.metric import (
    FILE_BYTES,
    SCHEMA,
    Aggregate,
    Answer,
    Answers,
    ComparedRows,
    ComparedSums,
    Disagreement,
    Failure,
    FileBytes,
    Group,
    GroupPairs,
    Metric,
    MetricExecution,
    OldestInstant,
    Proof,
    RowDifferences,
    SumPairs,
    SuspectFile,
    Tally,
    Verification,
    is_user_defined,
    merge_answers,
)
from dq.dataquality.model.run_context import Partition, RunContext
from dq.dataquality.reconcile.columns import Terms
from dq.dataquality.reconcile.compare import Options, Side, partition_columns, reconcile
from dq.dataquality.reconcile.outcome import Kind
from dq.dataquality.reconcile.sums import compare_sums
from dq.dataquality.report import Report
from dq.dataquality.request import (
    CheckSelection,
    OpenedData,
    Request,
    context_for,
    is_in_utc,
    object_opener,
    select_clauses,
)
from dq.dataquality.spark.columnar_files import only_partitions
from dq.dataquality.spark.dataset import Dataset, coalesce_small, file_bytes, note_on_files, repartition_small
from dq.dataquality.spark.failing_rows import Samples, samples
from dq.dataquality.spark.measure import (
    COUNT,
    OpenObject,
    group_name,
    is_implied,
    measure,
    plan,
    schema_of,
)
from dq.dataquality.spark.schema import with_notes
from dq.dataquality.spark.session import attempt, attempt_without_values, time_limit
from dq.dataquality.sql_predicate import predicate_sql, question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dq.contracts.sql.guard import ValidatedSql
    from dq.dataquality.answers.partition_cache import PartitionCache


# Verification of statistics and cached answers: a share of them is recounted from the rows, and one mismatch
# discards all of them.

# Check id of the errors for mismatches; contracts cannot use it.
CHECK = "statistics"
MAX_SUSPECT_FILES = 20


@dataclass(frozen=True, slots=True)
class StatisticsVerification:
    """Answers that remain after verification, its counts, and one error result per disagreement."""

    known_answers: KnownAnswers
    proofs: int = 0
    scans: int = 0
    disagreements: tuple[Disagreement, ...] = ()
    errors: tuple[CheckResult, ...] = ()


def verify(
    known_answers: KnownAnswers,
    frame: DataFrame,
    clauses: Sequence[Clause],
    kinds: CheckKinds,
    request: Request,
) -> StatisticsVerification:
    """Recount a share of the answers from statistics and cache on the rows of `frame`, if requested."""
    if not request.verify_statistics:
        return StatisticsVerification(known_answers)
    seed = f"{request.contract.id} {request.object} {request.now}"
    recount = _Recount(frame, known_answers, request.limit_seconds)
    recount.recount_by_file(_sample(known_answers.proven, frame, request.verify_statistics, seed))
    recount.recount_all_rows(_sample(known_answers.from_cache, frame, request.verify_statistics, seed))
    if (
        any(disagreement.from_cache for _, disagreement in recount.disagreements)
        and request.memory
        and isinstance(request.data, Dataset)
    ):
        request.memory.forget(str(request.data.path))
    clause_disagreements = _disagreements_by_clause(recount.disagreements, clauses, kinds)
    return StatisticsVerification(
        recount.corrected(),
        len(known_answers.proven) + len(known_answers.from_cache),
        len(recount.answers),
        tuple(disagreement for disagreement, _ in clause_disagreements),
        tuple(_error_result(disagreement, clause) for disagreement, clause in clause_disagreements),
    )


def verification(share: float, parts: Sequence[StatisticsVerification]) -> Verification | None:
    """Return the totals of all verifications of a run, or None if verification was not requested."""
    if not share:
        return None
    disagreements = tuple(disagreement for part in parts for disagreement in part.disagreements)
    proofs, scans = sum(part.proofs for part in parts), sum(part.scans for part in parts)
    return Verification(share, Tally(proofs, scans, len(disagreements)), disagreements)


def _sample(metrics: Iterable[Metric], frame: DataFrame, share: float, seed: str) -> list[Metric]:
    """Return a random share of the metrics, the same for the same seed; all of them if `share` is 1."""
    schema = schema_of(frame)

    def number(metric: Metric) -> float:
        text = question(metric, schema) if isinstance(metric, Aggregate) else repr(metric)
        digest = hashlib.sha256(f"{seed}\n{text}".encode()).digest()
        return int.from_bytes(digest[:7]) / 2**56

    return [metric for metric in sorted(metrics, key=repr) if number(metric) < share]


@dataclass(slots=True)
class _Recount:
    """Recounts known answers from the rows of a frame.

    `disagreements` holds the metrics whose recount differs, not yet assigned to clauses. Metrics that could
    not be recounted are missing from `answers`.
    """

    frame: DataFrame
    known_answers: KnownAnswers
    limit_seconds: float | None
    answers: dict[Metric, Answer] = field(default_factory=dict)
    disagreements: list[tuple[Metric, Disagreement]] = field(default_factory=list)
    passes: int = 0

    def recount_by_file(self, metrics: Sequence[Metric]) -> None:
        """Recount answers from statistics.

        The rows are grouped by file, so that neither Spark nor the table format can answer from the same
        statistics, and each file's count can be compared with its own statistics.
        """
        from pyspark.sql.functions import expr

        schema = schema_of(self.frame)
        for spark_pass in plan(metrics, schema).passes:
            aggregates = [metric for metric in spark_pass.metrics if isinstance(metric, Aggregate)]
            columns = [
                expr(question(metric, schema)).alias(f"_dq_{index}")
                for index, metric in enumerate(aggregates)
            ]
            grouped = self.frame.groupBy(expr("input_file_name()").alias("_dq_file")).agg(*columns)
            with time_limit(self.frame.sparkSession, self.limit_seconds):
                rows = attempt(grouped.collect)
            if isinstance(rows, Failure):
                continue
            self.passes += 1
            for index, metric in enumerate(aggregates):
                answers_by_file = {str(row[0]): row[index + 1] for row in rows}
                empty_answer: Answer = 0 if metric.name == "count" else None
                answer = reduce(partial(merge_answers, metric), answers_by_file.values(), empty_answer)
                self.answers[metric] = answer
                if not _is_same_answer(answer, self.known_answers.answers[metric]):
                    suspects = _suspect_files(metric, self.known_answers, answers_by_file)
                    self._disagree(metric, tuple(suspects[:MAX_SUSPECT_FILES]), len(suspects))

    def recount_all_rows(self, metrics: Sequence[Metric]) -> None:
        """Recount answers from the partition cache."""
        planned = plan(metrics, schema_of(self.frame))
        answers = measure(self.frame, planned, limit_seconds=self.limit_seconds) if planned.passes else {}
        self.passes += len(planned.passes)
        for metric in metrics:
            answer = answers.get(metric, Failure("it was not measured"))
            if not isinstance(answer, Failure):
                self.answers[metric] = answer
                if not _is_same_answer(answer, self.known_answers.answers[metric]):
                    self._disagree(metric, (), 0, from_cache=True)

    def _disagree(
        self, metric: Metric, files: tuple[SuspectFile, ...], suspects: int, *, from_cache: bool = False
    ) -> None:
        """Record a disagreement, without values of the data."""
        values = str(self.known_answers.answers[metric]), str(self.answers[metric])
        if isinstance(metric, Aggregate) and metric.name != "count":
            values = f"a {metric.name}", "a different one"
        self.disagreements.append((metric, Disagreement((), *values, files, suspects, from_cache=from_cache)))

    def corrected(self) -> KnownAnswers:
        """Return the answers to use. After one mismatch, those from statistics and cache are not trusted.

        Recounts replace them; those without a recount are left out.
        """
        passes = self.known_answers.passes + self.passes
        if not self.disagreements:
            return replace(self.known_answers, passes=passes)
        distrusted = self.known_answers.proven | self.known_answers.from_cache
        trusted_answers = {
            metric: answer
            for metric, answer in self.known_answers.answers.items()
            if metric not in distrusted
        }
        answers = {**trusted_answers, **self.answers}
        return replace(
            self.known_answers, answers=answers, proven=frozenset(), from_cache=frozenset(), passes=passes
        )


def _is_same_answer(row_answer: Any, known_answer: Any) -> bool:
    """Return True if both answers are equal. Spark returns instants in the zone of this process, statistics
    in UTC.
    """
    return bool(
        (row_answer.astimezone(dt.UTC) if isinstance(row_answer, dt.datetime) else row_answer)
        == (known_answer.astimezone(dt.UTC) if isinstance(known_answer, dt.datetime) else known_answer)
    )


def _suspect_files(
    metric: Aggregate, known_answers: KnownAnswers, answers_by_file: Mapping[str, Any]
) -> list[SuspectFile]:
    """Return the files whose rows contradict their statistics."""
    return [
        SuspectFile(path, ", ".join(name for name in file.writers if name) if file is not None else "")
        for path, file in _files_by_spark_path(known_answers.files, answers_by_file).items()
        if _contradicts(metric, known_answers.answers[metric], file, answers_by_file.get(path))
    ]


def _contradicts(metric: Aggregate, proven: Any, file: FileStatistics | None, row_answer: Any) -> bool:
    """Return True if a file's rows contradict its statistics or the answer derived from them."""
    if metric.name != "count":
        is_exceeded = row_answer is not None and (
            proven is None or (row_answer < proven if metric.name == "min" else row_answer > proven)
        )
        return bool(is_exceeded)
    row_count = row_answer or 0
    if metric.where is None:
        return file is None or row_count != file.rows
    if metric.proof is Proof.NULLS and metric.proven_by is not None and file is not None:
        return bool(row_count != file.statistics_of(metric.proven_by).nulls)
    return bool(row_count)


def _files_by_spark_path(
    files: Sequence[FileStatistics], answers_by_file: Mapping[str, Any]
) -> dict[str, FileStatistics | None]:
    """Return the files by Spark's paths; files without rows in Spark's result by their own path."""
    files_by_plain_path = {_plain_path(file.path): file for file in files}
    files_by_spark_path = {path: files_by_plain_path.get(_plain_path(path)) for path in answers_by_file}
    spark_paths = set(map(_plain_path, answers_by_file))
    return files_by_spark_path | {
        file.path: file for path, file in files_by_plain_path.items() if path not in spark_paths
    }


def _plain_path(path: str) -> str:
    parts = urlsplit(path)
    return unquote(parts.path) if parts.scheme else unquote(path)


def _disagreements_by_clause(
    disagreements: Iterable[tuple[Metric, Disagreement]], clauses: Sequence[Clause], kinds: CheckKinds
) -> list[tuple[Disagreement, Clause]]:
    """Assign each disagreement to the first clause that uses its metric; at most one per clause."""
    first_by_path: dict[str, tuple[Disagreement, Clause]] = {}
    for metric, disagreement in disagreements:
        affected_clauses = [clause for clause in clauses if metric in metrics_for(clause, kinds)]
        clause = next((clause for clause in affected_clauses if clause.path not in first_by_path), None)
        if clause is not None:
            paths = (clause.path, *(other.path for other in affected_clauses if other is not clause))
            first_by_path[clause.path] = (replace(disagreement, clauses=paths), clause)
    return list(first_by_path.values())


def _error_result(disagreement: Disagreement, clause: Clause) -> CheckResult:
    error_result = result(
        clause, Status.ERROR, disagreement.recounted, f"{subject(clause)}: {disagreement.message}"
    )
    return replace(error_result, check=CHECK, severity=Severity.ERROR, allowed=disagreement.proven)


# Check of one object: clauses, plan, measurement, evaluation, report.


def check(request: Request) -> Report:
    """Evaluate the requested clauses against their data.

    Problems inside the data are in the report.

    Raises:
        UsageError: Unknown object, partition column or rule, or a `now` without time zone.
        ReadError: The data cannot be opened.
    """
    try:
        return _check(request, OpenedData(request))
    except RequiresSpark:
        return _check(request, OpenedData(request, in_memory=False))


def _check(request: Request, data: OpenedData) -> Report:
    """Select clauses, answer their metrics from each source in turn, evaluate, and sample failing rows."""
    selection, context = select_clauses(request), context_for(request)
    clauses, kinds = selection.bind(request, data.schema, context), selection.kinds
    open_object = object_opener(request, selection.schema_object, lambda: data.table)
    results: dict[str, CheckResult] = {}
    scopes = [
        _Scope(
            request,
            selection,
            data,
            rows,
            [clause for clause in clauses if clause.row_filter.rows is rows],
            open_object,
        )
        for rows in (RowScope.PARTITION, RowScope.TABLE)
    ]
    for scope in scopes:
        scope_results = evaluate(scope.clauses, kinds, scope.answer_metrics)
        results |= _with_samples(scope, scope_results) if request.samples else scope_results
    if data.small is None:
        # Tables read in memory have the same columns in all files.
        results_for_schema = partial(evaluate_by_schema, clauses, kinds)
        results = with_notes(results, data.requested, selection.schema_object, results_for_schema)
    sources = {
        clause.path: source_of_answer(clause, scope.known_answers, kinds)
        for scope in scopes
        for clause in scope.clauses
    }
    row_counts = [
        scope.known_answers.answers.get(COUNT) for scope in scopes[: 1 if request.partitions else 2]
    ]
    report = build_report(
        request,
        selection,
        clauses,
        context,
        results,
        sources,
        sum(scope.known_answers.passes for scope in scopes),
        [error for scope in scopes for error in scope.verification.errors],
        rows=next((rows for rows in row_counts if isinstance(rows, int)), None),
    )
    notes = dict.fromkeys(note for scope in scopes for note in scope.known_answers.notes)
    if isinstance(request.data, Dataset) and not request.partitions and data.small is None:
        notes |= dict.fromkeys(filter(None, [note_on_files(request.session(), request.data)]))
    return replace(
        report,
        notes=tuple(notes),
        verification=verification(request.verify_statistics, [scope.verification for scope in scopes]),
    )


# Rows by the values of columns.

MOST_COUNTED_GROUPS = 100_000
# Types whose values Python and Spark write alike.
_SAME_TEXT = frozenset({"string", "boolean", "tinyint", "smallint", "int", "bigint", "date"})


def count_rows(request: Request, columns: Sequence[str]) -> dict[Group, int] | Failure:
    """Return the number of rows of the requested partitions by the texts of these columns.

    Without columns, the only group is empty. A column that the data does not have, and more than
    `MOST_COUNTED_GROUPS` groups, are a Failure. Raises as `check`.
    """
    try:
        return _count_rows(OpenedData(request), columns)
    except RequiresSpark:
        return _count_rows(OpenedData(request, in_memory=False), columns)


def _count_rows(data: OpenedData, columns: Sequence[str]) -> dict[Group, int] | Failure:
    names = []
    for column in columns:
        kind = struct_field(data.schema, column)
        if kind is None:
            return Failure(f"the data has no column {column!r}")
        names.append(next(name for name in data.schema.names if name.lower() == column.lower()))
        if data.small is not None and kind.name not in _SAME_TEXT:
            raise RequiresSpark
    if data.small is not None:
        return _count_in_memory(data.small, names)
    rows = data.rows(RowScope.PARTITION)
    if not names:
        return {(): rows.count()}
    texts = [f"CAST({sql.name(name)} AS STRING) AS _dq_{index}" for index, name in enumerate(names)]
    texts_frame = rows.selectExpr(*texts)
    groups = texts_frame.groupBy(*texts_frame.columns).count().limit(MOST_COUNTED_GROUPS + 1).collect()
    if len(groups) > MOST_COUNTED_GROUPS:
        return Failure(f"there are more than {MOST_COUNTED_GROUPS:,} groups by {', '.join(columns)}")
    return {tuple(group[: len(names)]): int(group[len(names)]) for group in groups}


def _count_in_memory(table: SmallTable, names: Sequence[str]) -> dict[Group, int]:
    if not names:
        return {(): table.rows}
    with leave_errors_to_spark():
        values = table.columns(names)
        columns = [map(group_name, values[name].to_pylist()) for name in names]
        return dict(Counter(zip(*columns, strict=True)))


class _Scope:
    """Clauses that apply to the same rows, and the answers known so far for these rows."""

    def __init__(
        self,
        request: Request,
        selection: CheckSelection,
        data: OpenedData,
        rows: RowScope,
        clauses: Sequence[Clause],
        open_object: OpenObject,
    ) -> None:
        self.request, self.selection, self.data, self.rows = request, selection, data, rows
        self.clauses, self.open_object = clauses, open_object
        self.known_answers = KnownAnswers()
        self.verification = StatisticsVerification(self.known_answers)

    @property
    def frame(self) -> DataFrame:
        """The rows as a DataFrame."""
        return self.data.rows(self.rows)

    def answer_metrics(self, metrics: Iterable[Metric]) -> Answers:
        """Answer the metrics from each source in turn; Spark answers what remains."""
        requested = list(metrics)
        ages = [metric for metric in requested if isinstance(metric, OldestInstant)]
        compared = [metric for metric in requested if isinstance(metric, ComparedRows | ComparedSums)]
        otherwise_answered = (*ages, *compared, FILE_BYTES)
        measured = [metric for metric in requested if metric not in otherwise_answered]
        for source in (_answer_in_memory, _answer_without_scan, _answer_by_spark):
            if unanswered := self.known_answers.unanswered(measured):
                self.known_answers = source(unanswered, self)
        answers: dict[Metric, Answer] = dict(self.known_answers.answers)
        answers |= {metric: _answer_age(metric, self.request.data) for metric in ages}
        if FILE_BYTES in requested and answers.get(FILE_BYTES) is None:
            answers[FILE_BYTES] = _file_bytes(self)
        if ages or FILE_BYTES in requested:
            self.known_answers = replace(self.known_answers, answers=answers)
        for metric in compared:
            if metric not in self.known_answers.answers:
                self.known_answers = _with_comparison(metric, self)
        return self.known_answers.answers


AnswerSource = Callable[[Sequence[Metric], _Scope], KnownAnswers]
"""Takes metrics and a scope, and returns the known answers including those that this source can give."""


# The check whose patterns are dq's own: their run time is bounded.
_OWN_PATTERNS = "format"


def _answer_in_memory(metrics: Sequence[Metric], scope: _Scope) -> KnownAnswers:
    """Answer from a small table in this process, except patterns and SQL whose run time is unbounded."""
    small, kinds = scope.data.small_rows(scope.rows), scope.selection.kinds
    if small is None:
        return scope.known_answers
    author_metrics = metrics_for_all(
        (clause for clause in scope.clauses if clause.check != _OWN_PATTERNS), kinds
    )
    new_answers = answers(
        [metric for metric in metrics if metric not in author_metrics or not is_user_defined(metric)], small
    )
    passes = int(any(metric is not SCHEMA for metric in metrics)) if not scope.known_answers.answers else 0
    return replace(
        scope.known_answers,
        answers={**scope.known_answers.answers, **new_answers},
        passes=scope.known_answers.passes + passes,
    )


def _answer_without_scan(metrics: Sequence[Metric], scope: _Scope) -> KnownAnswers:
    """Answer from statistics, the partition cache and Python tasks, unless an earlier source has answered."""
    if scope.known_answers.answers:
        return scope.known_answers
    request, kinds, table = scope.request, scope.selection.kinds, scope.data.source(scope.rows)
    # File statistics below the table path are incomplete if some partitions lie elsewhere.
    dataset = (
        request.data if isinstance(request.data, Dataset) and not request.data.external_partitions else None
    )
    parts = _partitions_of(scope)
    recall = None
    if (
        request.memory is not None
        and request.now is not None
        and not parts
        and Optimization.PARTITION_CACHE in request.optimizations
    ):
        recall = partial(_answer_from_cache, scope, dataset, request.memory, request.now)
    known_answers = answer_without_scan(metrics, table, dataset, parts, request.options, recall)
    scope.verification = verify(known_answers, scope.frame, scope.clauses, kinds, request)
    return scope.verification.known_answers


def _answer_from_cache(
    scope: _Scope,
    dataset: Dataset | None,
    memory: PartitionCache,
    now: dt.datetime,
    metrics: Collection[Metric],
) -> KnownAnswers:
    """Answer from the partition cache."""
    from dq.dataquality.answers.partition_cache import answer_from_cache

    # A window selects other rows at each run, so its answers cannot be cached.
    clauses = [clause for clause in scope.clauses if clause.row_filter.window is None]
    requested = set(metrics)
    cacheable = [metric for metric in metrics_for_all(clauses, scope.selection.kinds) if metric in requested]
    options, classified_columns = scope.request.options, classified(scope.selection.schema_object)
    return answer_from_cache(cacheable, scope.data.table, dataset, memory, now, options, classified_columns)


def _answer_by_spark(metrics: Sequence[Metric], scope: _Scope) -> KnownAnswers:
    """Answer by passes over the rows; metrics without an answer get a Failure."""
    known_answers, limit_seconds = scope.known_answers, scope.request.limit_seconds
    try:
        frame = scope.frame
    except MissingTool as error:
        raise MissingTool(error.message + _spark_clauses(metrics, scope), error.hint) from error
    # COUNT costs nothing next to other aggregates, and tells whether the data is worth many tasks.
    has_other_passes = (
        any(not isinstance(metric, Aggregate) for metric in metrics) and SCHEMA not in known_answers.answers
    )
    count_metrics = (
        [COUNT] if has_other_passes and any(isinstance(metric, Aggregate) for metric in metrics) else []
    )
    spark_plan = plan(
        (metric for metric in [*metrics, *count_metrics] if metric not in known_answers.answers),
        schema_of(frame),
    )
    measured_frame = coalesce_small(frame) if spark_plan.passes else frame
    gather = repartition_small if measured_frame is frame else lambda frame, _rows: frame
    spark_answers = measure(
        measured_frame, spark_plan, scope.open_object, known_answers.answers, limit_seconds, gather
    )
    passes = sum(not is_implied(spark_pass, spark_answers) for spark_pass in spark_plan.passes)
    return replace(known_answers, answers=spark_answers, passes=known_answers.passes + passes)


def _spark_clauses(metrics: Sequence[Metric], scope: _Scope) -> str:
    """Return which clauses of a small table only Spark can check, as a sentence; "" for other tables."""
    if scope.data.small_rows(scope.rows) is None:
        return ""
    unanswered, kinds = set(metrics), scope.selection.kinds
    names = [
        f"{clause.property} {clause.check}".strip()
        for clause in scope.clauses
        if not unanswered.isdisjoint(metrics_for(clause, kinds))
    ]
    return f" It is needed for {join_limited(names, _MAX_NAMED)}."


_MAX_NAMED = 5


def _answer_age(metric: OldestInstant, data: object) -> Answer:
    """Return the instant from the table's log or listing."""
    if not isinstance(data, Dataset) or data.path is None:
        return Failure("its files are unknown; check the path of the table, not a DataFrame or catalog table")
    try:
        return oldest_instant(metric.of, data.path, data.format or "")
    except DqError as error:
        return Failure(error.message.rstrip("."))


def _file_bytes(scope: _Scope) -> int | None:
    """Return the size of the files of the scope, from metadata that has been read, or None."""
    small = scope.data.small_rows(scope.rows)
    if small is not None:
        return sum(file.size for file in small.files)
    # Iceberg's scans do not tell their files; its metadata do, if no other clause has read them.
    files: Sequence[FileStatistics] | None = scope.known_answers.files
    if not files:
        table, request = scope.data.source(scope.rows), StatisticsRequest()
        files = try_spark(lambda: iceberg_files(table, None, _partitions_of(scope), request))
    sizes = [file.size for file in files or ()]
    if files is not None and None not in sizes:
        return sum(size or 0 for size in sizes)
    return try_spark(lambda: file_bytes(scope.frame))


def _partitions_of(scope: _Scope) -> Partitions:
    """Return the partitions of the scope, none for the table."""
    return (scope.request.partitions or ()) if scope.rows is RowScope.PARTITION else ()


def _with_comparison(metric: ComparedRows | ComparedSums, scope: _Scope) -> KnownAnswers:
    """Add the comparison with another side; reasons why it is impossible are Failures."""
    known_answers = scope.known_answers
    try:
        answer = _compare(metric, scope)
    except DqError as error:
        answer = Failure(error.message.rstrip("."))
    passes = known_answers.passes + isinstance(answer, RowDifferences | SumPairs)
    return replace(known_answers, answers={**known_answers.answers, metric: answer}, passes=passes)


def _compare(metric: ComparedRows | ComparedSums, scope: _Scope) -> RowDifferences | SumPairs | Failure | str:
    request, agreement, other = scope.request, metric.agreement, metric.agreement.other
    data = (request.other_objects or {}).get(other.name)
    is_same = isinstance(data, Dataset) and data == request.data and not agreement.renamed
    if is_same and other.where is None and metric.where is None:
        return f"the data of this run is that of {other}; check another server"
    frame = scope.open_object(other.name)
    if isinstance(frame, Failure):
        return frame
    partitions = tuple(request.partitions or ()) if scope.rows is RowScope.PARTITION else ()
    if isinstance(metric, ComparedSums):
        return _compare_sums(metric, scope, frame, partitions)
    schema_object = scope.selection.schema_object
    dataset, other_dataset = (side if isinstance(side, Dataset) else None for side in (request.data, data))
    left = Side(schema_object.name, scope.data.source(scope.rows), dataset, schema_object)
    right = Side(str(other), frame, other_dataset, None)
    return _compare_rows(metric.agreement, left, right, partitions)


def _compare_rows(
    agreement: Agreement, left: Side, right: Side, partitions: Sequence[Mapping[str, str]]
) -> RowDifferences:
    terms = Terms(
        agreement.key,
        agreement.columns,
        agreement.ignored,
        dict(agreement.renamed),
        dict(agreement.tolerance),
    )
    outcome = reconcile(left, right, terms, Options(partition_columns(left, right), tuple(partitions)))
    counts = outcome.counts
    changed = sorted(
        (column for column in outcome.columns if column.differing), key=lambda column: -column.differing
    )
    return RowDifferences(
        counts[Kind.MISSING],
        counts[Kind.EXTRA],
        counts[Kind.CHANGED],
        counts[Kind.REPEATED],
        tuple(column.name for column in changed),
        tuple(f"{column.name} {column.reason}" for column in outcome.uncompared),
    )


def _compare_sums(
    metric: ComparedSums, scope: _Scope, frame: DataFrame, partitions: Sequence[Mapping[str, str]]
) -> SumPairs | Failure:
    agreement, schema_object, request = metric.agreement, scope.selection.schema_object, scope.request
    other, renamed = agreement.other, {name.lower(): other_name for name, other_name in agreement.renamed}
    other_partitions = [
        {renamed.get(name.lower(), name): text for name, text in partition.items()}
        for partition in partitions
    ]
    other_columns = set(map(str.lower, frame.columns))
    for name in dict.fromkeys(name for partition in other_partitions for name in partition):
        if name.lower() not in other_columns:
            return Failure(
                f"{other} has no column {name!r}, so it cannot be limited to the checked partitions; name the"
                " column with rename, or compare the whole tables with rows: table in the scope of the rule"
            )
    condition = _row_condition(other)

    def pairs() -> tuple[GroupPairs, ...] | Failure:
        rows, other_rows = scope.frame, frame
        if metric.where is not None:
            rows = rows.where(predicate_sql(metric.where, schema_of(rows)))
        if other_partitions:
            other_rows = only_partitions(other_rows, other_partitions)
        if condition is not None:
            other_rows = other_rows.where(condition.sql)
        return compare_sums(Side(schema_object.name, rows), Side(str(other), other_rows), agreement)

    has_conditions = condition is not None or metric.where is not None
    with time_limit(frame.sparkSession, request.limit_seconds if has_conditions else None) as deadline:
        groups = attempt_without_values(pairs)
    if isinstance(groups, Failure):
        return deadline.failure() if deadline.is_expired else groups
    other_object = _other_object(other, request)
    if other_object is None:
        return SumPairs(groups, ("",) * (1 + len(agreement.sums)))
    by = [renamed.get(name.lower(), name).lower() for name in agreement.by]
    read = {*by, *(map(str.lower, condition.columns) if condition is not None else ())}
    reasons = (
        reason_not_shown(other_object, frozenset({*read, *names}))
        for names in [(), *((renamed.get(name.lower(), name).lower(),) for name in agreement.sums)]
    )
    is_hidden = [bool(reason_not_shown(other_object, frozenset({name}))) for name in by]
    masked = (
        tuple(
            MASK if hidden and text is not None else text
            for hidden, text in zip(is_hidden, pair.group, strict=True)
        )
        for pair in groups
    )
    return SumPairs(
        tuple(replace(pair, group=group) for pair, group in zip(groups, masked, strict=True)), tuple(reasons)
    )


def _row_condition(other: OtherSide) -> ValidatedSql | None:
    if other.where is None:
        return None
    # Imported here, because only rules with a condition need the SQL parser.
    from dq.contracts.sql.guard import ValidatedSql, validate_predicate

    condition = validate_predicate(other.where)
    assert isinstance(condition, ValidatedSql), "a rule with another condition is refused"
    return condition


def _other_object(other: OtherSide, request: Request) -> SchemaObject | None:
    """Return the object of the other side, or None if its contract was not read."""
    contract = request.contract
    if other.contract is not None:
        try:
            contract = request.neighbours.contract_with(other.contract, other.object)
        except ExternalReference:
            return None
    return contract.object(other.object)


def evaluate(
    clauses: Sequence[Clause], kinds: CheckKinds, answer_metrics: Callable[[Iterable[Metric]], Answers]
) -> dict[str, CheckResult]:
    """Return the result of each clause by its path.

    `answer_metrics` is called a second time if the first answers require follow-up metrics.
    """
    answers = dict(answer_metrics(metrics_for_all(clauses, kinds)))
    if follow_ups := follow_up_metrics_for_all(clauses, answers, kinds):
        answers |= answer_metrics(follow_ups)
    return {clause.path: evaluate_clause(clause, answers, kinds) for clause in clauses}


def build_report(
    request: Request,
    selection: CheckSelection,
    clauses: Sequence[Clause],
    context: RunContext,
    results: Mapping[str, CheckResult],
    sources: Mapping[str, AnsweredBy],
    passes: int,
    errors: Sequence[CheckResult] = (),
    *,
    rows: int | None,
) -> Report:
    """Build the report. `results` and `sources` are keyed by clause path; `errors` follow the results."""
    name = clause_namer(selection.schema_object)
    all_results = (*(results[clause.path] for clause in clauses), *errors)
    return Report(
        contract=request.contract.id,
        version=request.contract.version,
        object=selection.schema_object.name,
        partitions=context.partitions,
        results=tuple(
            replace(
                check_result, name=name(check_result.clause), answered_by=_answered_by(check_result, sources)
            )
            for check_result in all_results
        ),
        coverage=selection.coverage,
        passes=passes,
        from_statistics=sum(source is AnsweredBy.STATISTICS for source in sources.values()),
        from_cache=sum(source is AnsweredBy.CACHE for source in sources.values()),
        at=request.now,
        rules=tuple(request.rules),
        rows=rows,
    )


def evaluate_by_schema(
    clauses: Iterable[Clause], kinds: CheckKinds, schema: DataType
) -> dict[str, CheckResult]:
    """Return the results of the clauses that only need the schema."""
    # Clauses have no hash: arguments of their rules may be lists and mappings.
    return {
        clause.path: evaluate_clause(clause, {SCHEMA: schema}, kinds)
        for clause in clauses
        if tuple(metrics_for(clause, kinds)) == (SCHEMA,)
    }


def source_of_answer(clause: Clause, known_answers: KnownAnswers, kinds: CheckKinds) -> AnsweredBy:
    """Return the source of a clause's answer, given the answers known before the rows are read."""
    metrics = metrics_for(clause, kinds)
    if metrics == (SCHEMA,):
        return AnsweredBy.SCHEMA
    metrics = tuple(metric for metric in metrics if metric != FILE_BYTES) or metrics
    if metrics and all(
        isinstance(metric, OldestInstant | FileBytes) or metric in known_answers.proven for metric in metrics
    ):
        return AnsweredBy.STATISTICS
    return (
        AnsweredBy.CACHE
        if metrics and (known_answers.proven | known_answers.from_cache).issuperset(metrics)
        else AnsweredBy.SCAN
    )


def _answered_by(result: CheckResult, sources: Mapping[str, AnsweredBy]) -> AnsweredBy | None:
    return None if result.status is Status.ERROR else sources.get(result.clause)


def _with_samples(scope: _Scope, results: Mapping[str, CheckResult]) -> dict[str, CheckResult]:
    """Add sample rows to the results of failed row-level clauses."""
    failed_clauses = failed_row_clauses(scope.clauses, results)
    if not failed_clauses:
        return dict(results)
    samples_by_path = _samples_in_memory(scope, failed_clauses)
    if samples_by_path is None:
        frame = repartition_small(scope.frame, scope.known_answers.answers.get(COUNT))
        with time_limit(frame.sparkSession, scope.request.limit_seconds):
            samples_by_path = samples(
                frame, schema_of(frame), scope.selection.schema_object, failed_clauses, scope.open_object
            )
    return {
        path: replace(check_result, samples=samples_by_path.get(path, ()))
        for path, check_result in results.items()
    }


def _samples_in_memory(scope: _Scope, failed_clauses: Sequence[Clause]) -> Samples | None:
    """Return the samples of a small table, or None if Spark has to take them."""
    small, kinds = scope.data.small_rows(scope.rows), scope.selection.kinds
    author_clauses = [clause for clause in failed_clauses if clause.check != _OWN_PATTERNS]
    if small is None or any(map(is_user_defined, metrics_for_all(author_clauses, kinds))):
        return None
    is_utc = is_in_utc(scope.request.spark)
    try:
        return small_samples(small, scope.selection.schema_object, failed_clauses, is_utc=is_utc)
    except RequiresSpark:
        return None


def failed_row_clauses(clauses: Iterable[Clause], results: Mapping[str, CheckResult]) -> list[Clause]:
    """Return the failed clauses that have failing rows or keys to show."""
    return [
        clause
        for clause in clauses
        if results[clause.path].status is Status.FAIL
        and (failing_rows := results[clause.path].value)
        and clause.is_row_level
        and clause.exceeds_limit(failing_rows)
    ]


# Dry run of a check: the passes over the data, their metrics, and the untested clauses with reasons.

# Pass kind -> description for users.
_PASS_DESCRIPTIONS = {
    MetricExecution.SCHEMA: "the columns and types, without reading",
    MetricExecution.FILES: "the sizes of the files, without reading",
    MetricExecution.ROWS: "one scan that counts",
    MetricExecution.INTERPRETED: "one scan that looks inside arrays and maps",
    MetricExecution.DISTINCT: "distinct keys",
    MetricExecution.DUPLICATES: "repeated keys, a shuffle",
    MetricExecution.SINGLE: "keys that occur once, a shuffle",
    MetricExecution.RANKED: "one scan that sorts values",
    MetricExecution.GROUPED: "groups of rows, a small shuffle",
    MetricExecution.SQL: "a query of the contract",
    MetricExecution.UNMATCHED: "keys looked up in another object, a join",
    MetricExecution.METADATA: "the table's log or listing, without reading rows",
    MetricExecution.COMPARED: "rows compared with another side",
    MetricExecution.COMPARED_SUMS: "numbers of rows and sums of two sides",
}


@dataclass(frozen=True, slots=True)
class PlannedPass:
    """One planned pass: its rows, kind, number of metrics, and the paths of its clauses."""

    rows: RowScope
    kind: MetricExecution
    questions: int
    clauses: tuple[str, ...]

    @property
    def description(self) -> str:
        """Description of the pass for users."""
        return _PASS_DESCRIPTIONS.get(self.kind, str(self.kind))


@dataclass(frozen=True, slots=True)
class Outline:
    """Dry run of a check of one scope.

    `passes` is an upper bound: clauses answered from file statistics are not scanned. `errors` are the paths
    of clauses whose result will be an error, with the reason. `untested` are the clauses without a result.
    """

    contract: str
    version: str
    object: str
    partitions: tuple[Partition, ...]
    passes: tuple[PlannedPass, ...]
    errors: tuple[tuple[str, str], ...]
    untested: tuple[ClauseCoverage, ...]
    rules: tuple[str, ...] = ()

    def as_dict(self) -> JsonObject:
        """Return the outline as JSON values."""
        return {
            "contract": self.contract,
            "version": self.version,
            "object": self.object,
            "partitions": [dict(partition) for partition in self.partitions],
            "rules": list(self.rules),
            "passes": [
                {
                    "rows": planned_pass.rows.value,
                    "kind": planned_pass.kind.value,
                    "description": planned_pass.description,
                    "questions": planned_pass.questions,
                    "clauses": list(planned_pass.clauses),
                }
                for planned_pass in self.passes
            ],
            "errors": [{"clause": path, "reason": reason} for path, reason in self.errors],
            "untested": [account.as_dict() for account in self.untested],
        }


def outline(request: Request) -> Outline:
    """Return what `check` would do for this request. Only the schema of the data is read.

    Raises the same errors as `check`.
    """
    selection, context, data = select_clauses(request), context_for(request), OpenedData(request)
    schema = data.schema
    if data.small is None:
        # Raises for an invalid partition now, not during the check.
        data.rows(RowScope.PARTITION)
    clauses = selection.bind(request, schema, context)
    passes: list[PlannedPass] = []
    errors = {clause.path: clause.refusal_reason for clause in clauses if clause.refusal_reason}
    for rows in RowScope:
        paths_by_metric = _paths_by_metric(
            [clause for clause in clauses if clause.row_filter.rows is rows], selection.kinds
        )
        spark_plan = plan(paths_by_metric, schema)
        for metric in (SCHEMA, FILE_BYTES):
            if metric_paths := tuple(dict.fromkeys(paths_by_metric.get(metric, ()))):
                passes.append(PlannedPass(rows, metric.kind, 1, metric_paths))
        for spark_pass in spark_plan.passes:
            paths = dict.fromkeys(path for metric in spark_pass.metrics for path in paths_by_metric[metric])
            passes.append(PlannedPass(rows, spark_pass.kind, len(spark_pass.metrics), tuple(paths)))
        unmet = dict(_unmet(spark_plan.failures, paths_by_metric))
        passes += _quantile_passes(
            clause for clause in clauses if clause.row_filter.rows is rows and clause.path not in unmet
        )
        errors |= unmet
    return Outline(
        contract=request.contract.id,
        version=request.contract.version,
        object=selection.schema_object.name,
        partitions=context.partitions,
        passes=tuple(passes),
        errors=tuple(errors.items()),
        untested=_untested(clauses, selection.coverage),
        rules=tuple(request.rules),
    )


def _quantile_passes(clauses: Iterable[Clause]) -> Iterator[PlannedPass]:
    """Yield the passes of quantiles, which are follow-up metrics of the number of values."""
    clauses_by_group: dict[tuple[bool, object], list[Clause]] = {}
    for clause in clauses:
        metric_request = metric_request_of(clause)
        if metric_request is not None and metric_request.terms.kind.name == "quantile":
            group_key = (
                (metric_request.group_by, clause.row_filter.where) if metric_request.group_by else None
            )
            clauses_by_group.setdefault((bool(metric_request.group_by), group_key), []).append(clause)
    for (grouped, _), quantile_clauses in clauses_by_group.items():
        kind = MetricExecution.GROUPED if grouped else MetricExecution.RANKED
        paths = tuple(clause.path for clause in quantile_clauses)
        yield PlannedPass(quantile_clauses[0].row_filter.rows, kind, 2 * len(quantile_clauses), paths)


def _paths_by_metric(clauses: Sequence[Clause], kinds: CheckKinds) -> dict[Metric, list[str]]:
    """Return the paths of the clauses that need each metric."""
    paths_by_metric: dict[Metric, list[str]] = {}
    for clause in clauses:
        for metric in metrics_for(clause, kinds):
            paths_by_metric.setdefault(metric, []).append(clause.path)
    return paths_by_metric


def _unmet(
    failures: Sequence[tuple[Metric, Failure]], paths_by_metric: Mapping[Metric, Sequence[str]]
) -> Iterator[tuple[str, str]]:
    for metric, failure in failures:
        for path in paths_by_metric[metric]:
            yield path, failure.message


def _untested(clauses: Sequence[Clause], coverage: Sequence[ClauseCoverage]) -> tuple[ClauseCoverage, ...]:
    refused = {clause.path for clause in clauses if clause.refusal_reason}
    return tuple(
        entry
        for entry in coverage
        if entry.state is not EnforcementState.ENFORCED and entry.path not in refused
    )
