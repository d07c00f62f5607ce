"""Answers metrics without a Spark scan, from column statistics and in Python tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.answers import iceberg_statistics, statistics
from dq.dataquality.answers import python_tasks as kernels
from dq.dataquality.answers.statistics import (
    FileStatistics,
    Partitions,
    Scalar,
    Source,
    StatisticsRequest,
    is_cached,
    leaf_relation,
    try_spark,
)
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import (
    Aggregate,
    Answer,
    Answers,
    Failure,
    Metric,
    MetricExecution,
    Proof,
    Value,
    reads,
)
from dq.dataquality.model.predicate import Path
from dq.dataquality.spark.dataset import Dataset
from dq.dataquality.spark.measure import measure, plan, schema_of
from dq.dataquality.sql_predicate import literal_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# Optimizations that read less than a scan. Each can be turned off without changing a verdict.


class Optimization(StrEnum):
    """An optional optimization.

    STATISTICS answers from column statistics of the table format. LOCAL_KEYS looks for repeated keys file by
    file if files cannot share keys. KERNELS evaluates simple predicates in Python tasks. PARTITION_CACHE
    takes the answers of unchanged folders from the store. SMALL_TABLES reads tables of a few files in this
    process (`answers.memory`) if the request allows it.
    """

    STATISTICS = "statistics"
    LOCAL_KEYS = "local-keys"
    KERNELS = "kernels"
    PARTITION_CACHE = "partition-cache"
    SMALL_TABLES = "small-tables"


ALL = frozenset(Optimization)
NONE: frozenset[Optimization] = frozenset()


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Enabled optimizations, the minimum number of rows for Python tasks, and the time limit of users'
    SQL.
    """

    optimizations: Set[Optimization] = ALL
    tasks_from: int = kernels.WORTH_ROWS
    limit_seconds: float | None = None


# Statistics of a frame, and the answers that follow from them.

# TABLE: the source of statistics by table format.

SOURCES: dict[str, Source] = {
    "parquet": statistics.files,
    "iceberg": iceberg_statistics.files,
}


def source_of(frame: DataFrame, dataset: Dataset | None) -> Source | None:
    """Return the source of statistics for a frame, by the format of its path or else by its query plan.

    A contract does not have to name the format of a catalog table. Delta has no source: reading its log
    through the JVM saved only 3 % of a check with forty clauses.
    """
    if dataset is not None and dataset.path is not None:
        source = SOURCES.get(dataset.format or "")
        # The metadata of a table format are read through the JVM.
        return source if source is statistics.files or hasattr(frame, "_jdf") else None
    if not hasattr(frame, "_jdf"):
        return statistics.files
    return SOURCES.get(try_spark(lambda: _format(frame)) or "parquet")


def _format(frame: DataFrame) -> str:
    """Return the likely format of a frame, by the class of its leaf; the source verifies it."""
    if leaf_relation(frame, "DataSourceV2Relation") is not None:
        return "iceberg"
    leaf = leaf_relation(frame, "LogicalRelation")
    class_name = leaf.relation().location().getClass().getName() if leaf is not None else ""
    return "delta" if class_name.startswith("org.apache.spark.sql.delta.") else "parquet"


# Answers from statistics, without a scan.

# Maximum number of candidate values per column; with more, a scan is cheaper.
MOST_CANDIDATES = 10_000
# Maximum length of all of them: they are written into a query.
_MOST_CHARACTERS = 1 << 20
_EXTREMES: dict[str, Callable[[Iterable[Any]], Value]] = {"min": min, "max": max}


