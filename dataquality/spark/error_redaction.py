"""Spark's failures as values: what it says in one line, without the values of the data that it may show."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from dq.dataquality.model.metric import Failure

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
