"""Work in a Spark session: errors without values of the data, time limits, Python tasks."""

from __future__ import annotations

import functools
import logging
import re
import shutil
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from zipimport import zipimporter

from dq.contracts.install import NAME
from dq.dataquality.model.metric import Failure
from dq.dataquality.spark import connect_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Spark's errors as Failure values: one line, without values of the data.

T = TypeVar("T")

# Errors of Spark, and of Python tasks, that only quote columns, types, tables, files and modules.
_SAFE = re.compile(
    r"\[(UNRESOLVED_|UNRESOLVABLE_|TABLE_OR_VIEW_|PATH_|DATATYPE_MISMATCH|PARSE_SYNTAX_ERROR|UNABLE_TO_INFER"
    r"|DATA_SOURCE_|FAILED_READ_FILE|CANNOT_READ_|UNSUPPORTED_|AMBIGUOUS_|COLUMN_|FIELD_NOT_FOUND|CONNECT"
    r"|INVALID_EXTRACT_|INVALID_SCHEMA|NESTED_AGGREGATE|INCOMPATIBLE_|MISSING_|WRONG_NUM_ARGS|SCHEMA_|DELTA_"
    r"|HUDI_|ICEBERG_)|\S+ is not a Parquet file|File \S+ does not exist"
    r"|No module named|Cannot run program|When (?:reading|getting|listing)|Failed to open local file"
)
_CONDITION = re.compile(r"\[[A-Z_.0-9]+\] ?")
# Where a value may begin: in quotes, after a colon, as a number, or as a key of a map.
_VALUE = re.compile(r"['\"`:=@\[{(]|-?\d|(?<=map key )")


def without_values(text: str) -> str:
    """Truncate an error message where a value of the data may begin, and add an ellipsis.

    Only conditions that never quote values stay complete. Failed casts, numbers out of range and unparseable
    records quote the value.
    """
    if _SAFE.match(text):
        return text
    condition = _CONDITION.match(text)
    begin = condition.end() if condition else 0
    value = _VALUE.search(text, begin)
    return text if value is None else f"{text[: value.start()].rstrip()} …"


def attempt_without_values(question: Callable[[], T]) -> T | Failure:
    """Like `attempt`, without values of the data in the failure message."""
    return attempt(question, without_values)


def attempt(question: Callable[[], T], redact: Callable[[str], str] = str) -> T | Failure:
    """Return the result of `question`, or a Failure if Spark raises; `redact` as for `error_reason`."""
    try:
        with _mute_pyspark_logging():
            return question()
    except spark_errors() as error:
        return Failure(error_reason(error, redact))


# PySpark 4 logs each query error when it creates the exception, with its stack and quoted values.
_LEAKY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_thread_state = threading.local()


def _silent(_record: logging.LogRecord) -> bool:
    return not getattr(_thread_state, "asking", False)


