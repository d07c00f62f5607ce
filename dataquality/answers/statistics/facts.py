"""What is certain of the rows of a table without reading them, by the writers that are believed."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from dq.contracts.types import DataType
from dq.dataquality.model.column import Column
from dq.dataquality.model.column import field as column_field
from dq.dataquality.spark.dataset import Dataset
from dq.dataquality.spark.partitions import NULL_PARTITION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# What is certain of the rows of a table without reading them, file by file.

# Of one column in one file at most so many different values are kept.
MOST_VALUES = 1_000

# As `collect()` would give them: instants are aware, in UTC; timestamps without a zone are naive.
Scalar = bool | int | Decimal | str | bytes | dt.date | dt.datetime


@dataclass(frozen=True, slots=True)
class Facts:
    """What is certain of one column in one file; None says that it is not known, never that there is none.

    `nulls` is the exact number of NULLs among all rows of the file. No value that is not NULL lies below
    `least` or above `greatest`; with `attained`, both stand in the file. `values` has every value
    that is not NULL, and perhaps more. A column of floats has no bounds: statistics leave NaN out.
    """

    nulls: int | None = None
    least: Scalar | None = None
    greatest: Scalar | None = None
    attained: bool = False
    values: frozenset[Scalar] | None = None


UNKNOWN = Facts()


def constant(value: Scalar | None, rows: int) -> Facts:
    """The facts of a column with this one value, or NULL, in every row of a file; texts have no bounds."""
    if value is None:
        return Facts(rows, values=frozenset())
    if isinstance(value, str):
        return Facts(0, values=frozenset({value}))
    return Facts(0, value, value, rows > 0, frozenset({value}))


@dataclass(frozen=True, slots=True)
class File:
    """One file that a query on the frame would read.

    `rows` counts what the file holds. With `whole`, a query sees all of these rows: none is deleted, and
    none lies outside of the partitions that are asked for. Without it, the facts speak of more rows than
    the query sees: what no row of the file does, no row of the query does, but counts do not hold.
    A column that is not in `columns` is UNKNOWN. `writers` are those whose word the facts are; the facts
    that these are not believed are left out already.
    """

    path: str
    rows: int
    whole: bool = True
    columns: Mapping[Column, Facts] = field(default_factory=dict)
    writers: tuple[str, ...] = ()

    def of(self, column: Column) -> Facts:
        """The facts of a column."""
        return self.columns.get(column, UNKNOWN)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The columns about which facts are asked for: of `values` all that can be had, of `bounds` only the
    nulls and the bounds.
    """

    bounds: frozenset[Column] = frozenset()
    values: frozenset[Column] = frozenset()


Partitions = Sequence[Mapping[str, str]]
# From a table's whole data as Spark opened it, where it is (None for a frame that was handed in), the
# partitions asked for (none: all of it), and the columns wanted, to every file that a query would read; None
# when that cannot be told. It may raise an error of Spark's where the table's format cannot answer.
Source = Callable[["DataFrame", Dataset | None, Partitions, Wanted], Sequence[File] | None]


# What a frame reads, where it is one table and nothing else, as Spark's own objects tell it.

T = TypeVar("T")


def relation(frame: DataFrame, kind: str) -> Any | None:
    """The leaf of the frame's plan when it is of this class and nothing but names stands above it.

    A view that filters, renames or joins has more, and what is known of its table is not true of its rows.
    """
    plan: Any = frame._jdf.queryExecution().analyzed()
    while plan.getClass().getSimpleName() == "SubqueryAlias":
        plan = plan.child()
    return plan if plan.getClass().getSimpleName() == kind else None


def cached(frame: DataFrame) -> bool:
    """Whether Spark answers from rows that it keeps: these may be older than the files."""
    level = frame.storageLevel
    return bool(level.useMemory or level.useDisk or level.useOffHeap)


