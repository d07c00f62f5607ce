"""Check requests: the selected clauses and their data, as frames, datasets or small tables."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import KW_ONLY, dataclass, field
from datetime import date, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dq.contracts.access.access_policy import is_remote
from dq.contracts.install import install_command
from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.outcome import DqError, MissingTool, UsageError, nearest
from dq.contracts.slo import read_slos
from dq.contracts.sql import text as sql
from dq.contracts.types import MAX_PRECISION, DataType, row_type
from dq.dataquality.answers.memory import RequiresSpark, SmallTable, small_table
from dq.dataquality.answers.python_tasks import WORTH_ROWS
from dq.dataquality.answers.sources import ALL, Optimization, ReadOptions
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import Clause, RowScope
from dq.dataquality.clauses.coverage import ClauseCoverage, as_typed, bind_clauses, select
from dq.dataquality.clauses.foreign_key import NO_NEIGHBOURS, ContractSet
from dq.dataquality.clauses.kind import CheckKinds
from dq.dataquality.model.column import struct_field
from dq.dataquality.model.metric import Failure
from dq.dataquality.model.run_context import Partition, PastResult, RunContext
from dq.dataquality.spark.columnar_files import NULL_PARTITION, only_partitions
from dq.dataquality.spark.dataset import Dataset, open_folders, open_table
from dq.dataquality.spark.measure import OpenObject, schema_of
from dq.dataquality.spark.schema import type_ddl
from dq.dataquality.spark.session import attempt
from dq.dataquality.text import text_row_type
from dq.lake.types import KNOWN_TYPES, arrow_type, from_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from dq.dataquality.answers.partition_cache import PartitionCache


# Frames of other libraries (pandas, polars, Arrow) as Spark DataFrames, through Arrow.

# Earlier major versions of Spark cannot create a DataFrame from an Arrow table.
_FIRST_WITH_ARROW = 4


def as_spark(
    data: object, schema_object: SchemaObject, spark: SparkSession | None = None
) -> DataFrame | Dataset:
    """Return the data for Spark: DataFrames and Datasets unchanged, frames of pandas, polars or Arrow
    converted.

    Columns keep their types, except that categories become their values, unsigned integers the next larger
    type and times of day strings; fractions below a microsecond are truncated. A timestamp with a zone is an
    instant, one without is a civil time. pandas' NaN becomes NULL; NaN of polars and Arrow stays. A column
    without values gets the type that the contract promises. The pandas index is not a column.

    Raises:
        UsageError: A streaming frame, duplicate names (ignoring case), a column type unknown to Arrow or
            Spark, or no given or active Spark session.
    """
    if isinstance(data, Dataset):
        return data
    if _is_spark_frame(data):
        return require_batch(data)
    typed, untyped_names = _spark_table(data, schema_object)
    session = spark or active_session()
    if session is None:
        raise UsageError(f"this {_type_name(data)} needs a Spark session.", session_hint())
    return _with_types(_create_frame(session, typed), schema_object, untyped_names)


def as_arrow(data: object, schema_object: SchemaObject) -> pa.Table:
    """Return a frame of pandas, polars or Arrow as an Arrow table, with the columns and types of `as_spark`.

    Raises UsageError as `as_spark`.
    """
    import pyarrow as pa

    typed, untyped_names = _spark_table(data, schema_object)
    promised_type = text_row_type(schema_object)
    for index, name in enumerate(typed.column_names):
        data_type = struct_field(promised_type, name) if name in untyped_names else None
        if data_type is not None:
            typed = typed.set_column(index, name, pa.nulls(typed.num_rows, arrow_type(data_type)))
    return typed


def needs_session(data: object, spark: SparkSession | None) -> bool:
    """Return True if the data is a frame of another library, and no session is given or active."""
    return (
        spark is None
        and not isinstance(data, Dataset)
        and not _is_spark_frame(data)
        and active_session() is None
    )


def session_hint() -> str:
    """Return how to pass a Spark session, and how to install Spark if it is missing."""
    start = "start a Spark session, or pass it: spark=SparkSession.builder.getOrCreate()."
    return f"S{start[1:]}" if find_spec("pyspark") else f"Run {install_command('spark')}, then {start}"


def _is_spark_frame(data: object) -> bool:
    return hasattr(data, "sparkSession") and hasattr(data, "schema")


def _spark_table(data: object, schema_object: SchemaObject) -> tuple[pa.Table, list[str]]:
    """Return a frame as an Arrow table with Spark's types, and the names of columns without values."""
    table = _arrow(data, schema_object)
    names = [str(name) for name in table.column_names]
    _refuse_alike(names)
    if not names:
        raise UsageError("the frame has no columns.", "Pass the object's rows.")
    return _with_spark_types(table)


