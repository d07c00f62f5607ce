"""Answers without a scan by Spark: what statistics prove, and what Python tasks count more cheaply."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dq.dataquality.answers.levers import Lever
from dq.dataquality.answers.python_tasks import run as kernels
from dq.dataquality.answers.python_tasks.run import unfit
from dq.dataquality.answers.statistics import parquet
from dq.dataquality.answers.statistics.facts import File, Partitions, Wanted, cached, certain
from dq.dataquality.answers.statistics.prove import prove, source_of, wanted
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import Answers, Metric, reads
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.spark.plan import plan
from dq.dataquality.spark.readers.open import Dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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


def shortcut(
    metrics: Iterable[Metric],
    table: DataFrame,
    dataset: Dataset | None,
    partitions: Partitions,
    levers: Set[Lever],
    tasks_from: int = kernels.WORTH_ROWS,
    limit_seconds: float | None = None,
) -> Shortcut:
    """The metrics that need no scan by Spark, on the rows of these partitions of the table (none: all).

    Tasks are used from `tasks_from` rows on. Never raises for what is wrong with the data: what cannot be
    told is left to the scan.
    """
    schema = schema_of(table)
    failing = {metric for metric, _ in plan(metrics, schema).failures}
    asked = [metric for metric in dict.fromkeys(metrics) if metric not in failing]
    if not asked or not levers or not hasattr(table, "_jdf"):
        # Through Spark Connect nothing can be seen of a plan.
        return Shortcut()
    if cached(table):
        return Shortcut(notes=(_CACHED,))
    source = source_of(table, dataset)
    if source is None:
        return Shortcut()
    facts = wanted(asked, schema) if Lever.STATISTICS in levers else Wanted()
    in_tasks = levers & _IN_TASKS if source is parquet.files else frozenset()
    if in_tasks:
        facts = replace(facts, bounds=facts.bounds | _read_by(asked))
    files = certain(lambda: source(table, dataset, partitions, facts))
    if files is None:
        return Shortcut(notes=(_NO_FILES,) if dataset is None else ())
    proven = prove(asked, table, files, limit_seconds) if Lever.STATISTICS in levers else {}
    rest = [metric for metric in asked if metric not in proven]
    whole = all(file.whole for file in files)
    if not in_tasks or not rest or not whole or sum(file.rows for file in files) < tasks_from:
        return Shortcut(proven, frozenset(proven), files=tuple(files))
    reason = unfit(table.sparkSession.sparkContext)
    if reason is not None:
        return Shortcut(proven, frozenset(proven), files=tuple(files), notes=(f"Spark scans: {reason}.",))
    counted = kernels.answers(
        rest, table, files, keys=Lever.LOCAL_KEYS in levers, values=Lever.KERNELS in levers
    )
    return Shortcut({**proven, **counted}, frozenset(proven), 1 if counted else 0, tuple(files))


def _read_by(metrics: Iterable[Metric]) -> frozenset[Column]:
    columns = (need.column for metric in metrics for need in reads(metric))
    return frozenset(column for column in columns if len(column.steps) == 1)