def certain(question: Callable[[], T]) -> T | None:
    """What the question gives; None when Spark or the table's format cannot answer, whatever the reason.

    The format's own classes change with its version: a method that is gone is no answer either.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # has no stubs
    from pyspark.errors import PySparkException

    try:
        return question()
    except (PySparkException, Py4JError):
        return None


# Which files lie in the partitions that are asked for, by what is known of their columns.


def _whole(text: str, kind: DataType) -> int:
    if (
        not re.fullmatch("-?[0-9]{1,18}", text)
        or not -(2 ** _BITS[kind.name]) <= int(text) < 2 ** _BITS[kind.name]
    ):
        raise ValueError(text)
    return int(text)


def _day(text: str, _kind: DataType) -> dt.date:
    # Python also reads dates without hyphens, and weeks.
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError(text)
    return dt.date.fromisoformat(text)


def _fraction(text: str, kind: DataType) -> Decimal:
    precision, scale = kind.numbers
    parts = re.fullmatch(r"-?0*([0-9]+)(?:\.([0-9]+))?", text)
    # What has more digits than the type is rounded when it is read.
    if parts is None or len(parts[1]) > max(precision - scale, 1) or len(parts[2] or "") > scale:
        raise ValueError(text)
    return Decimal(text)


_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
# From a partition's text to a value: only texts that Spark and Python read alike.
TYPED: dict[str, Callable[[str, DataType], Scalar]] = {
    "string": lambda text, _: text,
    **dict.fromkeys(_BITS, _whole),
    "date": _day,
    "decimal": _fraction,
}


def asked(schema: DataType, partitions: Partitions, wanted: Wanted) -> frozenset[Column]:
    """All columns of which facts are needed: those that are wanted, and those that choose the partitions.

    Only columns that the contract writes exactly as the frame does.
    """
    names = {name.lower() for partition in partitions for name in partition}
    keys = {Column((name,)) for name in schema.names if name.lower() in names}
    return frozenset(one for one in wanted.bounds | wanted.values | keys if named_alike(schema, one))


def named_alike(schema: DataType, column: Column) -> bool:
    """Whether nothing repeated lies on the way, and each name is written as in the schema.

    Spark looks names up without case, and two could be meant.
    """
    here = schema
    for step in column.steps:
        if not isinstance(step, str) or step not in here.names:
            return False
        here = here.parts[here.names.index(step)]
    return True


def within(files: list[File], partitions: Partitions, schema: DataType) -> list[File]:
    """The files that may hold rows of the partitions; those that may hold other rows, too, are not whole."""
    return list(_within(files, partitions, schema)) if partitions else files


def _within(files: Sequence[File], partitions: Partitions, schema: DataType) -> Iterator[File]:
    names = {name.lower(): Column((name,)) for name in schema.names}
    for file in files:
        held = [_held(file, one, names, schema) for one in partitions]
        if True in held:
            yield file
        elif None in held:
            yield replace(file, whole=False)


def _held(
    file: File, partition: Mapping[str, str], names: Mapping[str, Column], schema: DataType
) -> bool | None:
    """Whether all rows of the file lie in the partition (True), none (False), or it is not known."""
    told = []
    for name, text in partition.items():
        column, kind = names.get(name.lower()), column_field(schema, name)
        told.append(_equals(file.of(column), file.rows, kind, text) if column and kind else None)
    if False in told:
        return False
    return None if None in told else True


def _equals(facts: Facts, rows: int, kind: DataType, text: str) -> bool | None:
    if text == NULL_PARTITION:
        return None if facts.nulls is None else {0: False, rows: True}.get(facts.nulls)
    if facts.nulls == rows:
        return False
    try:
        value: Any = TYPED[kind.name](text, kind)
    except (KeyError, ValueError, ArithmeticError):
        return None
    if facts.values is not None:
        if value not in facts.values:
            return False
        return True if len(facts.values) == 1 and facts.nulls == 0 else None
    least: Any = facts.least
    greatest: Any = facts.greatest
    if least is None or greatest is None:
        return None
    if not least <= value <= greatest:
        return False
    return True if least == greatest and facts.nulls == 0 else None


# TABLE: the writers whose statistics are known to be wrong, and what those of a file prove by its writer.
#
# Statistics are the word of whoever wrote them. Parquet names the writer in each footer (`created_by`),
# Delta
# in the commit that added a file (`engineInfo`, which `dq tables` asks), Iceberg in the snapshot that added
# it
# (`engine-name` and `iceberg-version` of its summary). What these versions say wrongly proves nothing,
# whatever
# the data.


class Statistic(StrEnum):
    """What a file's statistics are about: BOUNDS the least and greatest value, NULLS how many there are,
    VALUES all different ones, by a dictionary, ROWS how many rows.
    """

    BOUNDS = "bounds"
    NULLS = "nulls"
    VALUES = "values"
    ROWS = "rows"


Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class WrongStatistics:
    """One mistake of one writer.

    `writer` is a pattern for the writer's text, looked for without case; its group `version`, where it has
    one, is compared with `fixed_in`, the first version without the mistake; None: none is known, and a text
    without a version is as wrong as the oldest. `types` are the column types that it concerns, empty for all;
    `nested` says that only fields of structs are concerned.
    """

    writer: str
    fixed_in: Version | None
    evidence: frozenset[Statistic]
    source: str
    types: frozenset[str] = frozenset()
    nested: bool = False


_BOUNDS, _NULLS = frozenset({Statistic.BOUNDS}), frozenset({Statistic.NULLS})
_TEXTS, _DECIMALS = frozenset({"string", "binary", "char", "varchar"}), frozenset({"decimal"})
_VERSION = r"(?:.*?version v?(?P<version>\d+(?:\.\d+)*))?"

WRONG = (
    # Greatest values of the first page only; such old files have no version in their name.
    WrongStatistics(
        rf"^polars{_VERSION}", (1, 0, 0), _BOUNDS, "https://github.com/pola-rs/polars/issues/7842"
    ),
    # Merged over pages by comparing bytes without sign.
    WrongStatistics(
        rf"^polars{_VERSION}", (2, 1, 0), _BOUNDS, "https://github.com/pola-rs/polars/issues/29347", _DECIMALS
    ),
    WrongStatistics(
        rf"^polars{_VERSION}",
        None,
        _BOUNDS,
        "https://github.com/pola-rs/polars/issues/26667",
        frozenset({"boolean"}),
    ),
    WrongStatistics(
        r"^clickhouse(?: version)?(?: v?(?P<version>\d+(?:\.\d+)*))?",
        (25, 8, 0),
        _BOUNDS,
        "https://github.com/ClickHouse/ClickHouse/pull/83754",
        _DECIMALS,
    ),
    # Bounds of an ENUM are those of its type and not of its values.
    WrongStatistics(
        rf"^duckdb{_VERSION}", None, _BOUNDS, "https://github.com/duckdb/duckdb/issues/22548", _TEXTS
    ),
    WrongStatistics(
        rf"^parquet-rs{_VERSION}", None, _BOUNDS, "https://github.com/apache/arrow-rs/issues/11073", _DECIMALS
    ),
    # A column of nothing but NULL has none by its statistics.
    WrongStatistics(
        rf"^parquet-rs{_VERSION}", (5, 0, 0), _NULLS, "https://github.com/apache/arrow-rs/issues/306"
    ),
    # Of a dictionary that comes in several pieces, the bounds are those of the first.
    WrongStatistics(
        rf"^parquet-cpp(?:-arrow)?{_VERSION}",
        (12, 0, 0),
        _BOUNDS,
        "https://github.com/apache/arrow/issues/15042",
    ),
    WrongStatistics(
        rf"^parquet-mr{_VERSION}",
        (1, 8, 0),
        _BOUNDS,
        "https://issues.apache.org/jira/browse/PARQUET-251",
        _TEXTS | _DECIMALS,
    ),
    WrongStatistics(
        r"^hyparquet", None, _BOUNDS, "https://github.com/hyparam/hyparquet-writer/issues/38", _DECIMALS
    ),
    WrongStatistics(r"^parquet-go\b", None, _NULLS, "https://github.com/xitongsys/parquet-go/issues/523"),
    WrongStatistics(r"^parquet-go\b", None, _NULLS, "https://github.com/fraugster/parquet-go/issues/69"),
    # It had no name of its own for long; such files have none, and prove NULLs all the same.
    WrongStatistics(
        r"^(?:lib)?cudf(?:.*?version v?(?P<version>\d+(?:\.\d+)*))?",
        (21, 12, 0),
        _NULLS,
        "https://github.com/NVIDIA/cudf/issues/9221",
    ),
    # A NULL among the values made 0 a bound.
    WrongStatistics(
        r"\btrino[-/ ]?(?P<version>\d+)?",
        (393, 0, 0),
        _BOUNDS,
        "https://github.com/trinodb/trino/issues/13389",
    ),
    # Floats below a struct that is NULL are counted as no NULL.
    WrongStatistics(
        r"apache iceberg(?: (?P<version>\d+(?:\.\d+)*))?",
        None,
        _NULLS,
        "https://github.com/apache/iceberg/issues/17561",
        frozenset({"float", "double"}),
        nested=True,
    ),
    # Files of ORC and DWRF have no rows by their manifest.
    WrongStatistics(
        r"\b(?:velox|presto)\b",
        None,
        frozenset({Statistic.ROWS, Statistic.NULLS}),
        "https://github.com/facebookincubator/velox/pull/17654",
    ),
)
# Without a name there is nobody to be believed; what has been counted is least often wrong.
OF_NOBODY = frozenset({Statistic.BOUNDS, Statistic.VALUES})


@lru_cache(maxsize=4096)
def distrusted(writer: str, kind: str, nested: bool = False) -> frozenset[Statistic]:
    """What this writer's statistics of a column of this type ("": of none) do not prove."""
    if not writer.strip():
        return OF_NOBODY
    return frozenset(
        evidence
        for one in WRONG
        if (not one.types or kind in one.types) and (nested or not one.nested) and _concerned(one, writer)
        for evidence in one.evidence
    )


def believed(facts: Facts, writers: Iterable[str], kind: str, *, nested: bool = False) -> Facts:
    """The facts without those that one of these writers is not believed."""
    lost = frozenset(evidence for writer in writers for evidence in distrusted(writer, kind, nested))
    if Statistic.BOUNDS in lost:
        facts = replace(facts, least=None, greatest=None, attained=False)
    if Statistic.VALUES in lost:
        facts = replace(facts, values=None)
    return replace(facts, nulls=None) if Statistic.NULLS in lost else facts


def counts_rows(writers: Iterable[str]) -> bool:
    """Whether the number of rows that these writers say is believed."""
    return all(Statistic.ROWS not in distrusted(writer, "") for writer in writers)


def _concerned(one: WrongStatistics, writer: str) -> bool:
    found = re.search(one.writer, writer, re.IGNORECASE)
    if found is None:
        return False
    version = found.groupdict().get("version")
    return one.fixed_in is None or version is None or _version(version) < one.fixed_in


def _version(text: str) -> Version:
    numbers = [int(part) for part in text.split(".")][:3]
    first, second, third = (*numbers, 0, 0)[:3]
    return first, second, third
