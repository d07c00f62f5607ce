"""What a run is asked for, on which data: frames, datasets and small tables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dq.contracts.access.access_policy import is_remote
from dq.contracts.install import install_command
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import DqError, MissingTool, UsageError
from dq.contracts.sql import text as sql
from dq.contracts.types import MAX_PRECISION, DataType, row_type
from dq.dataquality.answers.memory import LeftToSpark, SmallTable, small_table
from dq.dataquality.answers.python_tasks import WORTH_ROWS
from dq.dataquality.answers.sources import ALL, Lever, ReadOptions
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import Clause, RowScope
from dq.dataquality.clauses.coverage import Account, as_typed, asked_of, select
from dq.dataquality.clauses.foreign_key import ALONE, Neighbours
from dq.dataquality.clauses.kind import Shelf
from dq.dataquality.model.column import field
from dq.dataquality.model.metric import Failure
from dq.dataquality.model.run_context import Earlier, EarlierMeasure, Occasion
from dq.dataquality.spark.columnar_files import only
from dq.dataquality.spark.dataset import Dataset, open_folders, open_table
from dq.dataquality.spark.measure import Others, schema_of
from dq.dataquality.spark.schema import type_ddl
from dq.dataquality.spark.session import attempt
from dq.dataquality.text import text_row_type
from dq.lake.types import KNOWN, arrow_type, from_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from dq.dataquality.answers.partition_cache import PartLedger


# Frames of others (pandas, polars, Arrow) as DataFrames of Spark, by way of Arrow.

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


# What a run is asked for, and how it stands before the data is read: the same for all that take clauses.

_VARIABLE = "${"
_SUBSTITUTE = "spark.sql.variable.substitute"


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One object of a contract on its data.

    `data` is a DataFrame, or a Dataset (see `dataset.locate`), for which `spark` is needed. `object` may be
    left out when the contract has one. `partitions` are column-to-value texts as they stand in the path:
    only these are read, together they are one scope, and what is promised of the table is tested on the
    table all the same. `now` is the aware time of the run, from which the age of data is counted.
    `others` are the whole data of the objects that relationships refer to, by name; the object
    itself need not be among them. A relationship to one that is not given is an error. `neighbours` are the
    contracts that relationships may lead into; their objects are called `crm/customers`. `history` is what
    earlier runs found (`results.earlier_runs`), for rules that compare with it.
    `levers` are the ways to read less; no verdict depends on them. Those that run Python tasks are used from
    `tasks_from` rows on.
    `rules` limits the test to the clauses of these checks, paths, or ids or names of quality rules; the
    report's account says which ones it left out. With a `memory`, what is promised of the table is told
    from kept counts of its folders and new ones of those that changed; `now` must then be the real time.
    SQL, patterns and functions of the contract's author that take longer than the limit are stopped, which
    is an error of their clauses alone (see `measure.measure`). `verify_statistics`, from 0 to 1, is the share
    of what statistics prove that is counted from the rows all the same; chance draws it anew with each `now`.
    Without `samples`, nobody looks for keys of the rows that break a clause. `begin` gives the session where
    one is needed: what of a small table needs none is told in this process then, and `spark`, the session
    that is there already, is only looked at. So it is without any session.
    """

    contract: Contract
    data: DataFrame | Dataset
    object: str | None = None
    _: KW_ONLY
    spark: SparkSession | None = None
    partitions: Sequence[Mapping[str, str]] | None = None
    now: datetime | None = None
    kinds: Shelf | None = None
    others: Mapping[str, DataFrame | Dataset] | None = None
    history: Sequence[Earlier | EarlierMeasure] | None = None
    levers: Set[Lever] = ALL
    tasks_from: int = WORTH_ROWS
    rules: Sequence[str] = ()
    memory: PartLedger | None = None
    limit_seconds: float | None = None
    neighbours: Neighbours = ALONE
    verify_statistics: float = 0.0
    samples: bool = True
    begin: Callable[[], SparkSession] | None = None

    @property
    def options(self) -> ReadOptions:
        """How its data may be read."""
        return ReadOptions(self.levers, self.tasks_from, self.limit_seconds)

    def session(self) -> SparkSession:
        """The session by which the data is read. Raises UsageError for a Dataset without one."""
        if self.begin is not None:
            return self.begin()
        if not isinstance(self.data, Dataset):
            return self.data.sparkSession
        if self.spark is None:
            raise UsageError("a place can only be read with a session.", "Give spark=….")
        return self.spark


