"""What is certain of the rows of a table without reading them, by the writers that are believed."""

from __future__ import annotations

import datetime as dt
import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from dq.contracts.types import DataType
from dq.dataquality.model.column import Column, resolve
from dq.dataquality.model.column import field as column_field
from dq.dataquality.model.metric import Failure
from dq.dataquality.spark.columnar_files import NULL_PARTITION, opened
from dq.dataquality.spark.dataset import Dataset
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.spark.session import attempt, in_tasks
from dq.dataquality.spark.text_files import with_rows
from dq.lake import parquet
from dq.lake.storage import unescaped

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.parquet import ColumnChunkMetaData, ColumnSchema, FileMetaData, ParquetSchema
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


# All values of a Parquet column, as the dictionaries of its chunks list them.

# Thrift's compact protocol, read without a schema: what pyarrow does not hand out of a Parquet footer.
#
# Source: the Thrift compact protocol specification; Parquet's structures are in parquet.thrift.

Value = bool | int | float | bytes | list["Value"] | dict[int, "Value"]
Fields = dict[int, Value]

_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_NUMBERS = (4, 5, 6)
# A list's header names its size in four bits; this value says that a longer one follows.
_LONG = 15


class Malformed(ValueError):
    """The bytes are no structure of the compact protocol that Parquet uses."""


def structure(data: bytes, at: int = 0) -> tuple[Fields, int]:
    """The structure that begins at an offset, by field id, and the offset after it. Raises Malformed."""
    try:
        return _structure(data, at)
    except (IndexError, struct.error, RecursionError) as error:
        raise Malformed("the bytes end inside of a structure") from error


def _structure(data: bytes, at: int) -> tuple[Fields, int]:
    found: Fields = {}
    field = 0
    while data[at] != _STOP:
        delta, kind = data[at] >> 4, data[at] & 15
        at += 1
        if delta:
            field += delta
        else:
            field, at = _zigzag(data, at)
        if kind in (_TRUE, _FALSE):
            found[field] = kind == _TRUE
        else:
            found[field], at = _read_value(kind)(data, at)
    return found, at + 1


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _binary(data: bytes, at: int) -> tuple[Value, int]:
    size, at = _varint(data, at)
    if at + size > len(data):
        raise Malformed("the bytes end inside of a text")
    return data[at : at + size], at + size


def _list(data: bytes, at: int) -> tuple[Value, int]:
    size, kind = data[at] >> 4, data[at] & 15
    at += 1
    if size == _LONG:
        size, at = _varint(data, at)
    found: list[Value] = []
    for _ in range(size):
        if kind in (_TRUE, _FALSE):
            # Inside of a list a boolean is a byte of its own.
            value: Value = data[at] == _TRUE
            at += 1
        else:
            value, at = _read_value(kind)(data, at)
        found.append(value)
    return found, at


_READ_VALUE: dict[int, Callable[[bytes, int], tuple[Value, int]]] = {
    _BYTE: lambda data, at: (data[at], at + 1),
    **dict.fromkeys(_NUMBERS, _zigzag),
    _DOUBLE: lambda data, at: (struct.unpack_from("<d", data, at)[0], at + 8),
    _BINARY: _binary,
    _LIST: _list,
    _SET: _list,
    _STRUCT: _structure,
}


def _read_value(kind: int) -> Callable[[bytes, int], tuple[Value, int]]:
    try:
        return _READ_VALUE[kind]
    except KeyError:
        raise Malformed(f"{kind} is no type that Parquet uses") from None


# From here on the calendars of all writers agree: earlier dates may have been written in the Julian one, and
# earlier instants with the local mean times of cities, which Spark shifts when it reads them.
CERTAIN_FROM = dt.date(1900, 1, 1)
_MAGIC = b"PAR1"
# Ids of fields and values of enums in parquet.thrift.
_ROW_GROUPS, _COLUMNS, _META = 4, 1, 3
_CODEC, _DATA_AT, _DICTIONARY_AT, _ENCODING_STATS = 4, 9, 11, 13
_DATA_PAGES, _DICTIONARY_PAGE = (0, 3), 2
_PLAIN, _DICTIONARY_ENCODINGS = (0, 2), (2, 8)
_CODECS = {1: "snappy", 2: "gzip", 6: "zstd", 7: "lz4_raw"}
# A dictionary of 1,000 values that is larger than this has values too long to be worth the reading.
_MOST_BYTES = 1 << 20


