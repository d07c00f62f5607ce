"""Answers about all of a table from those that are kept of its folders, and new ones of the rest.

A kept answer belongs to a folder as it was: to the names, sizes and times of its files. Where these cannot be
had, or do not agree with what Spark listed, nothing is reused and nothing is kept: an answer that is taken
again costs time, and a wrong one would be a promise that looks kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

from dq.dataquality.model.metric import (
    Aggregate,
    Answer,
    DistinctKeys,
    Failure,
    Metric,
    RepeatedKeys,
    of_users,
)
from dq.dataquality.shortcuts.kept.folders import Folder, Folders, folders_of, place, rows_of
from dq.dataquality.shortcuts.kept.keys import KeyMemory, different
from dq.dataquality.shortcuts.kept.questions import combined, parts_of, read, whole, written
from dq.dataquality.shortcuts.kept.tasks import by_tasks
from dq.dataquality.shortcuts.kernels import run as kernels
from dq.dataquality.shortcuts.levers import Lever
from dq.dataquality.shortcuts.statistics.relation import cached
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.spark.plan import plan
from dq.dataquality.spark.readers.open import FILES, Dataset
from dq.dataquality.spark.session import attempt, time_limit
from dq.dataquality.sql.spark_predicate import question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# So many answers are kept of a folder; beyond, those go that nobody asked for this time.
MOST_ANSWERS = 1_000


@dataclass(frozen=True, slots=True)
class Part:
    """What is kept of one folder: the print of its files, and answers, as JSON, by `Circumstances.of`."""

    print: str
    counts: Mapping[str, Any]


class Memory(Protocol):
    """Where parts are kept, by the dataset's path and their folder; and keys, where they are."""

    @property
    def keys(self) -> KeyMemory | None:
        """Where keys are kept, None where none are."""
        ...

    def recall(self, dataset: str) -> Mapping[str, Part]:
        """Every part of a dataset."""
        ...

    def remember(self, dataset: str, parts: Mapping[str, Part], gone: Set[str]) -> None:
        """Keeps parts in the place of earlier ones of the same folders, and forgets folders that are gone."""
        ...

    def forget(self, dataset: str) -> None:
        """Forgets all that is kept of a dataset."""
        ...


@dataclass(frozen=True, slots=True)
class Recalled:
    """Answers for the whole table, and the passes over new folders that they took.

    `kept` are the metrics to whose answers a folder gave what was kept of it.
    """

    answers: Mapping[Metric, Answer] = field(default_factory=dict)
    kept: frozenset[Metric] = frozenset()
    passes: int = 0


def recalled(
    metrics: Collection[Metric],
    table: DataFrame,
    dataset: Dataset | None,
    memory: Memory,
    now: datetime,
    levers: Set[Lever],
    tasks_from: int = kernels.WORTH_ROWS,
    limit_seconds: float | None = None,
    secret: Set[str] = frozenset(),
) -> Recalled:
    """The answers over the whole table that kept ones of unchanged folders and new ones of the rest give.

    Only for partitioned tables of plain files. What cannot be told for certain is left out. `now` must be
    the real time: it says which files have settled. Keys of a `secret` column, in lower case, are not kept.
    """
    if dataset is None or not dataset.path or dataset.format not in FILES or not dataset.partitions:
        return Recalled()
    schema = schema_of(table)
    failing = {metric for metric, _ in plan(metrics, schema).failures}
    asked = {
        one: parts
        for one in metrics
        if isinstance(one, Aggregate) and one not in failing and (parts := parts_of(one, schema))
    }
    keyed = [
        one
        for one in metrics
        if isinstance(one, RepeatedKeys | DistinctKeys) and one not in failing
        if not secret & {str(key.steps[0]).lower() for key in one.keys}
    ]
    keyed = keyed if memory.keys is not None and Lever.KERNELS in levers else []
    if not (asked or keyed) or cached(table):
        return Recalled()
    folders = folders_of(table, dataset, now)
    if folders is None:
        return Recalled()
    found = (
        _added(asked, table, dataset, folders, memory, levers, tasks_from, limit_seconds)
        if asked
        else Recalled()
    )
    told = dict(found.answers)
    for one in keyed:
        assert memory.keys is not None
        for answer in different(one, table, dataset, folders, memory.keys, tasks_from):
            told[one] = answer
    return Recalled(told, found.kept | {one for one in keyed if one in told}, found.passes)