def answer_from_statistics(
    metrics: Iterable[Metric],
    frame: DataFrame,
    files: Sequence[FileStatistics],
    limit_seconds: float | None = None,
) -> dict[Metric, Answer]:
    """Return the answers that follow with certainty from the statistics of these files.

    Spark evaluates each predicate on the values named by the statistics: the bounds of an interval, or all
    values of a dictionary. If it counts none of them, it would count no row. This takes one or two small
    Spark jobs that read no data, or none if there is nothing to evaluate.

    Args:
        frame: The whole table.
    """
    schema = schema_of(frame)
    provable_metrics = provable(metrics, schema)
    answers = combine_statistics(provable_metrics, files)
    remaining = [metric for metric in provable_metrics if metric not in answers]
    # Evaluated separately, because the candidates of the others may not occur in any row.
    extremes = [metric for metric in remaining if metric.proof is Proof.EXTREME]
    return (
        answers
        | _test_candidates(extremes, frame, files, limit_seconds)
        | _test_candidates(
            [metric for metric in remaining if metric not in extremes], frame, files, limit_seconds
        )
    )


def combine_statistics(metrics: Sequence[Aggregate], files: Sequence[FileStatistics]) -> dict[Metric, Answer]:
    """Return the answers that follow from adding or comparing statistics alone, without Spark."""
    answers = {metric: _combined_answer(metric, files) for metric in metrics}
    return {metric: answer for metric, answer in answers.items() if answer is not None}


def statistics_request(metrics: Iterable[Metric], schema: DataType) -> StatisticsRequest:
    """Return the statistics needed to answer these metrics."""
    provable_metrics = provable(metrics, schema)
    tested = {
        proof: {_proof_column(metric) for metric in provable_metrics if metric.proof is proof}
        for proof in (Proof.NULLS, Proof.VALUES, Proof.INTERVAL, Proof.EXTREME)
    }
    extremes = {column for metric in provable_metrics if (column := _extreme_column(metric))}
    bounds = tested[Proof.NULLS] | tested[Proof.INTERVAL] | tested[Proof.EXTREME] | extremes
    return StatisticsRequest(frozenset(bounds), frozenset(tested[Proof.VALUES]))


def provable(metrics: Iterable[Metric], schema: DataType) -> list[Aggregate]:
    """Return the metrics that file statistics may answer."""
    return [
        metric
        for metric in metrics
        if isinstance(metric, Aggregate)
        and metric.kind is MetricExecution.ROWS
        and not plan([metric], schema).failures
        if _counts_all_rows(metric) or metric.proof is not Proof.NONE or _extreme_column(metric) is not None
    ]


def _counts_all_rows(metric: Aggregate) -> bool:
    return metric.name == "count" and metric.value is None and metric.where is None


def _extreme_column(metric: Aggregate) -> Column | None:
    """Return the column whose minimum or maximum over all rows the metric is, or None."""
    plain = metric.name in _EXTREMES and metric.where is None
    return Column(metric.value.steps) if plain and isinstance(metric.value, Path) else None


def _proof_column(metric: Aggregate) -> Column:
    """Return the column that the metric's proof is about."""
    assert metric.proven_by is not None
    return metric.proven_by


def _combined_answer(metric: Aggregate, files: Sequence[FileStatistics]) -> Value:
    """Return the answer by adding or comparing the files' statistics, or None if they are insufficient."""
    is_complete = all(file.is_complete for file in files)
    if _counts_all_rows(metric):
        return sum(file.rows for file in files) if is_complete else None
    if metric.proof is Proof.NULLS:
        nulls = [file.statistics_of(_proof_column(metric)).nulls for file in files if file.rows]
        if any(count is None for count in nulls):
            return None
        total = sum(count for count in nulls if count is not None)
        # A field of a NULL struct is stored as NULL, but the metric does not count it.
        exact = is_complete and len(_proof_column(metric).steps) == 1
        return total if exact or total == 0 else None
    column = _extreme_column(metric)
    ends = _file_extremes(metric, column, files) if column is not None and is_complete else None
    # A scan handles columns without values. The order of texts depends on the collation.
    if not ends or any(isinstance(end, (str, bytes)) for end in ends):
        return None
    return _EXTREMES[metric.name](ends)


