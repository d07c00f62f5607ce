"""Functions of dq as Python tasks of Spark."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from zipimport import zipimporter

from dq.dataquality.model.metric import Failure
from dq.dataquality.spark.error_redaction import attempt

if TYPE_CHECKING:
    from pyspark import SparkContext

Item = TypeVar("Item")
Part = TypeVar("Part")
Result = TypeVar("Result")


def in_tasks(
    context: SparkContext, items: Sequence[Item], work: Callable[[Item], Result]
) -> list[Result] | Failure:
    """What the work gives for each item, one task an item, in their order."""
    run = partial(_task, work=work)
    return attempt(lambda: context.parallelize(items, len(items)).map(run).collect())


def in_exchanging_tasks(
    context: SparkContext,
    items: Sequence[Item],
    work: Callable[[Item], Iterable[tuple[int, Part]]],
    buckets: int,
    merge: Callable[[Iterable[Part]], Iterable[Result]],
) -> list[Result] | Failure:
    """What is merged of each bucket, one task a bucket, in one job.

    The work gives parts with the numbers of their buckets, one task an item. They travel from task to task by
    Spark's shuffle, which keeps the parts of one attempt of each task only.
    """

    def run() -> list[Result]:
        given = context.parallelize(items, len(items)).flatMap(partial(_each, work=work))
        return given.partitionBy(buckets, int).values().mapPartitions(partial(_each, work=merge)).collect()

    return attempt(run)


def _task(item: Item, work: Callable[[Item], Result]) -> Result:
    try:
        return work(item)
    finally:
        forget_archives()


def _each(item: Item, work: Callable[[Item], Iterable[Result]]) -> Iterator[Result]:
    try:
        yield from work(item)
    finally:
        forget_archives()


def forget_archives() -> None:
    """Spares the next task of this worker some 20 ms of CPU, which is much of a short one.

    Before each task, Spark has Python look at its paths anew, and before 3.13 the importer of pyspark.zip
    reads the archive's whole directory for that. Python makes an importer again when it needs one, from the
    directory as it knows it.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            sys.path_importer_cache.pop(path, None)