def require_batch(frame: Any) -> DataFrame:
    """Return the Spark frame. Raises UsageError, explaining foreachBatch, if it is a stream."""
    if frame.isStreaming:
        raise UsageError(
            "a streaming frame is unbounded and cannot be tested as a whole.",
            "Test each micro-batch: stream.writeStream.foreachBatch(lambda batch, number:"
            ' dq.check("orders.odcs.yaml", batch).raise_for_status()).start()',
        )
    return frame  # type: ignore[no-any-return]  # of either Spark


def _type_name(data: object) -> str:
    return f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}"


def _arrow(data: object, schema_object: SchemaObject) -> pa.Table:
    type_name = _type_name(data)
    reader = _READERS.get(type_name)
    if reader is None:
        raise UsageError(
            f"{type_name} is not a supported frame type.",
            "Pass a DataFrame of Spark, pandas or polars, or an Arrow table.",
        )
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise MissingTool("Frames other than Spark's need pyarrow.", install_command("sample")) from error
    try:
        return reader(data, schema_object)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        first = str(error.args[-1] if error.args else error).strip().split("\n")[0][:200]
        raise UsageError(f"the frame cannot be read: {first}.", "Give each column a single type.") from error


def _pandas(data: Any, schema_object: SchemaObject) -> pa.Table:
    import pyarrow as pa

    if data.columns.nlevels > 1:
        raise UsageError("the frame has multi-level columns.", "Give each column a single name.")
    names = [str(name) for name in data.columns]
    _refuse_alike(names)
    index_names = [str(name) for name in data.index.names if name is not None and str(name) not in names]
    index_columns = [name for name in index_names if struct_field(row_type(schema_object), name) is not None]
    if index_columns:
        raise UsageError(
            f"{', '.join(index_columns)} is the index of the frame, not a column.",
            "Call frame.reset_index() first.",
        )
    table = pa.Table.from_pandas(data.set_axis(names, axis=1), preserve_index=False)
    if len(data):
        return table
    # pandas gives every column of an empty frame a float type.
    types = [
        pa.null() if pa.types.is_float64(arrow_field.type) else arrow_field.type
        for arrow_field in table.schema
    ]
    return pa.schema(list(zip(names, types, strict=True))).empty_table()


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
        message = f"the frame has columns that Spark cannot distinguish: {', '.join(map(repr, twice))}."
        raise UsageError(message, "Give each a unique name; names are case-insensitive.")


def active_session() -> SparkSession | None:
    """Return the active Spark session, or None without one or without PySpark."""
    # Without PySpark imported by somebody, there is no session, and its import takes a second.
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _with_spark_types(table: pa.Table) -> tuple[pa.Table, list[str]]:
    """Return the table with Spark's types, and the names of columns without values."""
    import pyarrow as pa

    columns, untyped_names = [], []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_null(column.type):
            untyped_names.append(name)
            columns.append(column.cast(pa.string()))
            continue
        held_type = from_arrow(column.type)
        if not _is_supported(held_type):
            raise UsageError(
                f"column {name!r} is {column.type}, which Spark does not have.", "Cast or drop it."
            )
        target_type = arrow_type(held_type)
        try:
            columns.append(column if target_type == column.type else column.cast(target_type, safe=False))
        except pa.ArrowException as error:
            raise UsageError(
                f"column {name!r} is {column.type}, which cannot be read as {target_type}.", "Cast it."
            ) from error
    return pa.table(columns, names=list(table.column_names)), untyped_names


