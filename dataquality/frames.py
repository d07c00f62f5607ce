"""Frames of others (pandas, polars, Arrow) as DataFrames of Spark, by way of Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dq.contracts.model import SchemaObject
from dq.contracts.shared.install import install_command
from dq.contracts.shared.outcome import MissingTool, UsageError
from dq.contracts.sql import text as sql
from dq.contracts.types import MAX_PRECISION, DataType, row_type
from dq.dataquality.model.column import field
from dq.dataquality.spark.readers.open import Dataset
from dq.dataquality.spark.schema import type_ddl
from dq.dataquality.text import text_row_type
from dq.lake.types import KNOWN, arrow_type, from_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

# Before, Spark takes no Arrow table, and its rows cross to the JVM as values of Python.
_FIRST_WITH_ARROW = 4


def as_spark(data: object, one: SchemaObject, spark: SparkSession | None = None) -> DataFrame | Dataset:
    """The data as Spark has it: a DataFrame or a Dataset as it is, a frame of pandas, polars or Arrow as one.

    A column keeps its type: categories are their values, unsigned integers the next larger type, times of
    the day texts, and what is finer than a microsecond is cut off. A timestamp with a zone is an instant,
    one without is a civil time. NaN of pandas is NULL, as pandas means it; that of polars and Arrow stays. A
    column without any value has the type that the contract promises. pandas' index is no column.

    Raises UsageError for a streaming frame, for names that stand twice or only differ by case, for a column
    that has no type in Arrow or Spark, and where no Spark session is given or active.
    """
    if isinstance(data, Dataset):
        return data
    if hasattr(data, "sparkSession") and hasattr(data, "schema"):
        return whole(data)
    table = _arrow(data, one)
    names = [str(name) for name in table.column_names]
    _refuse_alike(names)
    if not names:
        raise UsageError("the frame has no columns.", "Hand in the object's rows.")
    session = spark or _active()
    typed, untyped = _typed(table)
    return _with_types(_made(session, typed), one, untyped)


def whole(frame: Any) -> DataFrame:
    """The frame of Spark, as long as it has an end. Raises UsageError, with the recipe, for a stream."""
    if frame.isStreaming:
        raise UsageError(
            "a streaming frame has no end, and cannot be tested as a whole.",
            "Test each micro-batch: stream.writeStream.foreachBatch(lambda batch, number:"
            ' dq.check("orders.odcs.yaml", batch).raise_for_status()).start()',
        )
    return frame  # type: ignore[no-any-return]  # of either Spark


def _arrow(data: object, one: SchemaObject) -> pa.Table:
    kind = f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}"
    make = _READERS.get(kind)
    if make is None:
        raise UsageError(
            f"{kind} is no frame that can be tested.",
            "Hand in a DataFrame of Spark, pandas or polars, or an Arrow table.",
        )
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise MissingTool("A frame of another library needs pyarrow.", install_command("spark")) from error
    try:
        return make(data, one)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        first = str(error.args[-1] if error.args else error).strip().split("\n")[0][:200]
        raise UsageError(f"the frame cannot be read: {first}.", "Give its columns one type each.") from error


def _pandas(data: Any, one: SchemaObject) -> pa.Table:
    import pyarrow as pa

    if data.columns.nlevels > 1:
        raise UsageError("the frame's columns have several levels.", "Give each column one name.")
    names = [str(name) for name in data.columns]
    _refuse_alike(names)
    hidden = [str(name) for name in data.index.names if name is not None and str(name) not in names]
    wanted = [name for name in hidden if field(row_type(one), name) is not None]
    if wanted:
        raise UsageError(
            f"{', '.join(wanted)} is the index of the frame, which is no column of it.",
            "Call frame.reset_index() first.",
        )
    table = pa.Table.from_pandas(data.set_axis(names, axis=1), preserve_index=False)
    if len(data):
        return table
    # Without rows, pandas calls a column of anything one of floats.
    kinds = [pa.null() if pa.types.is_float64(each.type) else each.type for each in table.schema]
    return pa.schema(list(zip(names, kinds, strict=True))).empty_table()


def _batch(data: Any, _: SchemaObject) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches([data])


_READERS: Mapping[str, Any] = {
    "pandas.DataFrame": _pandas,
    "polars.DataFrame": lambda data, _: data.to_arrow(),
    "polars.LazyFrame": lambda data, _: data.collect().to_arrow(),
    "pyarrow.Table": lambda data, _: data,
    "pyarrow.RecordBatch": _batch,
}


def _refuse_alike(names: list[str]) -> None:
    lowered = [name.lower() for name in names]
    twice = sorted({name for name in names if lowered.count(name.lower()) > 1})
    if twice:
        said = f"the frame has columns that Spark cannot tell apart: {', '.join(map(repr, twice))}."
        raise UsageError(said, "Give each a name of its own; case makes no difference.")


def _active() -> SparkSession:
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    if found is None:
        raise UsageError(
            "a frame of another library is tested on Spark.", "Give spark=…, or start a session."
        )
    return found


def _typed(table: pa.Table) -> tuple[pa.Table, list[str]]:
    """The table with types that Spark has, and the names of columns without any."""
    import pyarrow as pa

    columns, untyped = [], []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_null(column.type):
            untyped.append(name)
            columns.append(column.cast(pa.string()))
            continue
        held = from_arrow(column.type)
        if not _known(held):
            raise UsageError(
                f"column {name!r} is {column.type}, which Spark does not have.", "Cast it, or leave it out."
            )
        wanted = arrow_type(held)
        try:
            columns.append(column if wanted == column.type else column.cast(wanted, safe=False))
        except pa.ArrowException as error:
            raise UsageError(
                f"column {name!r} is {column.type}, which cannot be read as {wanted}.", "Cast it."
            ) from error
    return pa.table(columns, names=list(table.column_names)), untyped


def _known(kind: DataType) -> bool:
    if kind.parts or kind.name == "struct":
        return all(map(_known, kind.parts))
    if kind.name == "decimal":
        precision, scale = kind.numbers
        return precision <= MAX_PRECISION and 0 <= scale <= precision
    # Spark has no type for a time of the day; it becomes a text.
    return kind.name in KNOWN or kind.name.startswith("time")


def _made(spark: SparkSession, table: pa.Table) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    # A time without zone must not pass through the session's.
    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    if int(spark.version.partition(".")[0]) >= _FIRST_WITH_ARROW:
        return spark.createDataFrame(table, schema)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return spark.createDataFrame(rows, schema)


def _with_types(frame: DataFrame, one: SchemaObject, untyped: list[str]) -> DataFrame:
    """The columns without any value with the type that the contract promises, else as texts."""
    promised = text_row_type(one)
    made = []
    for name in frame.columns:
        kind = field(promised, name) if name in untyped else None
        column = sql.name(name)
        made.append(column if kind is None else f"CAST(NULL AS {type_ddl(kind)}) AS {column}")
    return frame.selectExpr(*made) if untyped else frame