def _added(
    asked: Mapping[Aggregate, tuple[Aggregate, ...]],
    table: DataFrame,
    dataset: Dataset,
    found: Folders,
    memory: Memory,
    levers: Set[Lever],
    tasks_from: int,
    limit_seconds: float | None,
) -> Recalled:
    """What adds up."""
    assert dataset.path is not None
    folders, seen, schema = found.listed, found.prints, found.around.schema
    names = {part: found.around.of(part) for parts in asked.values() for part in parts}
    before = memory.recall(dataset.path)
    there = ((folder, before[folder]) for folder in folders if folder in before)
    same = {folder: part.counts for folder, part in there if part.print == seen[folder]}
    answers = {
        folder: {part: read(kept[name]) for part, name in names.items() if name in kept}
        for folder, kept in same.items()
    } | {folder: {} for folder in folders if folder not in same}
    missing = {folder: folders[folder] for folder in folders if len(answers[folder]) < len(names)}
    passes = 0
    if missing:
        frame = table if len(missing) == len(folders) else rows_of(table, dataset, list(missing.values()))
        if frame is None:
            return Recalled()
        wanted = [part for part in names if any(part not in answers[folder] for folder in missing)]
        new, passes = _counted(wanted, frame, missing, levers, tasks_from, limit_seconds)
        for folder in missing:
            answers[folder] |= new[folder]
        settled = {folder: print for folder in missing if new[folder] and (print := seen[folder])}
        memory.remember(
            dataset.path,
            {
                folder: Part(print, _kept(same.get(folder, {}), names, new[folder]))
                for folder, print in settled.items()
            },
            before.keys() - folders.keys(),
        )
    told: dict[Metric, Answer] = {
        metric: answer
        for metric, parts in asked.items()
        if all(part in answers[folder] for folder in folders for part in parts)
        for answer in whole(
            metric, [combined(part, (answers[one][part] for one in folders)) for part in parts], schema
        )
    }
    return Recalled(told, frozenset(told) if len(missing) < len(folders) else frozenset(), passes)


def _kept(
    before: Mapping[str, Any], names: Mapping[Aggregate, str], new: Mapping[Aggregate, Answer]
) -> dict[str, Any]:
    """A folder's answers, with the new ones; only those asked for today where there are too many."""
    both = {**before, **{names[part]: written(answer) for part, answer in new.items()}}
    if len(both) <= MOST_ANSWERS:
        return both
    today = set(names.values())
    return {name: answer for name, answer in both.items() if name in today}


_Answers = dict[str, dict[Aggregate, Answer]]


def _counted(
    parts: Sequence[Aggregate],
    frame: DataFrame,
    folders: Mapping[str, Folder],
    levers: Set[Lever],
    tasks_from: int,
    limit_seconds: float | None,
) -> tuple[_Answers, int]:
    """The answers of each of these folders, by tasks where they can tell, else by Spark; and the passes.

    What neither can tell is in no folder's answers.
    """
    found: _Answers = {folder: {} for folder in folders}
    passes = 0
    if Lever.KERNELS in levers:
        columns = frozenset(need.column for part in parts for need in part.needs)
        told = by_tasks(parts, columns, frame, found.keys(), tasks_from)
        passes += bool(told)
        for part, answers in told.items():
            for folder, answer in answers.items():
                found[folder][part] = answer
    rest = [part for part in parts if any(part not in one for one in found.values())]
    for each in plan(rest, schema_of(frame)).passes:
        asked = [metric for metric in each.metrics if isinstance(metric, Aggregate)]
        theirs = any(map(of_users, asked))
        with time_limit(frame.sparkSession, limit_seconds if theirs else None):
            new = attempt(lambda asked=asked: _by_folder(frame, asked, folders))  # type: ignore[misc]
        passes += 1
        if new is None or isinstance(new, Failure):
            continue
        for folder, mine in found.items():
            nothing = [0 if part.name == "count" else None for part in asked]
            mine |= dict(zip(asked, new.get(folder, nothing), strict=True))
    return found, passes


def _by_folder(
    frame: DataFrame, metrics: Sequence[Aggregate], folders: Mapping[str, Folder]
) -> dict[str, Sequence[Answer]] | None:
    """The answers of each folder with a row; None when a row is of a file that was not listed.

    Grouped by file, which is the same text for all rows of a task: cheaper than to cut the folder out of it.
    """
    from pyspark.sql.functions import expr

    schema = schema_of(frame)
    asked = [expr(question(metric, schema)).alias(f"_dq_{index}") for index, metric in enumerate(metrics)]
    rows = frame.groupBy(expr("_metadata.file_path").alias("_dq_file")).agg(*asked).collect()
    found: dict[str, list[list[Answer]]] = {}
    for file, *counts in rows:
        address, _, name = file.rpartition("/")
        # Spark writes file:/ here and file:/// in its list.
        folder = place(address)
        if folder not in folders or unquote(name) not in folders[folder].names:
            return None
        found.setdefault(folder, []).append(counts)
    return {
        folder: [combined(metric, [row[at] for row in rows]) for at, metric in enumerate(metrics)]
        for folder, rows in found.items()
    }
