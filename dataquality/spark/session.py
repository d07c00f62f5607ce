"""Work in a Spark session: errors without values of the data, time limits, Python tasks."""

from __future__ import annotations

import logging
import re
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from zipimport import zipimporter

from dq.dataquality.model.metric import Failure

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


# Spark's failures as values: what it says in one line, without the values of the data that it may show.

T = TypeVar("T")

# Conditions of Spark that name columns, types, tables and files only; what they quote is worth reading.
_SAFE = re.compile(
    r"\[(UNRESOLVED_|UNRESOLVABLE_|TABLE_OR_VIEW_|PATH_|DATATYPE_MISMATCH|PARSE_SYNTAX_ERROR|UNABLE_TO_INFER"
    r"|DATA_SOURCE_|FAILED_READ_FILE|CANNOT_READ_|UNSUPPORTED_|AMBIGUOUS_|COLUMN_|FIELD_NOT_FOUND|CONNECT"
    r"|INVALID_EXTRACT_|INVALID_SCHEMA|NESTED_AGGREGATE|INCOMPATIBLE_|MISSING_|WRONG_NUM_ARGS|SCHEMA_|DELTA_"
    r"|HUDI_|ICEBERG_)|\S+ is not a Parquet file|File \S+ does not exist"
)
_CONDITION = re.compile(r"\[[A-Z_.0-9]+\] ?")
# Where a value may begin: in quotes, after a colon, as a number, or as a key of a map.
_VALUE = re.compile(r"['\"`:=@\[{(]|-?\d|(?<=map key )")


def without_values(text: str) -> str:
    """The text up to where a value may begin, and an ellipsis there.

    Only conditions that never show a value are left whole. Casts that fail, numbers out of range and
    records that cannot be parsed show what they found.
    """
    if _SAFE.match(text):
        return text
    condition = _CONDITION.match(text)
    begin = condition.end() if condition else 0
    value = _VALUE.search(text, begin)
    return text if value is None else f"{text[: value.start()].rstrip()} …"


def answered(question: Callable[[], T]) -> T | Failure:
    """As `attempt`, without the values of the data that Spark's reason may show."""
    return attempt(question, without_values)


def attempt(question: Callable[[], T], told: Callable[[str], str] = str) -> T | Failure:
    """What the question gives, or a Failure when Spark cannot answer it; `told` as of `cleaned`."""
    try:
        with _hushed():
            return question()
    except spark_errors() as error:
        return Failure(cleaned(error, told))


# PySpark 4 logs each error of a query when it makes the exception, with its stack and what Spark quotes.
_TELLTALES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_here = threading.local()


def _silent(_record: logging.LogRecord) -> bool:
    return not getattr(_here, "asking", False)


@contextmanager
def _hushed() -> Iterator[None]:
    """PySpark says nothing by itself of an error in this thread: it would show values of the data."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # before Spark 4
        yield
        return
    for name in _TELLTALES:
        PySparkLogger.getLogger(name).addFilter(_silent)
    before, _here.asking = getattr(_here, "asking", False), True
    try:
        yield
    finally:
        _here.asking = before


def spark_errors() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # has no stubs
    from pyspark.errors import PySparkException

    return PySparkException, Py4JJavaError


_CAUSE = re.compile(r"^(?:Caused by: )?[\w.$]+(?:Exception|Error): (.+)$", re.MULTILINE)
_NOISE = re.compile(r" SQLSTATE: \w+$|^\[[A-Z_.0-9]+\] Job aborted due to stage failure: ")
_FILE = re.compile(r"while reading file (\S+?)\.?(?:\s|$)")
MAX_MESSAGE = 300


def cleaned(error: BaseException, told: Callable[[str], str] = str) -> str:
    """Spark's reason in one line: the innermost cause that says something, without its stack.

    `told` makes of that cause what may be shown; the file that Spark was reading is named all the same.
    """
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    said = [str(error)]
    # A failed job says "aborted" and hides the reason in its causes.
    while java is not None and len(said) < 20:
        said.append(str(java.getMessage() or ""))
        java = java.getCause()
    lines = [line for text in said if (line := _line(text))]
    classed = [line for line in lines if line.startswith("[")]
    shown = told((classed or lines or [type(error).__name__])[-1][:MAX_MESSAGE])
    # The cause that says what is wrong need not say where.
    file = next((match[1] for text in said if (match := _FILE.search(text))), None)
    return shown if file is None or file in shown else f"{shown} (in {file})"


def _line(text: str) -> str:
    aborted = "Job aborted" in text
    first = next(iter(_CAUSE.findall(text)), "") if aborted else text.strip().split("\n", 1)[0]
    return _NOISE.sub("", first.strip())


# A time limit on what Spark does for one question: its jobs are cancelled when the time is over.

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


# Functions of dq as Python tasks of Spark.

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
