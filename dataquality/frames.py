"""Frames of others (pandas, polars, Arrow) as DataFrames of Spark, by way of Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dq.contracts.columns import row_type
from dq.contracts.model import SchemaObject
from dq.contracts.shared.errors import MissingTool, UsageError
from dq.contracts.shared.install import install_command
from dq.contracts.sql import text as sql
from dq.dataquality.model.column import field
from dq.dataquality.spark.readers.dataset import Dataset
from dq.dataquality.spark.schema import type_ddl
from dq.dataquality.text.text_types import text_row_type

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


def _polars(data: Any, _: SchemaObject) -> pa.Table:
    return data.to_arrow()


def _lazy(data: Any, _: SchemaObject) -> pa.Table:
    return data.collect().to_arrow()


def _batch(data: Any, _: SchemaObject) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches([data])


def _itself(data: Any, _: SchemaObject) -> pa.Table:
    return data


_READERS: Mapping[str, Any] = {
    "pandas.DataFrame": _pandas,
    "polars.DataFrame": _polars,
    "polars.LazyFrame": _lazy,
    "pyarrow.Table": _itself,
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
        wanted = _spark_type(column.type)
        if wanted is None:
            raise UsageError(
                f"column {name!r} is {column.type}, which Spark does not have.", "Cast it, or leave it out."
            )
        try:
            columns.append(column if wanted == column.type else column.cast(wanted, safe=False))
        except pa.ArrowException as error:
            raise UsageError(
                f"column {name!r} is {column.type}, which cannot be read as {wanted}.", "Cast it."
            ) from error
    return pa.table(columns, names=list(table.column_names)), untyped


def _spark_type(kind: pa.DataType) -> pa.DataType | None:
    """The type of Arrow that Spark takes for this one; None where there is none."""
    import pyarrow as pa

    t = pa.types
    if t.is_dictionary(kind):
        return _spark_type(kind.value_type)
    if t.is_struct(kind):
        parts = [(kind.field(at).name, _spark_type(kind.field(at).type)) for at in range(kind.num_fields)]
        return None if any(part is None for _, part in parts) else pa.struct(parts)
    if t.is_map(kind):
        key, item = _spark_type(kind.key_type), _spark_type(kind.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        inner = _spark_type(kind.value_type)
        return None if inner is None else pa.list_(inner)
    if t.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if t.is_decimal(kind):
        fits = kind.precision <= 38 and 0 <= kind.scale <= kind.precision
        return pa.decimal128(kind.precision, kind.scale) if fits else None
    if t.is_uint64(kind):
        return pa.decimal128(20, 0)
    if str(kind) in _AS_OTHER:
        return pa.type_for_alias(_AS_OTHER[str(kind)])
    plain = (t.is_integer, t.is_floating, t.is_boolean, t.is_date32, t.is_string, t.is_binary)
    return kind if any(test(kind) for test in plain) else None


_AS_OTHER = {
    **dict.fromkeys(("large_string", "string_view"), "string"),
    **dict.fromkeys(("large_binary", "binary_view"), "binary"),
    "uint8": "int16",
    "uint16": "int32",
    "uint32": "int64",
    "halffloat": "float",
    "date64[ms]": "date32",
    **dict.fromkeys(("time32[s]", "time32[ms]", "time64[us]", "time64[ns]"), "string"),
    # Inside of lists and structs.
    "null": "string",
}


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
