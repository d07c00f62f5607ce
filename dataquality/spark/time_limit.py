"""A time limit on what Spark does for one question: its jobs are cancelled when the time is over."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dq.dataquality.model.metric import Failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A question may start one more job between two looks.
_AGAIN_SECONDS = 0.5
_INTERRUPT = "spark.job.interruptOnCancel"


@dataclass(slots=True)
class Watch:
    """Whether the time is over: then nothing more may be asked."""

    seconds: float | None = None
    over: bool = False

    def failure(self) -> Failure:
        """The answer to a question that took too long."""
        said = f"it was stopped after {self.seconds:g} s, the time limit of one rule (setting rule_seconds)"
        return Failure(said, late=True)


@contextmanager
def time_limit(spark: SparkSession, seconds: float | None) -> Iterator[Watch]:
    """Jobs that this thread starts inside are cancelled after so many seconds; None: never.

    Whoever waits for such a job gets Spark's error at once. Tasks in a loop that looks at no interrupt, such
    as one of Java's regular expressions, go on until they end, and keep their processor meanwhile. The
    thread's own properties are as before afterwards; time that the driver takes to plan is not cut short.
    """
    watch = Watch(seconds)
    if seconds is None:
        yield watch
        return
    tag, done = f"dq-limit-{uuid.uuid4().hex}", threading.Event()

    def end() -> None:
        if done.wait(seconds):
            return
        watch.over = True
        while not done.is_set():
            _cancel(spark, tag)
            done.wait(_AGAIN_SECONDS)

    with _tagged(spark, tag):
        thread = threading.Thread(target=end, name=tag, daemon=True)
        thread.start()
        try:
            yield watch
        finally:
            done.set()
            thread.join()


@contextmanager
def _tagged(spark: SparkSession, tag: str) -> Iterator[None]:
    context = getattr(spark, "sparkContext", None)  # Spark Connect has none
    if context is None:
        spark.addTag(tag)
        try:
            yield
        finally:
            spark.removeTag(tag)
        return
    before = context.getLocalProperty(_INTERRUPT)
    context.addJobTag(tag)
    context.setLocalProperty(_INTERRUPT, "true")
    try:
        yield
    finally:
        context.removeJobTag(tag)
        context.setLocalProperty(_INTERRUPT, before)


def _cancel(spark: SparkSession, tag: str) -> None:
    context = getattr(spark, "sparkContext", None)
    if context is None:
        spark.interruptTag(tag)
    else:
        context.cancelJobsWithTag(tag)