def chunks_of(source: NativeFile, meta: FileMetaData) -> list[list[Fields]]:
    """The metadata of every column chunk, by row group, as the footer has it; none where it is not sound."""
    size = source.size()
    tail = source.read_at(8, size - 8)
    (length,) = struct.unpack("<I", tail[:4])
    if tail[4:] != _MAGIC:
        return []
    try:
        footer, _ = structure(source.read_at(length, size - 8 - length))
        groups: Any = footer[_ROW_GROUPS]
        found = [[column[_META] for column in group[_COLUMNS]] for group in groups]
    except (Malformed, KeyError, TypeError):
        return []
    return found if len(found) == meta.num_row_groups else []


def values_of(source: NativeFile, chunks: list[Fields], kind: DataType) -> frozenset[Scalar] | None:
    """All values of a column, where every chunk of it is wholly dictionary-encoded."""
    decode = _DECODE.get(kind.name)
    if decode is None or not chunks:
        return None
    values: set[Scalar] = set()
    for chunk in chunks:
        page = _dictionary(source, chunk)
        if page is None:
            return None
        try:
            values.update(decode(page[0], page[1], kind))
        except (ValueError, OverflowError, struct.error):
            return None
        if len(values) > MOST_VALUES:
            return None
    return frozenset(values)


def _dictionary(source: NativeFile, chunk: Fields) -> tuple[bytes, int] | None:
    """The plain bytes of the chunk's dictionary page and the number of its values."""
    import pyarrow as pa

    stats: Any = chunk.get(_ENCODING_STATS)
    start, end = chunk.get(_DICTIONARY_AT), chunk.get(_DATA_AT)
    if not stats or not isinstance(start, int) or not isinstance(end, int):
        return None
    if not 0 < end - start < _MOST_BYTES:
        return None
    data = [one for one in stats if one.get(1) in _DATA_PAGES and one.get(3)]
    if not data or any(one.get(2) not in _DICTIONARY_ENCODINGS for one in data):
        return None
    raw = source.read_at(end - start, start)
    try:
        header, at = structure(raw)
        page: Any = header[7]
        kind, plain, packed = header[1], header[2], header[3]
        count, encoding = page[1], page[2]
    except (Malformed, KeyError, TypeError):
        return None
    if kind != _DICTIONARY_PAGE or encoding not in _PLAIN or not 0 < count <= MOST_VALUES:
        return None
    body = raw[at : at + packed]  # type: ignore[operator]  # sizes are integers where the page is sound
    codec = chunk.get(_CODEC)
    if codec == 0:
        return body, count
    named = _CODECS.get(codec) if isinstance(codec, int) else None
    if named is None or not pa.Codec.is_available(named):
        return None
    try:
        return pa.Codec(named).decompress(body, plain, asbytes=True), count
    except (OSError, ValueError):
        return None


def _texts(page: bytes, count: int, _kind: DataType) -> list[Scalar]:
    found: list[Scalar] = []
    at = 0
    for _ in range(count):
        (size,) = struct.unpack_from("<I", page, at)
        at += 4 + size
        if at > len(page):
            raise ValueError("the page ends inside of a text")
        found.append(page[at - size : at].decode("utf-8"))
    return found


def _integers(form: str) -> Callable[[bytes, int, DataType], list[Scalar]]:
    return lambda page, count, _: list(struct.unpack_from(f"<{count}{form}", page))


