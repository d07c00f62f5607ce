"""Answers without a scan by Spark: what statistics prove, and what Python tasks count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.answers import iceberg_statistics, statistics
from dq.dataquality.answers import python_tasks as kernels
from dq.dataquality.answers.python_tasks import unfit
from dq.dataquality.answers.statistics import (
    File,
    Partitions,
    Scalar,
    Source,
    Wanted,
    cached,
    certain,
    relation,
)
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import Aggregate, Answer, Answers, Failure, Kind, Metric, Proof, Value, reads
from dq.dataquality.model.predicate import Path
from dq.dataquality.spark.dataset import Dataset
from dq.dataquality.spark.measure import measure, plan, schema_of
from dq.dataquality.sql_predicate import literal_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# Ways to an answer that read less than a scan; each can be turned off, and no verdict depends on it.


class Lever(StrEnum):
    """STATISTICS proves clauses by what formats keep beside the values; LOCAL_KEYS looks for repeated keys
    file by file where no key can stand in two; KERNELS evaluates plain predicates in Python tasks; KEPT takes
    the answers of folders that did not change from the store; SMALL_TABLES reads tables of a few files in
    this process (`answers.memory`), where the request lets it.
    """

    STATISTICS = "statistics"
    LOCAL_KEYS = "local-keys"
    KERNELS = "kernels"
    KEPT = "kept"
    SMALL_TABLES = "small-tables"


ALL = frozenset(Lever)
NONE: frozenset[Lever] = frozenset()


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Ways to read less, from how many rows on Python tasks are used, and the time limit of users' SQL."""

    levers: Set[Lever] = ALL
    tasks_from: int = kernels.WORTH_ROWS
    limit_seconds: float | None = None


# Which facts a frame has, and the answers that they prove.

# TABLE: which source of statistics a table has.

SOURCES: dict[str, Source] = {
    "parquet": statistics.files,
    "iceberg": iceberg_statistics.files,
}


def source_of(frame: DataFrame, dataset: Dataset | None) -> Source | None:
    """The source for a frame: by the format of the path, else, and for a table by its name, by its plan.

    The contract need not say the format of a table that Spark's catalog knows. Delta has none: its
    log, read through the JVM, saved a thirtieth of a check with forty clauses.
    """
    if dataset is not None and dataset.path is not None:
        return SOURCES.get(dataset.format or "")
    return SOURCES.get(certain(lambda: _format(frame)) or "parquet")


def _format(frame: DataFrame) -> str:
    """What the frame may be, by the class of its leaf; the source will look closer."""
    if relation(frame, "DataSourceV2Relation") is not None:
        return "iceberg"
    leaf = relation(frame, "LogicalRelation")
    made = leaf.relation().location().getClass().getName() if leaf is not None else ""
    return "delta" if made.startswith("org.apache.spark.sql.delta.") else "parquet"


# What statistics prove: the answers of metrics that need no scan.

# So many values of one column are tried; what has more is cheaper to scan than to prove.
MOST_CANDIDATES = 10_000
_EXTREMES: dict[str, Callable[[Iterable[Any]], Value]] = {"min": min, "max": max}


def prove(
    metrics: Iterable[Metric], frame: DataFrame, files: Sequence[File], limit_seconds: float | None = None
) -> dict[Metric, Answer]:
    """The answers that these files' facts give for certain, the same that a scan would give.

    `frame` is the table's whole data. A predicate is tried by Spark itself, on the values that the
    statistics name: the bounds of an interval, or all values of a dictionary. Where none of them is counted,
    no row is. One small Spark job, which reads no data; none when nothing can be proven.
    """
    schema = schema_of(frame)
    asked = provable(metrics, schema)
    found = counted(asked, files)
    rest = [metric for metric in asked if metric not in found]
    # Apart, because for the others a candidate may stand for values that no row has.
    extremes = [metric for metric in rest if metric.proof is Proof.EXTREME]
    return (
        found
        | _tried(extremes, frame, files, limit_seconds)
        | _tried([one for one in rest if one not in extremes], frame, files, limit_seconds)
    )


def counted(asked: Sequence[Aggregate], files: Sequence[File]) -> dict[Metric, Answer]:
    """The answers of provable metrics that come of adding up or comparing alone, without Spark."""
    found = {metric: _counted(metric, files) for metric in asked}
    return {metric: answer for metric, answer in found.items() if answer is not None}


def wanted(metrics: Iterable[Metric], schema: DataType) -> Wanted:
    """The facts that can prove something about these metrics."""
    asked = provable(metrics, schema)
    tested = {
        proof: {_column(one) for one in asked if one.proof is proof}
        for proof in (Proof.NULLS, Proof.VALUES, Proof.INTERVAL, Proof.EXTREME)
    }
    extremes = {column for one in asked if (column := _extreme(one))}
    bounds = tested[Proof.NULLS] | tested[Proof.INTERVAL] | tested[Proof.EXTREME] | extremes
    return Wanted(frozenset(bounds), frozenset(tested[Proof.VALUES]))