def _is_supported(data_type: DataType) -> bool:
    if data_type.parts or data_type.name == "struct":
        return all(map(_is_supported, data_type.parts))
    if data_type.name == "decimal":
        precision, scale = data_type.numbers
        return precision <= MAX_PRECISION and 0 <= scale <= precision
    # Spark has no time-of-day type; such columns become strings.
    return data_type.name in KNOWN_TYPES or data_type.name.startswith("time")


def _create_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    # Timestamps without a zone must not be converted with the session's zone.
    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    if int(spark.version.partition(".")[0]) >= _FIRST_WITH_ARROW:
        return spark.createDataFrame(table, schema)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return spark.createDataFrame(rows, schema)


def _with_types(frame: DataFrame, schema_object: SchemaObject, untyped_names: list[str]) -> DataFrame:
    """Give columns without values the type that the contract promises, else string."""
    promised_type = text_row_type(schema_object)
    expressions = []
    for name in frame.columns:
        data_type = struct_field(promised_type, name) if name in untyped_names else None
        column = sql.name(name)
        expressions.append(
            column if data_type is None else f"CAST(NULL AS {type_ddl(data_type)}) AS {column}"
        )
    return frame.selectExpr(*expressions) if untyped_names else frame


# Request and clause selection, shared by all operations that evaluate clauses.

