"""What tasks over Parquet files tell of each folder."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import Aggregate
from dq.dataquality.shortcuts.kept.folders import place
from dq.dataquality.shortcuts.kernels.codes import Keys
from dq.dataquality.shortcuts.kernels.run import by_unit
from dq.dataquality.shortcuts.kernels.workers import unfit
from dq.dataquality.shortcuts.statistics import parquet
from dq.dataquality.shortcuts.statistics.facts import File, Wanted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Told = TypeVar("Told", Aggregate, Keys)


def by_tasks(
    asked: Sequence[Told],
    columns: Collection[Column],
    frame: DataFrame,
    folders: Collection[str],
    tasks_from: int,
    most_rows: int | None = None,
) -> dict[Told, dict[str, Any]]:
    """The answers, by folder, to what is asked about these columns of a frame of these folders.

    What they cannot tell for every folder is left out, and all of it where there are more rows than the most.
    """
    bounds = frozenset(column for column in columns if len(column.steps) == 1)
    files = parquet.files(frame, None, (), Wanted(bounds=bounds))
    if files is None:
        return {}
    groups: dict[str, list[File]] = {folder: [] for folder in folders}
    for one in files:
        groups.setdefault(place(one.path.rpartition("/")[0]), []).append(one)
    rows = sum(file.rows for file in files)
    if len(groups) != len(folders) or (most_rows is not None and rows > most_rows):
        return {}
    if rows >= tasks_from and unfit(frame.sparkSession.sparkContext) is not None:
        return {}
    told = by_unit(asked, frame, [tuple(one) for one in groups.values()], tasks_from)
    return {one: dict(zip(groups, answers, strict=True)) for one, answers in told.items()}