def _test_candidates(
    metrics: Sequence[Aggregate],
    frame: DataFrame,
    files: Sequence[FileStatistics],
    limit_seconds: float | None,
) -> dict[Metric, Answer]:
    """Evaluate metrics on candidate values; return the counts that are 0 and the extremes of the
    candidates.
    """
    candidates: dict[Column, frozenset[Scalar]] = {}
    testable = []
    for metric in metrics:
        if metric.proof not in (Proof.VALUES, Proof.INTERVAL, Proof.EXTREME):
            continue
        column = _proof_column(metric)
        # Nested columns cannot be columns of the values frame.
        if len(column.steps) > 1:
            continue
        values = (_file_extremes if metric.proof is Proof.EXTREME else _candidates)(metric, column, files)
        if values is not None:
            candidates[column] = candidates.get(column, frozenset()) | values
            testable.append(metric)
    if not testable:
        return {}
    longest = max(len(values) for values in candidates.values())
    if longest == 0:
        return {metric: None if metric.proof is Proof.EXTREME else 0 for metric in testable}
    values_frame = _values_frame(frame, candidates, longest)
    answers = measure(values_frame, plan(testable, schema_of(values_frame)), limit_seconds=limit_seconds)
    return {
        metric: answers[metric]
        for metric in testable
        if answers[metric] == 0
        or (metric.proof is Proof.EXTREME and not isinstance(answers[metric], Failure))
    }


def _candidates(
    metric: Aggregate, column: Column, files: Sequence[FileStatistics]
) -> frozenset[Scalar] | None:
    """Return values such that if the metric counts none of them, it counts no row; None if unknown."""
    values: set[Scalar] = set()
    ends: list[Any] = []
    for file in files:
        facts = file.statistics_of(column)
        if facts.nulls == file.rows:
            continue
        if metric.proof is Proof.INTERVAL and facts.least is not None and facts.greatest is not None:
            ends += (facts.least, facts.greatest)
        elif facts.values is not None:
            values |= facts.values
        else:
            return None
        if len(values) > MOST_CANDIDATES:
            return None
    if ends:
        values |= {min(ends), max(ends)}
    length = sum(len(value) for value in values if isinstance(value, str | bytes))
    return frozenset(values) if length <= _MOST_CHARACTERS else None


def _file_extremes(
    metric: Aggregate, column: Column, files: Sequence[FileStatistics]
) -> frozenset[Any] | None:
    """Return the least or greatest value of every file, or None if one may not occur in its file."""
    extremes: set[Scalar] = set()
    for file in files:
        facts = file.statistics_of(column)
        if file.is_complete and facts.nulls == file.rows:
            continue
        end = facts.least if metric.name == "min" else facts.greatest
        if end is None or not facts.attained or not file.is_complete:
            return None
        extremes.add(end)
    return frozenset(extremes)


def _values_frame(frame: DataFrame, candidates: Mapping[Column, frozenset[Scalar]], rows: int) -> DataFrame:
    """Return a frame with these values in columns of the table's types, padded with NULL.

    Built with SQL, because rows from Python would start Python workers, and with one partition to avoid a
    shuffle.
    """
    types = {field.name.lower(): field for field in frame.schema.fields}
    fields = [types[str(column.steps[0]).lower()] for column in candidates]
    columns = [[_literal(value) for value in sorted(values, key=repr)] for values in candidates.values()]
    cells = zip(*(literals + ["NULL"] * (rows - len(literals)) for literals in columns), strict=True)
    values = ", ".join(f"({', '.join(row)})" for row in cells)
    cast = ", ".join(
        f"CAST(c{index} AS {field.dataType.simpleString()}) AS {sql.name(field.name)}"
        for index, field in enumerate(fields)
    )
    names = ", ".join(f"c{index}" for index in range(len(fields)))
    query = f"SELECT {cast} FROM VALUES {values} AS listed({names})"  # noqa: S608  # every value is quoted
    return frame.sparkSession.sql(query).coalesce(1)


def _literal(value: Scalar) -> str:
    return f"X'{value.hex()}'" if isinstance(value, bytes) else literal_sql(value)