_VARIABLE = "${"
_SUBSTITUTE = "spark.sql.variable.substitute"


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Request to check one object of a contract.

    Args:
        data: A DataFrame, or a Dataset (see `dataset.locate`), which needs `spark` or `start_session`; for
            `sample.check_frame` an Arrow table.
        object: Name of the object; optional if the contract has only one.
        partitions: Partitions to read, as column-to-value texts as in the path. Together they are one scope;
            clauses about the whole table are still tested on the whole table.
        now: Aware time of the run, from which the age of data is computed.
        other_objects: Whole data of the objects that relationships refer to, by name; the object itself may
            be missing. A relationship to an object without data is an error.
        neighbours: Contracts that relationships may refer to; their objects are called e.g. `crm/customers`.
        history: Earlier results, for rules that compare with them.
        arrivals: Minutes from due to delivered of the object's deliveries, see `RunContext`.
        unusual_level: Level of each test of unusual numbers, see `RunContext`.
        optimizations: Optimizations that may be used; verdicts do not depend on them.
        tasks_from: Number of rows from which Python tasks are used.
        rules: Checks, clause paths, or ids or names of quality rules to test; all if empty.
        memory: Partition cache for clauses about the whole table; `now` must then be the real time.
        limit_seconds: Time limit of SQL, patterns and functions written by the contract's author. Exceeding
            it is an error of their clauses only (see `measure.measure`).
        verify_statistics: Share (0 to 1) of the answers from statistics that is recounted from the rows;
            sampled with `now` as part of the seed.
        samples: Look up keys of failing rows.
        start_session: Starts a session if one is needed. Small tables are then read in this process, and
            `spark` is only inspected.
    """

    contract: Contract
    data: DataFrame | Dataset
    object: str | None = None
    _: KW_ONLY
    spark: SparkSession | None = None
    partitions: Sequence[Mapping[str, str]] | None = None
    now: datetime | None = None
    kinds: CheckKinds | None = None
    other_objects: Mapping[str, DataFrame | Dataset] | None = None
    history: Sequence[PastResult] | None = None
    arrivals: Mapping[Partition, float] = field(default_factory=dict)
    unusual_level: float | None = None
    optimizations: Set[Optimization] = ALL
    tasks_from: int = WORTH_ROWS
    rules: Sequence[str] = ()
    memory: PartitionCache | None = None
    limit_seconds: float | None = None
    neighbours: ContractSet = NO_NEIGHBOURS
    verify_statistics: float = 0.0
    samples: bool = True
    start_session: Callable[[], SparkSession] | None = None

    @property
    def options(self) -> ReadOptions:
        """Options for reading the data."""
        return ReadOptions(self.optimizations, self.tasks_from, self.limit_seconds)

    def session(self) -> SparkSession:
        """Return the session to read the data with. Raises UsageError for a Dataset without one."""
        if self.start_session is not None:
            return self.start_session()
        if not isinstance(self.data, Dataset):
            return self.data.sparkSession
        if self.spark is None:
            raise UsageError("reading a Dataset needs a Spark session.", "Pass spark=….")
        return self.spark


class OpenedData:
    """Data of a request: in this process if it is small, and opened by Spark on demand.

    Opening it with Spark raises the errors of `open_data`, and RequiresSpark if Spark's schema differs from
    the one read in this process.
    """

    def __init__(self, request: Request, *, in_memory: bool = True) -> None:
        self._request = request
        self.small = _read_in_memory(request) if in_memory else None

    @functools.cached_property
    def schema(self) -> DataType:
        """Columns and types, as Spark reads them."""
        return schema_of(self.requested) if self.small is None else self.small.schema

    @functools.cached_property
    def table(self) -> DataFrame:
        """All rows, with the columns of the requested partitions, and perhaps others."""
        request = self._request
        if request.partitions and opens_only_scope(request.data):
            return _open_for_request(request, request.data, None)
        return self.requested

    @functools.cached_property
    def requested(self) -> DataFrame:
        """Rows with the columns of the requested partitions: of all partitions, or at least of these."""
        request, small = self._request, self.small
        if small is None:
            return _open_for_request(request, request.data, request.partitions)
        assert isinstance(request.data, Dataset)
        spark, data = request.session(), request.data
        if data.partitions:
            frame: DataFrame | Failure = open_data(data, spark, request.partitions)
        else:
            # The schema is known, which spares Spark a job to infer it.
            frame = attempt(lambda: open_folders(spark, data, small.schema, [str(data.path)]))
        if isinstance(frame, Failure) or schema_of(frame) != small.schema:
            raise RequiresSpark
        return _require_plain_names(frame)

    def rows(self, scope: RowScope) -> DataFrame:
        """Return the rows that clauses of a scope apply to."""
        partitions = self._request.partitions if scope is RowScope.PARTITION else None
        return only_partitions(self.requested, partitions) if partitions else self.table

    def source(self, scope: RowScope) -> DataFrame:
        """Return a frame that has at least the rows that clauses of a scope apply to."""
        return self.requested if scope is RowScope.PARTITION else self.table

    def small_rows(self, scope: RowScope) -> SmallTable | None:
        """Return the rows of a scope in this process, or None if Spark has to read them."""
        if self.small is None or scope is RowScope.PARTITION or not self._request.partitions:
            return self.small
        return self._full_table

    @functools.cached_property
    def _full_table(self) -> SmallTable | None:
        """All partitions in this process, with the columns of the requested ones."""
        assert isinstance(self._request.data, Dataset)
        assert self.small is not None
        try:
            full_table = small_table(self._request.data)
        except RequiresSpark:
            return None
        return full_table if full_table.schema == self.small.schema else None


# Other values of these settings change how Spark reads or compares the same files.
_REQUIRED_SETTINGS = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}


def _read_in_memory(request: Request) -> SmallTable | None:
    """Return the requested partitions, or the table, read in this process, or None if Spark has to."""
    data, spark = request.data, request.spark
    if (
        not isinstance(data, Dataset)
        or Optimization.SMALL_TABLES not in request.optimizations
        or request.verify_statistics
        or (spark is not None and request.start_session is None)
        or (request.partitions and not data.partitions)
        or not (spark is None or _has_required_settings(spark, data))
    ):
        return None
    try:
        return small_table(data, request.partitions or ())
    except RequiresSpark:
        return None


def _has_required_settings(spark: SparkSession, data: Dataset) -> bool:
    """Return True if the session reads these files like dq's own session."""
    names = {name.lower() for name in data.partitions}
    has_instants = any(
        name.lower() in names and kind.name == "timestamp"
        for name, kind in zip(data.columns.names, data.columns.parts, strict=True)
    )
    return (
        all(spark.conf.get(name, value) == value for name, value in _REQUIRED_SETTINGS.items())
        and (is_remote(data.path or "") or _is_local_default(spark))
        and (is_in_utc(spark) or not has_instants)
    )