@contextmanager
def _mute_pyspark_logging() -> Iterator[None]:
    """Mute PySpark's logging of errors in this thread, which would show values of the data."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # before Spark 4
        yield
        return
    for name in _LEAKY_LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_silent)
    previous, _thread_state.asking = getattr(_thread_state, "asking", False), True
    try:
        yield
    finally:
        _thread_state.asking = previous


def spark_errors() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # has no stubs
    from pyspark.errors import PySparkException

    return PySparkException, Py4JJavaError


_CAUSE = re.compile(r"^(?:Caused by: )?[\w.$]+(?:Exception|Error): (.+)$", re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last)"
_NOISE = re.compile(r" SQLSTATE: \w+$|^\[[A-Z_.0-9]+\] Job aborted due to stage failure: ")
_FILE = re.compile(r"while reading file (\S+?)\.?(?:\s|$)")
MAX_MESSAGE = 300


def error_reason(error: BaseException, redact: Callable[[str], str] = str) -> str:
    """Return Spark's reason in one line: the innermost informative cause, without its stack.

    `redact` removes confidential parts of that cause. The file that Spark was reading is appended.
    """
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    messages = [str(error)]
    # The message of a failed job is "aborted"; the reason is in its causes.
    while java is not None and len(messages) < 20:
        messages.append(str(java.getMessage() or ""))
        java = java.getCause()
    lines = [line for text in messages if (line := _reason_line(text))]
    with_condition = [line for line in lines if line.startswith("[")]
    reason = redact((with_condition or lines or [type(error).__name__])[-1][:MAX_MESSAGE])
    # The cause with the reason need not name the file.
    file = next((match[1] for text in messages if (match := _FILE.search(text))), None)
    return reason if file is None or file in reason else f"{reason} (in {file})"


def _reason_line(text: str) -> str:
    if "Job aborted" in text or text.startswith(_TRACEBACK):
        # Of a Python task, the exception is below its traceback.
        first = next((cause for cause in _CAUSE.findall(text) if not cause.startswith(_TRACEBACK)), "")
    else:
        first = text.strip().split("\n", 1)[0]
    return _NOISE.sub("", first.strip())


# A time limit for the Spark jobs of one measurement.

# The measurement may start another job after a cancellation, so cancel repeatedly.
_RECANCEL_SECONDS = 0.5
_INTERRUPT = "spark.job.interruptOnCancel"


@dataclass(slots=True)
class Deadline:
    """Deadline of a measurement; no further jobs may start once it is expired."""

    seconds: float | None = None
    is_expired: bool = False

    def failure(self) -> Failure:
        """Return the failure of a measurement that took too long."""
        message = f"stopped after {self.seconds:g} s, the time limit of one rule (setting rule_seconds)"
        return Failure(message, late=True)


@contextmanager
def time_limit(spark: SparkSession, seconds: float | None) -> Iterator[Deadline]:
    """Cancel Spark jobs started by this thread in the block after `seconds` (None: no limit).

    The caller waiting for a cancelled job gets Spark's error immediately. Tasks that ignore interrupts, e.g.
    in Java's regular expressions, continue until they end. Planning on the driver is not interrupted. The
    thread's job properties are restored afterwards.
    """
    deadline = Deadline(seconds)
    if seconds is None:
        yield deadline
        return
    tag, is_done = f"dq-limit-{uuid.uuid4().hex}", threading.Event()

    def cancel_when_expired() -> None:
        if is_done.wait(seconds):
            return
        deadline.is_expired = True
        while not is_done.is_set():
            _cancel(spark, tag)
            is_done.wait(_RECANCEL_SECONDS)

    with _tagged(spark, tag):
        thread = threading.Thread(target=cancel_when_expired, name=tag, daemon=True)
        thread.start()
        try:
            yield deadline
        finally:
            is_done.set()
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
    previous = context.getLocalProperty(_INTERRUPT)
    context.addJobTag(tag)
    context.setLocalProperty(_INTERRUPT, "true")
    try:
        yield
    finally:
        context.removeJobTag(tag)
        context.setLocalProperty(_INTERRUPT, previous)


def _cancel(spark: SparkSession, tag: str) -> None:
    context = getattr(spark, "sparkContext", None)
    if context is None:
        spark.interruptTag(tag)
    else:
        context.cancelJobsWithTag(tag)


# Python functions as Spark tasks.

Item = TypeVar("Item")
Part = TypeVar("Part")
Result = TypeVar("Result")


def in_tasks(
    spark: SparkSession, items: Sequence[Item], work: Callable[[Item], Result]
) -> list[Result] | Failure:
    """Return the result of `work` for each item, in order, with one task per item.

    A Failure, without values of the data, if the workers' Python cannot run dq, or a task failed.
    """
    run = partial(_task, work=work)
    context = getattr(spark, "sparkContext", None)
    if context is None:
        return _attempt_in_workers(spark, lambda: connect_tasks.map_items(spark, items, run))
    return _attempt_in_workers(spark, lambda: list(context.parallelize(items, len(items)).map(run).collect()))


def in_exchanging_tasks(
    spark: SparkSession,
    items: Sequence[Item],
    work: Callable[[Item], Iterable[tuple[int, Part]]],
    buckets: int,
    merge: Callable[[Iterable[Part]], Iterable[Result]],
) -> list[Result] | Failure:
    """Return the merged results of all buckets, in one job, or a Failure like `in_tasks`.

    `work` yields parts with their bucket numbers, one task per item. Spark's shuffle moves them to one
    `merge` task per bucket, and keeps the parts of only one attempt of each task.
    """
    context = getattr(spark, "sparkContext", None)
    split, join = partial(_flat_task, work=work), partial(_flat_task, work=merge)

    def run() -> list[Result]:
        if context is None:
            return connect_tasks.exchange_items(spark, items, split, buckets, join)
        parts = context.parallelize(items, len(items)).flatMap(split)
        merged = parts.partitionBy(buckets, int).values().mapPartitions(join)
        return list(merged.collect())

    return _attempt_in_workers(spark, run)


def _attempt_in_workers(spark: SparkSession, run: Callable[[], list[Result]]) -> list[Result] | Failure:
    problem = worker_problem(spark)
    if problem is not None:
        return Failure(problem)
    outputs = attempt_without_values(run)
    return Failure(f"Python tasks failed: {outputs.message}") if isinstance(outputs, Failure) else outputs


def worker_problem(spark: SparkSession) -> str | None:
    """Return why the Python workers cannot run dq, with a hint, or None if they can.

    A task without a required module logs a stack trace on every executor. Unless the workers are on this
    machine and have the driver's Python, a small job without dq code checks it first, once per application.
    """
    context = getattr(spark, "sparkContext", None)
    if context is None:
        server: Any = spark
        return _worker_problem(spark, server.client._session_id, "of the server")
    python = str(context.pythonExec)
    if is_local(spark) and shutil.which(python) == sys.executable:
        return None
    return _worker_problem(spark, context.applicationId, python)


@functools.lru_cache(64)
def _worker_problem(spark: SparkSession, _application: str, python: str) -> str | None:
    # A nested function is pickled by value, so the worker does not have to import dq.
    def find_packages(_number: int, distribution: str = NAME) -> tuple[list[str], str | None]:
        from importlib.metadata import PackageNotFoundError, version
        from importlib.util import find_spec

        missing = []
        for name in ("dq", "dq.dataquality", "pyarrow", "numpy"):
            try:
                spec = find_spec(name)
            except ImportError:
                spec = None
            if spec is None:
                missing.append(name)
        try:
            return missing, version(distribution)
        except PackageNotFoundError:
            return missing, None

    context = getattr(spark, "sparkContext", None)
    answer = attempt(
        lambda: (
            connect_tasks.map_items(spark, [0], find_packages)
            if context is None
            else context.parallelize([0], 1).map(find_packages).collect()
        )
    )
    hint = (
        f"Begin the session with PYSPARK_PYTHON={sys.executable}, or install dq with pyarrow there"
        if is_local(spark)
        else "Send an environment with dq to the executors (docs/how-to/where-it-runs.md), or install dq with"
        " pyarrow there"
    )
    if isinstance(answer, Failure):
        return f"the Python of Spark's tasks ({python}) does not run: {answer.message.rstrip('.')}. {hint}"
    ((missing, version),) = answer
    if missing:
        return f"the Python of Spark's tasks ({python}) has no {missing[0]}. {hint}"
    own = find_packages(0)[1]
    if None not in (own, version) and own != version:
        return f"the Python of Spark's tasks ({python}) has dq {version}, and the driver {own}. {hint}"
    return None


def is_local(spark: SparkSession) -> bool:
    """Return whether the driver is the only executor, so that tasks see its files and have its packages."""
    context = getattr(spark, "sparkContext", None)
    return context is not None and re.match(r"local(\[|$)", context.master) is not None


SHARED_HINT = (
    "The executors of a cluster do not see the files of this machine: use a place that all of them share,"
    " e.g. S3 or HDFS."
)
_NO_LOCAL_FILE = re.compile(r"\bfile:/.* does not exist")


def is_missing_for_executors(spark: SparkSession, reason: str) -> bool:
    """Return whether Spark's reason is that executors on other machines miss a local file of the driver."""
    return _NO_LOCAL_FILE.search(reason) is not None and not is_local(spark)


def _task(item: Item, work: Callable[[Item], Result]) -> Result:
    try:
        return work(item)
    finally:
        forget_archives()


def _flat_task(item: Item, work: Callable[[Item], Iterable[Result]]) -> Iterator[Result]:
    try:
        yield from work(item)
    finally:
        forget_archives()


def forget_archives() -> None:
    """Drop cached zip importers, which spares the next task of this worker about 20 ms of CPU.

    Spark invalidates Python's import caches before each task, and before 3.13 the importer of pyspark.zip
    then reads the whole archive directory. Python creates a new importer on demand from its cached directory.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            sys.path_importer_cache.pop(path, None)