# Answers without a Spark scan, from statistics, the partition cache and Python tasks.

_CACHED = "The DataFrame is cached by Spark, so all rows are read: its files may have changed since."
_NO_FILES = "All rows are read: the DataFrame is not the unmodified files of one table."
_IN_TASKS = frozenset({Optimization.KERNELS, Optimization.LOCAL_KEYS})


@dataclass(frozen=True, slots=True)
class KnownAnswers:
    """Answers known before Spark scans, which of them are proven by statistics, and the passes they took.

    `files` are those whose statistics were read. `notes` explain why more is read than necessary.
    `from_cache` are the metrics answered with the help of the partition cache.
    """

    answers: Answers = field(default_factory=dict)
    proven: frozenset[Metric] = frozenset()
    passes: int = 0
    files: tuple[FileStatistics, ...] = ()
    notes: tuple[str, ...] = ()
    from_cache: frozenset[Metric] = frozenset()

    def unanswered(self, metrics: Iterable[Metric]) -> list[Metric]:
        """Return the metrics without an answer."""
        return [metric for metric in metrics if metric not in self.answers]


Recall = Callable[[Sequence[Metric]], KnownAnswers]
"""Answers metrics from the partition cache."""


def answer_without_scan(
    metrics: Iterable[Metric],
    table: DataFrame,
    dataset: Dataset | None,
    partitions: Partitions,
    options: ReadOptions,
    recall: Recall | None = None,
) -> KnownAnswers:
    """Answer the metrics that need no Spark scan, on these partitions of the table (empty: all).

    Metrics that statistics cannot answer go to `recall`, the remaining ones to Python tasks. Problems with
    the data never raise; the affected metrics are left to the scan.
    """
    schema, optimizations = schema_of(table), options.optimizations
    failing = {metric for metric, _ in plan(metrics, schema).failures}
    requested = [metric for metric in dict.fromkeys(metrics) if metric not in failing]
    if not requested or not optimizations:
        return KnownAnswers()
    if is_cached(table):
        return KnownAnswers(notes=(_CACHED,))
    source = source_of(table, dataset)
    in_tasks = optimizations & _IN_TASKS if source is statistics.files else frozenset()
    request = (
        statistics_request(requested, schema)
        if Optimization.STATISTICS in optimizations
        else StatisticsRequest()
    )
    if in_tasks:
        request = replace(request, bounds=request.bounds | _columns_read(requested))
    files = try_spark(lambda: source(table, dataset, partitions, request)) if source is not None else None
    result = KnownAnswers(
        notes=(_NO_FILES,) if source is not None and files is None and dataset is None else ()
    )
    if files is not None:
        proven = (
            answer_from_statistics(requested, table, files, options.limit_seconds)
            if Optimization.STATISTICS in optimizations
            else {}
        )
        result = KnownAnswers(proven, frozenset(proven), files=tuple(files))
    if recall is not None and (remaining := result.unanswered(requested)):
        cached_answers = recall(remaining)
        answers = {**result.answers, **cached_answers.answers}
        result = replace(
            result, answers=answers, from_cache=cached_answers.from_cache, passes=cached_answers.passes
        )
    remaining = result.unanswered(requested)
    if files is None or not in_tasks or not remaining or not all(file.is_complete for file in files):
        return result
    if sum(file.rows for file in files) < options.tasks_from:
        return result
    task_answers = kernels.answers(
        remaining,
        table,
        files,
        keys=Optimization.LOCAL_KEYS in optimizations,
        values=Optimization.KERNELS in optimizations,
    )
    if isinstance(task_answers, Failure):
        return replace(result, notes=(f"Spark scans: {task_answers.message}.",))
    passes = result.passes + (1 if task_answers else 0)
    return replace(result, answers={**result.answers, **task_answers}, passes=passes)


def _columns_read(metrics: Iterable[Metric]) -> frozenset[Column]:
    columns = (need.column for metric in metrics for need in reads(metric))
    return frozenset(column for column in columns if len(column.steps) == 1)
