"""What a run is asked for, and how it stands before the data is read: the same for all that take clauses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from dq.contracts.access.access_policy import is_remote
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import DqError, UsageError
from dq.contracts.types import DataType
from dq.dataquality.answers.memory import LeftToSpark, SmallTable, small_table
from dq.dataquality.answers.partition_cache.cache import Memory
from dq.dataquality.answers.python_tasks.run import WORTH_ROWS
from dq.dataquality.answers.sources import ALL, Lever
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import Clause, RowScope
from dq.dataquality.clauses.coverage import Account
from dq.dataquality.clauses.foreign_key import ALONE, Neighbours
from dq.dataquality.clauses.kind import Shelf
from dq.dataquality.clauses.preparation import as_typed, asked_of, select
from dq.dataquality.frames import whole
from dq.dataquality.model.metric import Failure
from dq.dataquality.model.run_context import Earlier, EarlierMeasure, Occasion
from dq.dataquality.spark.measure import Others, schema_of
from dq.dataquality.spark.partitions import only
from dq.dataquality.spark.readers.open import Dataset, open_folders, open_table
from dq.dataquality.spark.session import attempt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    memory: Memory | None = None
    limit_seconds: float | None = None
    neighbours: Neighbours = ALONE
    verify_statistics: float = 0.0
    samples: bool = True
    begin: Callable[[], SparkSession] | None = None

    def session(self) -> SparkSession:
        """The session by which the data is read. Raises UsageError for a Dataset without one."""
        if self.begin is not None:
            return self.begin()
        if not isinstance(self.data, Dataset):
            return self.data.sparkSession
        if self.spark is None:
            raise UsageError("a place can only be read with a session.", "Give spark=….")
        return self.spark


@dataclass(frozen=True, slots=True)
class Prepared:
    """The object of a request, its opened data, and the clauses that are asked of it, as they are asked.

    `accounts` say what becomes of every clause; `others` opens the objects that relationships refer to.
    """

    one: SchemaObject
    table: DataFrame
    clauses: tuple[Clause, ...]
    accounts: tuple[Account, ...]
    occasion: Occasion
    kinds: Shelf
    others: Others


def prepare(request: Request) -> Prepared:
    """Selects what is asked, opens the data, and puts each clause on its window, its scope and the run.

    Raises UsageError for an unknown object or rule, a `now` without zone and a share that is none, and
    Unreadable when the data cannot be opened.
    """
    chosen = choose(request)
    occasion = occasion_of(request)
    table = _opened(request, request.data, request.partitions)
    clauses = chosen.on(request, schema_of(table), occasion)
    others = others_of(request, chosen.one, lambda: table)
    return Prepared(chosen.one, table, clauses, chosen.accounts, occasion, chosen.kinds, others)


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
    """Selects what is asked. Raises UsageError as `prepare` does."""
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