def _dates(page: bytes, count: int, _kind: DataType) -> list[Scalar]:
    days = [dt.date(1970, 1, 1) + dt.timedelta(number) for number in struct.unpack_from(f"<{count}i", page)]
    if any(day < CERTAIN_FROM for day in days):
        raise ValueError("a date of an uncertain calendar")
    return list(days)


_DECODE: dict[str, Callable[[bytes, int, DataType], list[Scalar]]] = {
    "string": _texts,
    **dict.fromkeys(("tinyint", "smallint", "int"), _integers("i")),
    "bigint": _integers("q"),
    "date": _dates,
}


# Facts of Parquet tables, from the footers of the files that Spark listed.

# One Parquet file's footer to facts; runs on the driver or in a task, without Spark.


@dataclass(frozen=True, slots=True)
class Asked:
    """A column as the frame has it, exactly so written, and whether its values are wanted."""

    column: Column
    type: DataType
    values: bool


def read(source: NativeFile, path: str, asked: tuple[Asked, ...]) -> File:
    """The file's rows, and what its footer and its dictionaries say about these columns.

    Raises OSError and pyarrow's errors, which are ValueErrors or OSErrors, for what is no Parquet file, and
    ValueError for one that says two numbers of rows.
    """
    import pyarrow.parquet as pq

    meta = pq.read_metadata(source)
    leaves = _leaves(meta.schema)
    groups = [meta.row_group(index) for index in range(meta.num_row_groups)]
    if sum(group.num_rows for group in groups) != meta.num_rows:
        raise ValueError(f"{path}: the footer and its row groups have different numbers of rows")
    writers = (meta.created_by or "",)
    wanted = {
        one: leaf
        for one in asked
        if (leaf := leaves.get(one.column)) is not None
        and _fits(meta.schema, leaf, one.type)
        # Spark fails where it cannot read the values, and so does whoever asks for them.
        and not any(parquet.unreadable_chunk(group.column(leaf)) for group in groups)
    }
    chunks = chunks_of(source, meta) if any(one.values for one in wanted) else []
    facts = {}
    for one, leaf in wanted.items():
        found = _bounds([group.column(leaf) for group in groups if group.num_rows], one.type)
        if one.values:
            values = values_of(source, [group[leaf] for group in chunks], one.type)
            found = Facts(found.nulls, found.least, found.greatest, found.attained, values)
        facts[one.column] = believed(found, writers, one.type.name, nested=len(one.column.steps) > 1)
    return File(path, meta.num_rows, counts_rows(writers), facts, writers)


def _leaves(schema: ParquetSchema) -> dict[Column, int]:
    """Columns without anything repeated on the way; names that differ only by case stand for nothing."""
    # A dot in a name cannot be told from a struct's field; such a path resolves to no column.
    ways = [tuple(schema.column(index).path.split(".")) for index in range(len(schema))]
    spelled: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for way in ways:
        for depth in range(1, len(way) + 1):
            spelled.setdefault(tuple(map(str.lower, way[:depth])), set()).add(way[:depth])
    seen = Counter(ways)
    twice = {spelling for same in spelled.values() if len(same) > 1 for spelling in same}
    return {
        Column(way): index
        for index, way in enumerate(ways)
        if schema.column(index).max_repetition_level == 0
        and seen[way] == 1
        and not any(way[:depth] in twice for depth in range(1, len(way) + 1))
    }


def _fits(schema: ParquetSchema, leaf: int | None, kind: DataType) -> bool:
    """Whether Spark reads this leaf as the type, with the same values, and its statistics are read here."""
    if leaf is None or kind.name == "binary" or leaf_type(schema.column(leaf)) != kind:
        return False
    return kind.name != "decimal" or schema.column(leaf).physical_type in ("INT32", "INT64")


