"""The rows of the partitions that are asked for, as a filter that Spark applies to paths."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from dq.contracts.outcome import UsageError
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.model.column import field
from dq.lake.types import from_spark_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def only(frame: DataFrame, partitions: Sequence[Mapping[str, str]]) -> DataFrame:
    """The rows of these partitions, each given as column and value text, as a path has them.

    The filter compares each column with a literal of its own type, so that Spark reads no other partition.
    Raises UsageError for a column that is not there or a text that cannot be a value of it.
    """
    return frame.where(_any_of(frame, partitions))


def without(frame: DataFrame, partitions: Sequence[Mapping[str, str]]) -> DataFrame:
    """The rows of all other partitions. Raises UsageError as `only`."""
    return frame.where(f"NOT coalesce({_any_of(frame, partitions)}, FALSE)")


def _any_of(frame: DataFrame, partitions: Sequence[Mapping[str, str]]) -> str:
    schema = from_spark_json(frame.schema.jsonValue())
    wanted = [
        sql.all_of(*(_equals(schema, column, text) for column, text in partition.items()))
        for partition in partitions
    ]
    return sql.any_of(*wanted)


# What Hive writes into the path for NULL.
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def _equals(schema: DataType, column: str, text: str) -> str:
    kind = field(schema, column)
    if kind is None:
        known = ", ".join(schema.names)
        raise UsageError(
            f"there is no column {column!r} for a partition; there are: {known}.", "Correct its name."
        )
    if text == NULL_PARTITION:
        return f"{sql.name(column)} IS NULL"
    try:
        made = literal(text, kind)
    except (ValueError, ArithmeticError) as error:
        message = f"{text!r} cannot be a value of the partition column {column!r}, which is {kind}."
        raise UsageError(message, "Write it as it stands in the path.") from error
    if made is None:
        raise UsageError(f"partitions cannot be chosen by {column!r}, which is {kind}.", "Leave it out.")
    return f"{sql.name(column)} = {made}"


def literal(text: str, kind: DataType) -> str | None:
    """The text of a path as a value of this type in Spark SQL; None for a type that no path can hold.

    Raises ValueError or ArithmeticError for a text that is no value of it.
    """
    make = _LITERALS.get(kind.name)
    return None if make is None else make(text)


def _flag(text: str) -> str:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.upper()


def _real(text: str, kind: str) -> str:
    # Spark has no literal of NaN or of infinity.
    number = float(text)
    return f"CAST({f'{number!r}D' if math.isfinite(number) else sql.text(str(number))} AS {kind})"


def _instant(text: str) -> str:
    # Spark reads the path in the session's zone, and so must the literal be read.
    dt.datetime.fromisoformat(text)
    return f"CAST({sql.text(text)} AS TIMESTAMP)"


_LITERALS: dict[str, Callable[[str], str]] = {
    "string": sql.text,
    "date": lambda text: sql.date(dt.date.fromisoformat(text)),
    "timestamp": _instant,
    "boolean": _flag,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), lambda text: sql.number(int(text))),
    "decimal": lambda text: sql.number(Decimal(text)),
    "double": lambda text: _real(text, "DOUBLE"),
    "float": lambda text: _real(text, "FLOAT"),
}