class OpenedData:
    """The data of a request: in this process where it is small, and as Spark opens it where that is needed.

    Raises what `opened` raises, where Spark is asked, and LeftToSpark where it does not find what is held in
    this process.
    """

    def __init__(self, request: Request, *, in_memory: bool = True) -> None:
        self._request = request
        self.small = _small(request) if in_memory else None

    @functools.cached_property
    def schema(self) -> DataType:
        """The columns and types, as Spark has them."""
        return schema_of(self.table) if self.small is None else self.small.schema

    @functools.cached_property
    def table(self) -> DataFrame:
        """All rows, with the columns that they have in the partitions that are asked for."""
        request, small = self._request, self.small
        if small is None:
            return _opened(request, request.data, request.partitions)
        assert isinstance(request.data, Dataset)
        spark, data = request.session(), request.data
        if data.partitions:
            frame: DataFrame | Failure = opened(data, spark, request.partitions)
        else:
            # The files have one schema, which is known: Spark need not look for it in a job of its own.
            frame = attempt(lambda: open_folders(spark, data, small.schema, [str(data.path)]))
        if isinstance(frame, Failure) or schema_of(frame) != small.schema:
            raise LeftToSpark
        return _with_plain_names(frame)

    def rows(self, scope: RowScope) -> DataFrame:
        """The rows that clauses of a scope speak of."""
        parts = self._request.partitions if scope is RowScope.PARTITION else None
        return only(self.table, parts) if parts else self.table

    def small_rows(self, scope: RowScope) -> SmallTable | None:
        """The rows of a scope in this process; None where Spark has to read them."""
        data = self._request.data
        if self.small is None or scope is RowScope.PARTITION or not self._request.partitions:
            return self.small
        assert isinstance(data, Dataset)
        try:
            whole = small_table(data)
        except LeftToSpark:
            return None
        return whole if whole.schema == self.small.schema else None


# With other values, Spark may read or compare the same files otherwise.
_SETTINGS = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}


def _small(request: Request) -> SmallTable | None:
    """The partitions of a request, or its table, in this process; None where Spark has to read them.

    All of a partitioned table is Spark's: of its folders, answers are kept.
    """
    data, spark = request.data, request.spark
    if (
        not isinstance(data, Dataset)
        or Lever.SMALL_TABLES not in request.levers
        or request.verify_statistics
        or (spark is not None and request.begin is None)
        or bool(request.partitions) is not bool(data.partitions)
        or not (spark is None or _usual(spark, data))
    ):
        return None
    try:
        return small_table(data, request.partitions or ())
    except LeftToSpark:
        return None


def _usual(spark: SparkSession, data: Dataset) -> bool:
    """Whether a session reads these files as dq's own does, if at all."""
    return all(spark.conf.get(name, value) == value for name, value in _SETTINGS.items()) and (
        is_remote(data.path or "") or _of_this_machine(spark)
    )