def leaf_type(column: ColumnSchema) -> DataType | None:
    """Return the type as which Spark reads a leaf without changing a value; None where that is uncertain."""
    logical = json.loads(column.logical_type.to_json())
    if logical["Type"] == "Decimal":
        return parquet.leaf_type(column)
    if (
        logical["Type"] not in _UNCHANGED
        or logical.get("isSigned") is False
        or column.physical_type in ("INT96", "FIXED_LEN_BYTE_ARRAY")
    ):
        return None
    kind = parquet.leaf_type(column)
    # The zone of an older writer's instant is known to the converted type alone, and not to pyarrow.
    instant = kind is not None and kind.name == "timestamp"
    return None if instant and not logical["isAdjustedToUTC"] else kind


_UNCHANGED = frozenset({"None", "String", "Date", "Int", "Timestamp"})
_PYTHON: dict[str, type] = {
    "boolean": bool,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int),
    "date": dt.date,
    "timestamp": dt.datetime,
    "timestamp_ntz": dt.datetime,
}
# Of floats, only the number of NULLs is used.
_BOUNDED = frozenset({*_PYTHON, "decimal"})


def _bounds(chunks: list[ColumnChunkMetaData], kind: DataType) -> Facts:
    nulls: int | None = 0
    lows: list[Any] = []
    highs: list[Any] = []
    bounded = kind.name in _BOUNDED
    for chunk in chunks:
        found = chunk.statistics if chunk.is_stats_set else None
        absent = found.null_count if found is not None and found.has_null_count else None
        if absent is not None and not 0 <= absent <= chunk.num_values:
            absent = None
        nulls = None if nulls is None or absent is None else nulls + absent
        # A chunk of NULLs only has no bounds, and needs none.
        if absent == chunk.num_values or not bounded:
            continue
        low, high = _pair(found, kind) if found is not None else (None, None)
        if low is None or high is None:
            bounded = False
        else:
            lows.append(low)
            highs.append(high)
    if not bounded or not lows:
        return Facts(nulls)
    return Facts(nulls, min(lows), max(highs), True)


def _pair(found: Any, kind: DataType) -> tuple[Any, Any]:
    if not found.has_min_max:
        return None, None
    if kind.name == "decimal":
        # pyarrow makes decimals of integers only since release 22.
        low, high = (Decimal(one).scaleb(-kind.numbers[1]) for one in (found.min_raw, found.max_raw))
        return (low, high) if low <= high else (None, None)
    try:
        low, high = found.min, found.max
    except (ValueError, OverflowError, ArithmeticError):
        # A date after the year 9999, which Python cannot hold.
        return None, None
    if type(low) is not type(high) or not isinstance(low, _PYTHON[kind.name]) or low > high:
        return None, None
    if isinstance(low, dt.date):
        day = low.date() if isinstance(low, dt.datetime) else low
        if day < CERTAIN_FROM:
            return None, None
    if isinstance(low, dt.datetime) and (low.tzinfo is None) is (kind.name == "timestamp"):
        return None, None
    return low, high


# More footers than this are read in Spark's tasks.
MOST_ON_DRIVER = 2_000
# Object stores answer slowly and many at a time; the disk of this machine is faster one by one.
_AT_A_TIME = 16
_PER_TASK = 200


def files(
    frame: DataFrame, _dataset: Dataset | None, partitions: Partitions, wanted: Wanted
) -> list[File] | None:
    """The Parquet files that a query on these partitions would read."""
    paths = attempt(lambda: listing(frame))
    if paths is None or isinstance(paths, Failure):
        return None
    schema = schema_of(frame)
    # Not what the contract calls a partition column.
    keys = {name.lower(): name for name in folder_columns(frame)}
    placed: dict[str, Placed] = {}
    for path in paths:
        values = _placed(path, schema, keys)
        if values is None:
            return None
        placed[path] = values
    chosen = within([File(path, 1, columns=_facts(placed[path], 1)) for path in paths], partitions, schema)
    if not all(file.whole for file in chosen):
        return None
    found = _read(frame, [file.path for file in chosen], tuple(_asked(schema, wanted)))
    if found is None:
        return None
    return [replace(file, columns={**file.columns, **_facts(placed[file.path], file.rows)}) for file in found]


Placed = Mapping[Column, Scalar | None]
"""The values of a file's partition columns."""


