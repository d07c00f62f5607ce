"""Pieces of work side by side in one Spark application: a bounded number of threads, one fair pool each.

Spark runs the jobs of one thread one after another, so that a small table would wait on the driver's work
for it. With a few threads the jobs of several objects share the executors. The scheduler's pool belongs to
the thread: an object has it for itself as long as it runs, and pools do not pile up in a long application.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from dq.cli.world.spark import cancel, own_pool, spark_context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")


def at_once(processors: int) -> int:
    """How many objects are tested side by side when nobody says."""
    return min(8, processors + 2)


def together(
    begun: Callable[[], SparkSession | None], items: Sequence[T], work: Callable[[T], R], threads: int
) -> list[R | Exception]:
    """What `work` gives for each item, in their order; an item whose work raised gives its exception.

    Nothing that is raised keeps the other items from their turn. An interrupt cancels the jobs that run.
    `begun` is the session; work that begins it itself sees to its own pool.
    """
    todo = queue.SimpleQueue[int]()
    for number in range(len(items)):
        todo.put(number)
    answers: dict[int, R | Exception] = {}
    spark = begun()
    kind = _thread(spark)

    def drain() -> None:
        if spark is not None:
            own_pool(spark)
        while (number := _next(todo)) is not None:
            try:
                answers[number] = work(items[number])
            except Exception as error:  # noqa: BLE001  # the one guard per object; the caller raises it again
                answers[number] = error

    running = []
    for number in range(min(threads, len(items))):
        thread = kind(target=drain)
        thread.name = f"dq-{number + 1}"
        # So that an interrupt can end the process while a job is still being cancelled.
        thread.daemon = True
        thread.start()
        running.append(thread)
    try:
        for thread in running:
            thread.join()
    except KeyboardInterrupt:
        while _next(todo) is not None:
            pass
        if (running_on := begun()) is not None:
            cancel(running_on)
        raise
    return [answers[number] for number in range(len(items))]


def _thread(spark: SparkSession | None) -> type[threading.Thread]:
    """One that keeps the properties that a spark-submit set; Spark Connect has none."""
    if spark is None or spark_context(spark) is None:
        return threading.Thread
    from pyspark import InheritableThread

    return InheritableThread


def _next(todo: queue.SimpleQueue[int]) -> int | None:
    try:
        return todo.get_nowait()
    except queue.Empty:
        return None
