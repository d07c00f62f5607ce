"""Results as a table of Spark, one row per clause, for dashboards: no row of the data is ever in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Finding, Unreadable, UsageError
from dq.contracts.sql import text as sql
from dq.dataquality.delivery.cycle import label
from dq.dataquality.model.metric import Failure
from dq.dataquality.report import Report
from dq.dataquality.results.check_runs import TABLE
from dq.dataquality.spark.session import attempt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Stable: a column is only ever added, at the end.
COLUMNS = (
    ("contract", "string"),
    ("version", "string"),
    ("object", "string"),
    ("scope", "string"),
    ("at", "timestamp"),
    ("clause", "string"),
    ("check", "string"),
    ("property", "string"),
    ("status", "string"),
    ("severity", "string"),
    ("observed", "string"),
    ("allowed", "string"),
    ("value", "double"),
    ("message", "string"),
    # The clause by ids and names; `clause` is its path, which is by positions.
    ("clause_name", "string"),
)
# Tables that an older dq made do without them.
_ADDED = ("clause_name",)
_DDL = ", ".join(f"{sql.name(column)} {kind}" for column, kind in COLUMNS)
_PATH_SIGNS = ("/", "\\", ":")

TableRow = tuple[str | datetime | float | None, ...]


def lines(report: Report, at: datetime) -> Iterator[TableRow]:
    """The rows of a report: one per clause result, in the order of COLUMNS."""
    scope = ", ".join(label(partition) for partition in report.partitions) or TABLE
    for one in report.results:
        about = (one.clause, one.check, one.property, one.status.value, one.severity.value)
        found = (one.observed, one.allowed, one.value, one.message, one.name)
        yield (report.contract, report.version, report.object, scope, at, *about, *found)


def untested(contract: Contract, name: str, scope: str, at: datetime, reason: str) -> TableRow:
    """The row of an object that could not be tested at all: an error without a clause."""
    return (contract.id, contract.version, name, scope, at, *_NO_RESULT, reason, "")


def broken(finding: Finding, at: datetime) -> TableRow:
    """The row of a contract that could not be read."""
    return (finding.contract or finding.at.file, "", "", "", at, *_NO_RESULT, str(finding), "")


# From the clause to the value.
_NO_RESULT = ("", "", "", "error", "error", "not tested", "", None)


def is_path(target: str) -> bool:
    """Whether the target is a folder or URI, and no table's name."""
    return any(sign in target for sign in _PATH_SIGNS)


def place(target: str) -> str:
    """A path as it is, a table's name quoted. Raises UsageError for what is neither."""
    if is_path(target):
        return target
    parts = target.split(".")
    if not all(part.replace("_", "a").isalnum() for part in parts) or len(parts) > 3:
        raise UsageError(
            f"--results-table {target!r} is neither a table nor a path.",
            "Write database.table, or a path with a /.",
        )
    return ".".join(sql.name(part) for part in parts)


def append(spark: SparkSession, rows: Sequence[TableRow], target: str) -> None:
    """Adds the rows in one write. A table, or a folder of Parquet, that is not there yet is made.

    A table that is there keeps its format and may have more columns, which are filled with NULL. Raises
    UsageError for a name that cannot be one and for a table without these columns, and Unreadable when
    Spark cannot write.
    """
    name = place(target)
    frame = spark.createDataFrame([tuple(row) for row in rows], _DDL).coalesce(1)
    if is_path(target):
        done = attempt(lambda: frame.write.mode("append").parquet(name))
    elif spark.catalog.tableExists(name):
        fitted = _fitted(spark, frame, name)
        done = attempt(lambda: fitted.write.insertInto(name))
    else:
        done = attempt(lambda: frame.write.saveAsTable(name))
    if isinstance(done, Failure):
        raise Unreadable(
            f"the results cannot be written to {target}: {done.message.rstrip('.')}.",
            "They are kept in the store all the same; mend the table and run again.",
        )


def _fitted(spark: SparkSession, frame: DataFrame, name: str) -> DataFrame:
    """The rows in the order of a table's columns, because Spark inserts by position."""
    there = {column.lower() for column in spark.table(name).columns}
    missing = [column for column, _ in COLUMNS if column not in there and column not in _ADDED]
    if missing:
        raise UsageError(
            f"the table {name} has no column {', '.join(missing)}.", "Name another --results-table."
        )
    ours = {column for column, _ in COLUMNS}
    return frame.selectExpr(
        *(
            sql.name(column) if column.lower() in ours else f"NULL AS {sql.name(column)}"
            for column in spark.table(name).columns
        )
    )