def provable(metrics: Iterable[Metric], schema: DataType) -> list[Aggregate]:
    """The metrics that facts of files may answer."""
    return [
        metric
        for metric in metrics
        if isinstance(metric, Aggregate) and metric.kind is Kind.ROWS and not plan([metric], schema).failures
        if _everything(metric) or metric.proof is not Proof.NONE or _extreme(metric) is not None
    ]


def _everything(metric: Aggregate) -> bool:
    return metric.name == "count" and metric.value is None and metric.where is None


def _extreme(metric: Aggregate) -> Column | None:
    """The column whose least or greatest value is asked for, of all rows."""
    plain = metric.name in _EXTREMES and metric.where is None
    return Column(metric.value.steps) if plain and isinstance(metric.value, Path) else None


def _column(metric: Aggregate) -> Column:
    """The one column that the metric's proof is about."""
    assert metric.proven_by is not None
    return metric.proven_by


def _counted(metric: Aggregate, files: Sequence[File]) -> Value:
    """The answer by adding up or comparing what the files know; None where they do not."""
    whole = all(file.whole for file in files)
    if _everything(metric):
        return sum(file.rows for file in files) if whole else None
    if metric.proof is Proof.NULLS:
        nulls = [file.of(_column(metric)).nulls for file in files if file.rows]
        if any(one is None for one in nulls):
            return None
        total = sum(one for one in nulls if one is not None)
        # A field of a NULL struct is stored as NULL, and is none of those that are counted.
        exact = whole and len(_column(metric).steps) == 1
        return total if exact or total == 0 else None
    column = _extreme(metric)
    ends = _ends(metric, column, files) if column is not None and whole else None
    # Of no value at all the scan will tell that there is none; the order of texts is the collation's.
    if not ends or any(isinstance(end, (str, bytes)) for end in ends):
        return None
    return _EXTREMES[metric.name](ends)


def _tried(
    metrics: Sequence[Aggregate], frame: DataFrame, files: Sequence[File], limit_seconds: float | None
) -> dict[Metric, Answer]:
    """The metrics of which no candidate value is counted, and the extremes among the candidates."""
    candidates: dict[Column, frozenset[Scalar]] = {}
    asked = []
    for metric in metrics:
        if metric.proof not in (Proof.VALUES, Proof.INTERVAL, Proof.EXTREME):
            continue
        column = _column(metric)
        # What is inside of a column is no column of the list.
        if len(column.steps) > 1:
            continue
        values = (_ends if metric.proof is Proof.EXTREME else _candidates)(metric, column, files)
        if values is not None:
            candidates[column] = candidates.get(column, frozenset()) | values
            asked.append(metric)
    if not asked:
        return {}
    longest = max(len(values) for values in candidates.values())
    if longest == 0:
        return {metric: None if metric.proof is Proof.EXTREME else 0 for metric in asked}
    made = _listed(frame, candidates, longest)
    answers = measure(made, plan(asked, schema_of(made)), limit_seconds=limit_seconds)
    return {
        metric: answers[metric]
        for metric in asked
        if answers[metric] == 0
        or (metric.proof is Proof.EXTREME and not isinstance(answers[metric], Failure))
    }


def _candidates(metric: Aggregate, column: Column, files: Sequence[File]) -> frozenset[Scalar] | None:
    """Values such that when none of them is counted, no row of the files is; None where there are no such."""
    found: set[Scalar] = set()
    ends: list[Any] = []
    for file in files:
        facts = file.of(column)
        if facts.nulls == file.rows:
            continue
        if metric.proof is Proof.INTERVAL and facts.least is not None and facts.greatest is not None:
            ends += (facts.least, facts.greatest)
        elif facts.values is not None:
            found |= facts.values
        else:
            return None
        if len(found) > MOST_CANDIDATES:
            return None
    if ends:
        found |= {min(ends), max(ends)}
    return frozenset(found)


def _ends(metric: Aggregate, column: Column, files: Sequence[File]) -> frozenset[Any] | None:
    """The least or greatest value of every file; None where one is not known to stand in its file."""
    found: set[Scalar] = set()
    for file in files:
        facts = file.of(column)
        if file.whole and facts.nulls == file.rows:
            continue
        end = facts.least if metric.name == "min" else facts.greatest
        if end is None or not facts.attained or not file.whole:
            return None
        found.add(end)
    return frozenset(found)