def is_in_utc(spark: SparkSession | None) -> bool:
    """Return True if the session, or the one that dq creates, reads and writes instants in UTC."""
    return spark is None or spark.conf.get("spark.sql.session.timeZone") == "UTC"


def _is_local_default(spark: SparkSession) -> bool:
    """Return True if a path without a scheme is local, i.e. not on HDFS or on a Spark Connect server."""
    context = getattr(spark, "sparkContext", None)
    default_fs = context and context._jsc.hadoopConfiguration().get("fs.defaultFS")
    return str(default_fs).startswith("file:")


@dataclass(frozen=True, slots=True)
class CheckSelection:
    """Object and clauses selected by a request, before any data is read."""

    schema_object: SchemaObject
    kinds: CheckKinds
    clauses: tuple[Clause, ...]
    coverage: tuple[ClauseCoverage, ...]

    def bind(self, request: Request, schema: DataType, context: RunContext) -> tuple[Clause, ...]:
        """Return the clauses bound to this schema and run."""
        clauses = bind_clauses(schema, self.clauses, context)
        file_format = request.data.format if isinstance(request.data, Dataset) else None
        return as_typed(self.schema_object, clauses, self.kinds, file_format or "")


def select_clauses(request: Request) -> CheckSelection:
    """Select the object and clauses of a request.

    Raises UsageError for an unknown object or rule, a misspelt partition column, an impossible date, a `now`
    without time zone, and an invalid share.
    """
    contract, now = request.contract, request.now
    if not 0 <= request.verify_statistics <= 1:
        raise UsageError(
            f"verify_statistics={request.verify_statistics} is not between 0 and 1.",
            "Pass a number from 0 (none) to 1 (all).",
        )
    if now is not None and now.utcoffset() is None:
        raise UsageError(f"now={now} has no time zone.", "Add one, e.g. datetime.now(timezone.utc).")
    schema_object = find_object(contract, request.object)
    for partition in request.partitions or ():
        check_partition(schema_object, partition)
    kinds = built_in() if request.kinds is None else request.kinds
    selected = select(contract, schema_object, kinds, request.rules, neighbours=request.neighbours)
    return CheckSelection(schema_object, kinds, selected.clauses, selected.coverage)


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def check_partition(schema_object: SchemaObject, partition: Mapping[str, str]) -> None:
    """Raise UsageError for a misspelt column or an impossible date, before Spark starts to open the data.

    A column that resembles none of the contract's is left to the data: the contract may not list it.
    """
    columns = {(prop.physical_name or prop.name or "").lower(): prop for prop in schema_object.properties}
    for column, text in partition.items():
        prop = columns.get(column.lower())
        if prop is None:
            names = [key.physical_name or key.name or "" for key in schema_object.partition_keys()]
            similar = nearest(column, names)
            if similar is not None:
                raise UsageError(
                    f"unknown partition column {column!r} of {schema_object.name!r}.",
                    f"Did you mean {similar!r}?",
                )
        elif prop.logical_type == "date" and _may_be_misspelt_date(prop, text):
            try:
                date.fromisoformat(text)
            except ValueError as error:
                raise UsageError(
                    f"{text!r} is not a valid value of the partition column {column!r} of type date.",
                    "Write it as in the path.",
                ) from error


