"""The story of one small table: chosen, looked at, asked and judged, with as little of Spark as it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from dq.contracts.access.access_policy import is_remote
from dq.contracts.shared.outcome import MissingTool, UsageError
from dq.contracts.types import DataType
from dq.dataquality.answers.files import Shortcut
from dq.dataquality.answers.levers import Lever
from dq.dataquality.answers.memory import LeftToSpark, answers, small_table
from dq.dataquality.clauses.kind import answered, metrics_of, second_of
from dq.dataquality.model.metric import SCHEMA, Answers, Failure, of_users
from dq.dataquality.object_check import broken_by_rows, found_in, report_of
from dq.dataquality.object_check import check as by_spark
from dq.dataquality.report import Report
from dq.dataquality.request import Request, choose, occasion_of
from dq.dataquality.spark.measure import COUNT
from dq.dataquality.spark.readers.open import Dataset, open_folders
from dq.dataquality.spark.session import attempt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

# The check whose patterns are dq's own, and take no longer the longer a text is.
_OWN_PATTERNS = "format"
# With other values, Spark may read or compare the same files otherwise.
_SETTINGS = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}


def check(request: Request, begin: Callable[[], SparkSession] | None = None) -> Report:
    """What `object_check.check` finds; of a small table without Spark, but for what only Spark can tell.

    Only Spark tells what is asked of rows by SQL, by an author's pattern or function, or of another object,
    which rows break a clause, and everything of data that it may read in another way. `begin` gives the
    session where one is needed, and that of the request is only looked at. Raises what it raises, and
    `object_check.check`.
    """
    near = None if request.verify_statistics else _left(request, partial(_told, request))
    if near is not None and near.report is not None:
        return near.report
    if begin is not None:
        request = replace(request, spark=begin())
    if near is None:
        return by_spark(request)
    # The files have one schema, which is known: Spark need not look for it in a job of its own.
    path = near.data.path or ""
    frame = attempt(lambda: open_folders(_session(request), near.data, near.schema, [path]))
    if isinstance(frame, Failure):
        # They are gone since; what is said of that is said there.
        return by_spark(request)
    return by_spark(replace(request, data=frame), near.answers)


@dataclass(frozen=True, slots=True)
class _Near:
    """What this process told of a small table: answers, and the report where these are all."""

    data: Dataset
    schema: DataType
    answers: Answers
    report: Report | None


def schema(request: Request) -> DataType | None:
    """The columns of a small table as Spark has them; None where it has to tell them."""
    return _left(request, lambda data: small_table(data).schema)


def _left(request: Request, told: Callable[[Dataset], T]) -> T | None:
    """What is told of the data of a request; None where it is left to Spark."""
    data = request.data
    if (
        not isinstance(data, Dataset)
        or Lever.SMALL_TABLES not in request.levers
        or request.partitions
        or data.placed
        or not _usual(request.spark, data)
    ):
        return None
    try:
        import pyarrow as pa
    except ImportError:
        return None
    try:
        return told(data)
    except (
        LeftToSpark,
        MissingTool,
        # Keys are compared with NumPy, which comes with Spark and not with Arrow.
        ImportError,
        pa.ArrowException,
        OSError,
        ValueError,
        OverflowError,
        NotImplementedError,
    ):
        return None


def _told(request: Request, data: Dataset) -> _Near:
    table = small_table(data)
    chosen, occasion = choose(request), occasion_of(request)
    kinds = chosen.kinds
    clauses = chosen.on(request, table.schema, occasion)
    asked = metrics_of(clauses, kinds)
    theirs = metrics_of((clause for clause in clauses if clause.check != _OWN_PATTERNS), kinds)
    plain = [metric for metric in asked if metric not in theirs or not of_users(metric)]
    told = answers([*plain, COUNT], table)
    if not told.keys() >= asked.keys():
        return _Near(data, table.schema, told, None)
    second = second_of(clauses, told, kinds)
    told |= answers(second, table)
    if not told.keys() >= set(second):
        return _Near(data, table.schema, told, None)
    results = {clause.path: answered(clause, told, kinds) for clause in clauses}
    if request.samples and broken_by_rows(clauses, results):
        return _Near(data, table.schema, told, None)
    passes = int(any(metric is not SCHEMA for metric in asked))
    sources = {clause.path: found_in(clause, Shortcut(), kinds) for clause in clauses}
    report = report_of(request, chosen, clauses, occasion, results, sources, passes, rows=table.rows)
    return _Near(data, table.schema, told, report)


def _session(request: Request) -> SparkSession:
    if request.spark is None:
        raise UsageError("a Dataset needs a Spark session to be opened.", "Give spark=….")
    return request.spark


def _usual(spark: SparkSession | None, data: Dataset) -> bool:
    """Whether a session, if there is one, reads these files, and as dq's own does."""
    return spark is None or (
        all(spark.conf.get(name, value) == value for name, value in _SETTINGS.items())
        and (is_remote(data.path or "") or _of_this_machine(spark))
    )


def _of_this_machine(spark: SparkSession) -> bool:
    """Whether a path without a scheme is one of this machine: not of HDFS, nor of Spark Connect's server."""
    context = getattr(spark, "sparkContext", None)
    default = context and context._jsc.hadoopConfiguration().get("fs.defaultFS")
    return str(default).startswith("file:")