def _facts(placed: Placed, rows: int) -> dict[Column, Facts]:
    return {column: constant(value, rows) for column, value in placed.items()}


def folder_columns(frame: DataFrame) -> frozenset[str]:
    """The columns of a frame of Parquet files that Spark takes from the names of folders, by exact names.

    A file may hold such a column too, and then it says nothing.
    """
    found = _relation(frame)
    names = [] if found is None else list(found.partitionSchema().fieldNames())
    lowered = {name.lower() for name in names}
    return frozenset(name for name in frame.columns if name.lower() in lowered)


def _relation(frame: DataFrame) -> Any:
    """Spark's relation of a frame that is nothing but Parquet files; else None."""
    leaf = relation(frame, "LogicalRelation")
    found = leaf.relation() if leaf is not None else None
    if found is None or found.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    return found if found.fileFormat().getClass().getSimpleName() == "ParquetFileFormat" else None


def listing(frame: DataFrame) -> list[str] | None:
    """The addresses of the files of a frame that is nothing but Parquet files, each read once; else None."""
    found = _relation(frame)
    if found is None:
        return None
    location = found.location()
    # A catalog may say that a partition lies in a folder of another name.
    if location.getClass().getSimpleName() != "InMemoryFileIndex" and found.partitionSchema().length():
        return None
    roots = location.rootPaths()
    # What is read twice is listed once.
    if roots.distinct().size() != roots.size():
        return None
    # One call for all of them: each element of a Java array would be a call of its own. The addresses are
    # encoded, so that there is no line break in them.
    jvm: Any = frame.sparkSession._jvm
    joined = jvm.org.apache.hadoop.util.StringUtils.join("\n", location.inputFiles())
    return sorted(with_rows(joined.split("\n"))) if joined else []


def _placed(path: str, schema: DataType, keys: Mapping[str, str]) -> Placed | None:
    """The values of the partition columns of a file, by its path; None where one is not certain."""
    found: dict[Column, Scalar | None] = {}
    for segment in unquote(urlsplit(path).path).split("/")[:-1]:
        name, equals, text = segment.partition("=")
        key = keys.get(unescaped(name).lower()) if equals else None
        if key is None:
            continue
        kind = column_field(schema, key)
        make = TYPED.get(kind.name) if kind else None
        if kind is None or make is None:
            return None
        try:
            found[Column((key,))] = None if text == NULL_PARTITION else make(unescaped(text), kind)
        except (ValueError, ArithmeticError):
            return None
    return found if len(found) == len(keys) else None


def _asked(schema: DataType, wanted: Wanted) -> Iterator[Asked]:
    for column in sorted(wanted.bounds | wanted.values, key=str):
        kind = resolve(schema, column)
        if isinstance(kind, DataType) and named_alike(schema, column):
            yield Asked(column, kind, column in wanted.values)


def _read(frame: DataFrame, paths: Sequence[str], asked: tuple[Asked, ...]) -> list[File] | None:
    work = partial(read_footers, asked=asked)
    if len(paths) > MOST_ON_DRIVER:
        chunks = [paths[at : at + _PER_TASK] for at in range(0, len(paths), _PER_TASK)]
        told = in_tasks(frame.sparkSession.sparkContext, chunks, work)
        parts = [None] if isinstance(told, Failure) else told
    elif paths and urlsplit(paths[0]).scheme not in ("", "file"):
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            parts = list(pool.map(work, ([path] for path in paths)))
    else:
        parts = [work(paths)]
    sound = [part for part in parts if part is not None]
    return [file for part in sound for file in part] if len(sound) == len(parts) else None


def read_footers(paths: Iterable[str], asked: tuple[Asked, ...]) -> list[File] | None:
    """The facts of these files in their order; None when one of them cannot be read."""
    found = []
    for path in paths:
        try:
            with opened(path) as source:
                found.append(read(source, path, asked))
        except (OSError, ValueError, NotImplementedError):
            return None
    return found