def _may_be_misspelt_date(prop: Property, text: str) -> bool:
    """Return whether a value must be a date: of a date column, or in a date's form in a column of text."""
    if text == NULL_PARTITION:
        return False
    return (prop.physical_type or "date").lower() == "date" or _DATE.fullmatch(text) is not None


def context_for(request: Request) -> RunContext:
    """Return the time, partitions, history and calendar of a request."""
    partitions = tuple(tuple(sorted(partition.items())) for partition in request.partitions or ())
    history = request.history
    calendar = None
    if history:
        name = find_object(request.contract, request.object).name
        slos = (slo for slo in read_slos(request.contract)[0] if slo.object.name == name)
        calendar = next((slo.schedule.calendar for slo in slos if slo.schedule.calendar), None)
    past = None if history is None else tuple(history)
    return RunContext(request.now, partitions, past, calendar, request.arrivals, request.unusual_level)


def find_object(contract: Contract, name: str | None) -> SchemaObject:
    """Return the object of this name, or the only object. Raises UsageError, listing the names."""
    names = ", ".join(schema_object.name for schema_object in contract.objects) or "none"
    if name is None and len(contract.objects) == 1:
        return contract.objects[0]
    schema_object = contract.object(name) if name is not None else None
    if schema_object is None:
        problem = f"has no object {name!r}" if name is not None else "does not have exactly one object"
        raise UsageError(f"contract {contract.id} {problem}; its objects: {names}.", "Specify one of them.")
    return schema_object


def open_data(
    data: DataFrame | Dataset,
    spark: SparkSession | None,
    scope: Sequence[Mapping[str, str]] | None = None,
) -> DataFrame:
    """Return the data as a DataFrame; a Dataset is opened with `open_table`.

    Raises UsageError without a session, for a streaming frame, and for column names with variables that the
    session would substitute.
    """
    if not isinstance(data, Dataset):
        return _require_plain_names(require_batch(data))
    if spark is None:
        raise UsageError("a Dataset needs a Spark session.", "Pass spark=….")
    return _require_plain_names(open_table(spark, data, scope))


def opens_only_scope(data: DataFrame | Dataset) -> bool:
    """Return whether rows outside of the scope may be absent from a frame of `open_table`."""
    return isinstance(data, Dataset) and bool(data.layout or data.external_partitions)


def _open_for_request(
    request: Request, data: DataFrame | Dataset, scope: Sequence[Mapping[str, str]] | None
) -> DataFrame:
    return open_data(data, request.session() if isinstance(data, Dataset) else None, scope)


def _require_plain_names(frame: DataFrame) -> DataFrame:
    """Return the frame. Raises UsageError if a column name holds a variable that its session would
    substitute.

    Spark substitutes `${env:…}` in back-quoted names too, which would put environment variables into
    messages.
    """
    if _VARIABLE in frame.schema.json() and str(frame.sparkSession.conf.get(_SUBSTITUTE, "true")) == "true":
        name = next((name for name in frame.columns if _VARIABLE in name), "a field inside a column")
        raise UsageError(
            f"{name!r} contains a variable that this Spark session substitutes.",
            f"Set {_SUBSTITUTE} to false in the session, or rename the column.",
        )
    return frame


def object_opener(
    request: Request, schema_object: SchemaObject, table: Callable[[], DataFrame]
) -> OpenObject:
    """Return a function that opens other objects by name, each once; `table` opens the object itself."""
    other_objects = request.other_objects or {}

    @functools.cache
    def open_object(name: str) -> DataFrame | Failure:
        if name == schema_object.name and name not in other_objects:
            return table()
        data = other_objects.get(name)
        if data is None:
            return Failure(f"no data of {name!r} was given; pass other_objects={{{name!r}: …}}")
        try:
            return _open_for_request(request, data, None)
        except DqError as error:
            return Failure(error.message)

    return open_object
