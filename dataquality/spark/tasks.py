"""Functions of dq as Python tasks of Spark."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from zipimport import zipimporter

from dq.dataquality.model.metric import Failure
from dq.dataquality.spark.error_redaction import attempt

if TYPE_CHECKING:
    from pyspark import SparkContext

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_tasks(
    context: SparkContext, items: Sequence[Item], work: Callable[[Item], Result]
) -> list[Result] | Failure:
    """What the work gives for each item, one task an item, in their order."""
    run = partial(_task, work=work)
    return attempt(lambda: context.parallelize(items, len(items)).map(run).collect())


def _task(item: Item, work: Callable[[Item], Result]) -> Result:
    try:
        return work(item)
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