def _of_this_machine(spark: SparkSession) -> bool:
    """Whether a path without a scheme is one of this machine: not of HDFS, nor of Spark Connect's server."""
    context = getattr(spark, "sparkContext", None)
    default = context and context._jsc.hadoopConfiguration().get("fs.defaultFS")
    return str(default).startswith("file:")


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a request asks, before any data is looked at."""

    one: SchemaObject
    kinds: Shelf
    clauses: tuple[Clause, ...]
    accounts: tuple[Account, ...]

    def on(self, request: Request, schema: DataType, occasion: Occasion) -> tuple[Clause, ...]:
        """The clauses as they are asked of data of this schema on an occasion."""
        clauses = asked_of(schema, self.clauses, occasion)
        form = request.data.format if isinstance(request.data, Dataset) else None
        return as_typed(self.one, clauses, self.kinds, form or "")


def choose(request: Request) -> Chosen:
    """Selects what is asked.

    Raises UsageError for an unknown object or rule, a `now` without zone and a share that is none.
    """
    contract, now = request.contract, request.now
    if not 0 <= request.verify_statistics <= 1:
        raise UsageError(
            f"verify_statistics={request.verify_statistics} is no share.",
            "Give a number from 0, nothing, to 1, everything.",
        )
    if now is not None and now.utcoffset() is None:
        raise UsageError(f"now={now} names no instant.", "Give it a zone: datetime.now(timezone.utc).")
    one = pick(contract, request.object)
    kinds = built_in() if request.kinds is None else request.kinds
    selected = select(contract, one, kinds, request.rules, neighbours=request.neighbours)
    return Chosen(one, kinds, selected.clauses, selected.accounts)


def occasion_of(request: Request) -> Occasion:
    """When, on which partitions and with which history a request is tested."""
    partitions = tuple(tuple(sorted(each.items())) for each in request.partitions or ())
    history = request.history
    return Occasion(request.now, partitions, None if history is None else tuple(history))


def pick(contract: Contract, name: str | None) -> SchemaObject:
    """The object of this name, or the only one. Raises UsageError, with the names there are."""
    names = ", ".join(one.name for one in contract.objects) or "none"
    if name is None and len(contract.objects) == 1:
        return contract.objects[0]
    found = contract.object(name) if name is not None else None
    if found is None:
        said = f"has no object {name!r}" if name is not None else "has not one object"
        raise UsageError(f"contract {contract.id} {said}; it has: {names}.", "Name one of them.")
    return found


def opened(
    data: DataFrame | Dataset,
    spark: SparkSession | None,
    scope: Sequence[Mapping[str, str]] | None = None,
) -> DataFrame:
    """The data as a DataFrame; of a Dataset as `open_table` gives it.

    Raises UsageError without a session, for a streaming frame, and for names that the session would fill in.
    """
    if not isinstance(data, Dataset):
        return _with_plain_names(whole(data))
    if spark is None:
        raise UsageError("a Dataset needs a Spark session to be opened.", "Give spark=….")
    return _with_plain_names(open_table(spark, data, scope))


def _opened(
    request: Request, data: DataFrame | Dataset, scope: Sequence[Mapping[str, str]] | None
) -> DataFrame:
    return opened(data, request.session() if isinstance(data, Dataset) else None, scope)


def _with_plain_names(frame: DataFrame) -> DataFrame:
    """The frame. Raises UsageError where a name in it holds a variable that its session would fill in.

    Spark substitutes `${env:…}` in back-quoted names too, so that a variable of this machine would stand in
    what is said of the column.
    """
    if _VARIABLE in frame.schema.json() and str(frame.sparkSession.conf.get(_SUBSTITUTE, "true")) == "true":
        name = next((name for name in frame.columns if _VARIABLE in name), "a field inside of a column")
        raise UsageError(
            f"{name!r} is a name in which this session of Spark fills in a variable.",
            f"Set {_SUBSTITUTE} to false in the session, or rename it.",
        )
    return frame


def others_of(request: Request, one: SchemaObject, table: Callable[[], DataFrame]) -> Others:
    """Opens the other objects when they are asked for, each once; `table` gives the object itself."""
    given = request.others or {}

    @functools.cache
    def other(name: str) -> DataFrame | Failure:
        if name == one.name and name not in given:
            return table()
        data = given.get(name)
        if data is None:
            return Failure(f"no data of {name!r} was given; hand it in: others={{{name!r}: …}}")
        try:
            return _opened(request, data, None)
        except DqError as error:
            return Failure(error.message)

    return other