def _listed(frame: DataFrame, candidates: Mapping[Column, frozenset[Scalar]], rows: int) -> DataFrame:
    """A frame with these values in columns of the table's own types, NULL where a column has fewer.

    It is written as SQL, because rows that come from Python would start Python workers; and in one task,
    because several need a shuffle, and a job more, to add up so little.
    """
    types = {field.name.lower(): field for field in frame.schema.fields}
    fields = [types[str(column.steps[0]).lower()] for column in candidates]
    columns = [[_literal(value) for value in sorted(values, key=repr)] for values in candidates.values()]
    cells = zip(*(one + ["NULL"] * (rows - len(one)) for one in columns), strict=True)
    values = ", ".join(f"({', '.join(row)})" for row in cells)
    cast = ", ".join(
        f"CAST(c{at} AS {field.dataType.simpleString()}) AS {sql.name(field.name)}"
        for at, field in enumerate(fields)
    )
    names = ", ".join(f"c{at}" for at in range(len(fields)))
    query = f"SELECT {cast} FROM VALUES {values} AS listed({names})"  # noqa: S608  # every value is quoted
    return frame.sparkSession.sql(query).coalesce(1)


def _literal(value: Scalar) -> str:
    return f"X'{value.hex()}'" if isinstance(value, bytes) else literal_sql(value)


# Answers without a scan by Spark: what statistics prove, and what Python tasks count more cheaply.

_CACHED = (
    "The rows are those that Spark keeps in its cache, and all are read: its files may be others by now."
)
_NO_FILES = "All rows are read: the frame is not the files of one table as they stand."
_IN_TASKS = frozenset({Lever.KERNELS, Lever.LOCAL_KEYS})


@dataclass(frozen=True, slots=True)
class Shortcut:
    """What is known before Spark scans: the answers, those that statistics proved, and the passes it took.

    `files` are those whose statistics were looked at. `notes` say why more is read than need be. `kept` are
    the metrics to whose answers something was kept of earlier runs.
    """

    answers: Answers = field(default_factory=dict)
    proven: frozenset[Metric] = frozenset()
    passes: int = 0
    files: tuple[File, ...] = ()
    notes: tuple[str, ...] = ()
    kept: frozenset[Metric] = frozenset()

    def unanswered(self, metrics: Iterable[Metric]) -> list[Metric]:
        """The metrics without an answer."""
        return [metric for metric in metrics if metric not in self.answers]


Recall = Callable[[Sequence[Metric]], Shortcut]
"""From metrics to what earlier checks kept of them."""


def shortcut(
    metrics: Iterable[Metric],
    table: DataFrame,
    dataset: Dataset | None,
    partitions: Partitions,
    options: ReadOptions,
    recall: Recall | None = None,
) -> Shortcut:
    """The metrics that need no scan by Spark, on the rows of these partitions of the table (none: all).

    `recall` is asked for what statistics do not prove, and Python tasks for the rest. Never raises for what
    is wrong with the data: what cannot be told is left to the scan.
    """
    schema, levers = schema_of(table), options.levers
    failing = {metric for metric, _ in plan(metrics, schema).failures}
    asked = [metric for metric in dict.fromkeys(metrics) if metric not in failing]
    if not asked or not levers or not hasattr(table, "_jdf"):
        # Through Spark Connect nothing can be seen of a plan.
        return Shortcut()
    if cached(table):
        return Shortcut(notes=(_CACHED,))
    source = source_of(table, dataset)
    in_tasks = levers & _IN_TASKS if source is statistics.files else frozenset()
    facts = wanted(asked, schema) if Lever.STATISTICS in levers else Wanted()
    if in_tasks:
        facts = replace(facts, bounds=facts.bounds | _read_by(asked))
    files = certain(lambda: source(table, dataset, partitions, facts)) if source is not None else None
    known = Shortcut(notes=(_NO_FILES,) if source is not None and files is None and dataset is None else ())
    if files is not None:
        proven = prove(asked, table, files, options.limit_seconds) if Lever.STATISTICS in levers else {}
        known = Shortcut(proven, frozenset(proven), files=tuple(files))
    if recall is not None and (rest := known.unanswered(asked)):
        kept = recall(rest)
        answers = {**known.answers, **kept.answers}
        known = replace(known, answers=answers, kept=kept.kept, passes=kept.passes)
    rest = known.unanswered(asked)
    if files is None or not in_tasks or not rest or not all(file.whole for file in files):
        return known
    if sum(file.rows for file in files) < options.tasks_from:
        return known
    reason = unfit(table.sparkSession.sparkContext)
    if reason is not None:
        return replace(known, notes=(f"Spark scans: {reason}.",))
    counted = kernels.answers(
        rest, table, files, keys=Lever.LOCAL_KEYS in levers, values=Lever.KERNELS in levers
    )
    passes = known.passes + (1 if counted else 0)
    return replace(known, answers={**known.answers, **counted}, passes=passes)


def _read_by(metrics: Iterable[Metric]) -> frozenset[Column]:
    columns = (need.column for metric in metrics for need in reads(metric))
    return frozenset(column for column in columns if len(column.steps) == 1)
