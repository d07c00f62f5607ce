"""File and column statistics of a table, restricted to the writers whose statistics are trustworthy."""

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
from urllib.parse import urlsplit

from dq.contracts.layout import HIVE
from dq.contracts.types import DataType
from dq.dataquality.model.column import Column, resolve
from dq.dataquality.model.column import struct_field as column_field
from dq.dataquality.model.metric import Failure
from dq.dataquality.spark import connect_files
from dq.dataquality.spark.columnar_files import NULL_PARTITION, connected_storage, open_input
from dq.dataquality.spark.dataset import Dataset
from dq.dataquality.spark.file_listing import data_files, values_in_path
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.spark.session import attempt, in_tasks
from dq.lake import parquet
from dq.lake.storage import ArrowFiles
from dq.lake.thrift import Fields, Malformed, read_struct

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.parquet import ColumnChunkMetaData, ColumnSchema, FileMetaData, ParquetSchema
    from pyspark.sql import DataFrame


# Statistics per file, known without reading rows.

# Maximum number of distinct values stored per column and file.
MOST_VALUES = 1_000

# Values as `collect()` returns them: instants are aware and in UTC, timestamps without a zone are naive.
Scalar = bool | int | Decimal | str | bytes | dt.date | dt.datetime


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of one column in one file. None means unknown, not absent.

    `nulls` is the exact number of NULLs among all rows of the file. All other values lie between `least` and
    `greatest`; with `attained`, both occur in the file. `values` is a superset of the values that are not
    NULL. Float columns have no bounds, because statistics ignore NaN.
    """

    nulls: int | None = None
    least: Scalar | None = None
    greatest: Scalar | None = None
    attained: bool = False
    values: frozenset[Scalar] | None = None


UNKNOWN = ColumnStatistics()


def constant_statistics(value: Scalar | None, rows: int) -> ColumnStatistics:
    """Return the statistics of a column with this value (or NULL) in every row; texts have no bounds."""
    if value is None:
        return ColumnStatistics(rows, values=frozenset())
    if isinstance(value, str):
        return ColumnStatistics(0, values=frozenset({value}))
    return ColumnStatistics(0, value, value, rows > 0, frozenset({value}))


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """Statistics of one file that a query on the frame would read.

    `rows` is the number of rows in the file. With `is_complete`, a query sees all of them: none is deleted,
    and none lies outside the requested partitions. Otherwise the statistics cover more rows than the query
    sees: bounds still hold, counts do not. A column that is not in `columns` is UNKNOWN. `writers` are the
    programs that wrote the statistics; statistics that these are known to write wrongly are already removed.
    `size` is in bytes, None if unknown. `path_columns` are those that readers take from the file's path,
    whether or not the file has them too.
    """

    path: str
    rows: int
    is_complete: bool = True
    columns: Mapping[Column, ColumnStatistics] = field(default_factory=dict)
    writers: tuple[str, ...] = ()
    path_columns: frozenset[str] = frozenset()
    size: int | None = None

    def statistics_of(self, column: Column) -> ColumnStatistics:
        """Return the statistics of a column, or UNKNOWN."""
        return self.columns.get(column, UNKNOWN)


@dataclass(frozen=True, slots=True)
class StatisticsRequest:
    """Requested columns: all available statistics for `values`, only NULL counts and bounds for `bounds`."""

    bounds: frozenset[Column] = frozenset()
    values: frozenset[Column] = frozenset()


Partitions = Sequence[Mapping[str, str]]
# Takes the table as Spark opened it, its dataset (None for a frame passed in), the requested partitions
# (empty: all) and columns. Returns the files that a query would read, or None if unknown. May raise Spark
# errors if the table's format cannot answer.
Source = Callable[
    ["DataFrame", Dataset | None, Partitions, StatisticsRequest], Sequence[FileStatistics] | None
]


# The relation of a frame that is a plain table, from Spark's query plan.

T = TypeVar("T")


def leaf_relation(frame: DataFrame, kind: str, *, below_keys: bool = False) -> Any | None:
    """Return the leaf of the frame's plan if it has this class and only aliases above it, or None.

    Statistics of a table do not apply to a view that filters, renames or joins it. With `below_keys`, the
    frame is one of files to which `Listing.with_keys` added columns.
    """
    plan: Any = frame._jdf.queryExecution().analyzed()
    above = {"SubqueryAlias", "Project"} if below_keys else {"SubqueryAlias"}
    while plan.getClass().getSimpleName() in above:
        plan = plan.child()
    return plan if plan.getClass().getSimpleName() == kind else None


def is_cached(frame: DataFrame) -> bool:
    """Return whether Spark has cached the frame; cached rows may be older than the files."""
    level = frame.storageLevel
    return bool(level.useMemory or level.useDisk or level.useOffHeap)


def try_spark(question: Callable[[], T]) -> T | None:
    """Return the result of the call, or None if Spark or the table's format fails for any reason.

    The classes of a format change with its version, so a missing method also gives None.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # has no stubs
    from pyspark.errors import PySparkException

    try:
        return question()
    except (PySparkException, Py4JError):
        return None


# Selection of the files in the requested partitions, by the statistics of their columns.


def _parse_integer(text: str, kind: DataType) -> int:
    if (
        not re.fullmatch("-?[0-9]{1,18}", text)
        or not -(2 ** _BITS[kind.name]) <= int(text) < 2 ** _BITS[kind.name]
    ):
        raise ValueError(text)
    return int(text)


def _parse_date(text: str, _kind: DataType) -> dt.date:
    # Python also reads dates without hyphens, and weeks.
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError(text)
    return dt.date.fromisoformat(text)


def _parse_decimal(text: str, kind: DataType) -> Decimal:
    precision, scale = kind.numbers
    parts = re.fullmatch(r"-?0*([0-9]+)(?:\.([0-9]+))?", text)
    # Spark rounds a value with more digits than the type.
    if parts is None or len(parts[1]) > max(precision - scale, 1) or len(parts[2] or "") > scale:
        raise ValueError(text)
    return Decimal(text)


_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
# Parse the text of a partition value; only texts that Spark and Python parse alike are accepted.
PARTITION_PARSERS: dict[str, Callable[[str, DataType], Scalar]] = {
    "string": lambda text, _: text,
    **dict.fromkeys(_BITS, _parse_integer),
    "date": _parse_date,
    "decimal": _parse_decimal,
}


def required_columns(
    schema: DataType, partitions: Partitions, request: StatisticsRequest
) -> frozenset[Column]:
    """Return all columns whose statistics are needed: the requested ones and the partition columns.

    Only columns that the contract spells exactly as the frame does.
    """
    names = {name.lower() for partition in partitions for name in partition}
    keys = {Column((name,)) for name in schema.names if name.lower() in names}
    return frozenset(
        column for column in request.bounds | request.values | keys if has_exact_names(schema, column)
    )


def has_exact_names(schema: DataType, column: Column) -> bool:
    """Return whether the path has no repeated element and each name is spelled exactly as in the schema.

    Spark ignores case in names, so another spelling could be ambiguous.
    """
    current = schema
    for step in column.steps:
        if not isinstance(step, str) or step not in current.names:
            return False
        current = current.parts[current.names.index(step)]
    return True


def select_files(
    files: list[FileStatistics], partitions: Partitions, schema: DataType
) -> list[FileStatistics]:
    """Return the files that may hold rows of the partitions; those that may hold other rows too are
    incomplete.
    """
    return list(_select_files(files, partitions, schema)) if partitions else files


def _select_files(
    files: Sequence[FileStatistics], partitions: Partitions, schema: DataType
) -> Iterator[FileStatistics]:
    names = {name.lower(): Column((name,)) for name in schema.names}
    for file in files:
        memberships = [_is_in_partition(file, partition, names, schema) for partition in partitions]
        if True in memberships:
            yield file
        elif None in memberships:
            yield replace(file, is_complete=False)


def _is_in_partition(
    file: FileStatistics, partition: Mapping[str, str], names: Mapping[str, Column], schema: DataType
) -> bool | None:
    """Return True if all rows of the file lie in the partition, False if none does, None if unknown."""
    matches = []
    for name, text in partition.items():
        column, kind = names.get(name.lower()), column_field(schema, name)
        matches.append(
            _equals(file.statistics_of(column), file.rows, kind, text) if column and kind else None
        )
    if False in matches:
        return False
    return None if None in matches else True


def _equals(facts: ColumnStatistics, rows: int, kind: DataType, text: str) -> bool | None:
    if text == NULL_PARTITION:
        return None if facts.nulls is None else {0: False, rows: True}.get(facts.nulls)
    if facts.nulls == rows:
        return False
    try:
        value: Any = PARTITION_PARSERS[kind.name](text, kind)
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


# TABLE: writers whose statistics are known to be wrong.
#
# Statistics are only as reliable as their writer. Parquet names the writer in each footer (`created_by`),
# Delta in the commit that added the file (`engineInfo`, read by `dq tables`), Iceberg in the summary of the
# snapshot that added it (`engine-name` and `iceberg-version`). Statistics that these versions write wrongly
# are ignored.


class Statistic(StrEnum):
    """Kind of statistic: BOUNDS (least and greatest value), NULLS (count), VALUES (all distinct values, from
    a dictionary), ROWS (number of rows), BLOOM (a Bloom filter of all values).
    """

    BOUNDS = "bounds"
    NULLS = "nulls"
    VALUES = "values"
    ROWS = "rows"
    BLOOM = "bloom"


Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class WrongStatistics:
    """A known bug of one writer.

    `writer` is a case-insensitive pattern for the writer's name. Its optional group `version` is compared
    with `fixed_in`, the first fixed version (None: not fixed yet); a name without a version counts as
    affected. `types` are the affected column types, `physical_types` those of Parquet that store them
    (empty: all). With `nested`, only fields of structs are affected.
    """

    writer: str
    fixed_in: Version | None
    evidence: frozenset[Statistic]
    source: str
    types: frozenset[str] = frozenset()
    nested: bool = False
    physical_types: frozenset[str] = frozenset()


_BOUNDS, _NULLS = frozenset({Statistic.BOUNDS}), frozenset({Statistic.NULLS})
_TEXTS, _DECIMALS = frozenset({"string", "binary", "char", "varchar"}), frozenset({"decimal"})
_VERSION = r"(?:.*?version v?(?P<version>\d+(?:\.\d+)*))?"

WRONG = (
    # The greatest value covers the first page only. The writer name of such old files has no version.
    WrongStatistics(
        rf"^polars{_VERSION}", (1, 0, 0), _BOUNDS, "https://github.com/pola-rs/polars/issues/7842"
    ),
    # Bounds of pages are merged by comparing unsigned bytes.
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
    # The bounds of an ENUM are those of its type, not of its values.
    WrongStatistics(
        rf"^duckdb{_VERSION}", None, _BOUNDS, "https://github.com/duckdb/duckdb/issues/22548", _TEXTS
    ),
    # Decimals stored as bytes are compared as unsigned bytes; those stored as integers have right bounds.
    WrongStatistics(
        rf"^parquet-rs{_VERSION}",
        None,
        _BOUNDS,
        "https://github.com/apache/arrow-rs/issues/11073",
        _DECIMALS,
        physical_types=frozenset({"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}),
    ),
    # The NULL count of an all-NULL column is 0.
    WrongStatistics(
        rf"^parquet-rs{_VERSION}", (5, 0, 0), _NULLS, "https://github.com/apache/arrow-rs/issues/306"
    ),
    # For a dictionary in several pieces, the bounds are those of the first piece.
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
    # The adaptive filter lacks values.
    WrongStatistics(
        r"^parquet-go\b",
        None,
        frozenset({Statistic.BLOOM}),
        "https://github.com/apache/arrow-go/issues/525",
    ),
    WrongStatistics(r"^parquet-go\b", None, _NULLS, "https://github.com/fraugster/parquet-go/issues/69"),
    # Older cudf files have no writer name and are handled as files without a writer, which still count NULLs.
    WrongStatistics(
        r"^(?:lib)?cudf(?:.*?version v?(?P<version>\d+(?:\.\d+)*))?",
        (21, 12, 0),
        _NULLS,
        "https://github.com/NVIDIA/cudf/issues/9221",
    ),
    # With a NULL among the values, 0 becomes a bound.
    WrongStatistics(
        r"\btrino[-/ ]?(?P<version>\d+)?",
        (393, 0, 0),
        _BOUNDS,
        "https://github.com/trinodb/trino/issues/13389",
    ),
    # Float fields of a NULL struct are not counted as NULL.
    WrongStatistics(
        r"apache iceberg(?: (?P<version>\d+(?:\.\d+)*))?",
        None,
        _NULLS,
        "https://github.com/apache/iceberg/issues/17561",
        frozenset({"float", "double"}),
        nested=True,
    ),
    # Manifests give 0 rows for ORC and DWRF files.
    WrongStatistics(
        r"\b(?:velox|presto)\b",
        None,
        frozenset({Statistic.ROWS, Statistic.NULLS}),
        "https://github.com/facebookincubator/velox/pull/17654",
    ),
)
# Without a writer name only counts are trusted, since they are rarely wrong.
DISTRUSTED_WITHOUT_WRITER = frozenset({Statistic.BOUNDS, Statistic.VALUES, Statistic.BLOOM})


@lru_cache(maxsize=4096)
def distrusted(writer: str, kind: str, nested: bool = False, physical_type: str = "") -> frozenset[Statistic]:
    """Return the statistics of this writer that are wrong for a column type ("": not about a column).

    `physical_type` is Parquet's, or "" if it is unknown.
    """
    if not writer.strip():
        return DISTRUSTED_WITHOUT_WRITER
    return frozenset(
        evidence
        for mistake in WRONG
        if (not mistake.types or kind in mistake.types)
        and (nested or not mistake.nested)
        and (not mistake.physical_types or not physical_type or physical_type in mistake.physical_types)
        and _applies(mistake, writer)
        for evidence in mistake.evidence
    )


def without_distrusted(
    facts: ColumnStatistics,
    writers: Iterable[str],
    kind: str,
    *,
    nested: bool = False,
    physical_type: str = "",
) -> ColumnStatistics:
    """Return the statistics without those that one of these writers is known to write wrongly."""
    wrong = frozenset(
        evidence for writer in writers for evidence in distrusted(writer, kind, nested, physical_type)
    )
    if Statistic.BOUNDS in wrong:
        facts = replace(facts, least=None, greatest=None, attained=False)
    if Statistic.VALUES in wrong:
        facts = replace(facts, values=None)
    return replace(facts, nulls=None) if Statistic.NULLS in wrong else facts


def counts_rows(writers: Iterable[str]) -> bool:
    """Return whether the row counts of all these writers are trusted."""
    return all(Statistic.ROWS not in distrusted(writer, "") for writer in writers)


def _applies(mistake: WrongStatistics, writer: str) -> bool:
    match = re.search(mistake.writer, writer, re.IGNORECASE)
    if match is None:
        return False
    version = match.groupdict().get("version")
    return mistake.fixed_in is None or version is None or _version(version) < mistake.fixed_in


def _version(text: str) -> Version:
    numbers = [int(part) for part in text.split(".")][:3]
    first, second, third = (*numbers, 0, 0)[:3]
    return first, second, third


# All values of a Parquet column, from the dictionaries of its chunks.

# From this date on the calendars of all writers agree. Earlier dates may be Julian, and earlier instants may
# use local mean time, which Spark shifts when it reads them.
CERTAIN_FROM = dt.date(1900, 1, 1)
_MAGIC = b"PAR1"
# Ids of fields and values of enums in parquet.thrift.
_ROW_GROUPS, _COLUMNS, _META = 4, 1, 3
_CODEC, _DATA_AT, _DICTIONARY_AT, _ENCODING_STATS = 4, 9, 11, 13
_DATA_PAGES, _DICTIONARY_PAGE = (0, 3), 2
_PLAIN, _DICTIONARY_ENCODINGS = (0, 2), (2, 8)
_CODECS = {1: "snappy", 2: "gzip", 6: "zstd", 7: "lz4_raw"}
# The values of a larger dictionary are too long to be worth reading.
_MOST_BYTES = 1 << 20


def read_chunk_metadata(source: NativeFile, meta: FileMetaData) -> list[list[Fields]]:
    """Return the raw footer metadata of every column chunk, by row group; empty if the footer is
    malformed.
    """
    size = source.size()
    tail = source.read_at(8, size - 8)
    (length,) = struct.unpack("<I", tail[:4])
    if tail[4:] != _MAGIC:
        return []
    try:
        footer, _ = read_struct(source.read_at(length, size - 8 - length))
        groups: Any = footer[_ROW_GROUPS]
        chunks = [[column[_META] for column in group[_COLUMNS]] for group in groups]
    except (Malformed, KeyError, TypeError):
        return []
    return chunks if len(chunks) == meta.num_row_groups else []


def dictionary_values(source: NativeFile, chunks: list[Fields], kind: DataType) -> frozenset[Scalar] | None:
    """Return all values of a column if every chunk is completely dictionary-encoded, or None."""
    decode = _DECODE.get(kind.name)
    if decode is None or not chunks:
        return None
    values: set[Scalar] = set()
    for chunk in chunks:
        page = _read_dictionary(source, chunk)
        if page is None:
            return None
        try:
            values.update(decode(page[0], page[1], kind))
        except (ValueError, OverflowError, struct.error):
            return None
        if len(values) > MOST_VALUES:
            return None
    return frozenset(values)


def _read_dictionary(source: NativeFile, chunk: Fields) -> tuple[bytes, int] | None:
    """Return the uncompressed dictionary page of a chunk and its number of values, or None."""
    import pyarrow as pa

    stats: Any = chunk.get(_ENCODING_STATS)
    start, end = chunk.get(_DICTIONARY_AT), chunk.get(_DATA_AT)
    if not stats or not isinstance(start, int) or not isinstance(end, int):
        return None
    if not 0 < end - start < _MOST_BYTES:
        return None
    data = [stat for stat in stats if stat.get(1) in _DATA_PAGES and stat.get(3)]
    if not data or any(stat.get(2) not in _DICTIONARY_ENCODINGS for stat in data):
        return None
    raw = source.read_at(end - start, start)
    try:
        header, offset = read_struct(raw)
        page: Any = header[7]
        kind, plain_size, packed_size = header[1], header[2], header[3]
        count, encoding = page[1], page[2]
    except (Malformed, KeyError, TypeError):
        return None
    if kind != _DICTIONARY_PAGE or encoding not in _PLAIN or not 0 < count <= MOST_VALUES:
        return None
    if not isinstance(plain_size, int) or plain_size > _MOST_BYTES:
        return None
    # sizes are integers in a well-formed page
    body = raw[offset : offset + packed_size]  # type: ignore[operator]
    codec = chunk.get(_CODEC)
    if codec == 0:
        return body, count
    codec_name = _CODECS.get(codec) if isinstance(codec, int) else None
    if codec_name is None or not pa.Codec.is_available(codec_name):
        return None
    try:
        return pa.Codec(codec_name).decompress(body, plain_size, asbytes=True), count
    except (OSError, ValueError):
        return None


def _texts(page: bytes, count: int, _kind: DataType) -> list[Scalar]:
    texts: list[Scalar] = []
    offset = 0
    for _ in range(count):
        (size,) = struct.unpack_from("<I", page, offset)
        offset += 4 + size
        if offset > len(page):
            raise ValueError("the page ends inside of a text")
        texts.append(page[offset - size : offset].decode("utf-8"))
    return texts


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


# Statistics of Parquet tables, from the footers of the files that Spark listed.

# Statistics of one file, from its footer; runs on the driver or in a task, without Spark.


@dataclass(frozen=True, slots=True)
class RequestedColumn:
    """A requested column, spelled as in the frame, and whether all its values are requested."""

    column: Column
    type: DataType
    values: bool


def read_statistics(source: NativeFile, path: str, requested: tuple[RequestedColumn, ...]) -> FileStatistics:
    """Return the file's row count and the statistics of these columns, from its footer and dictionaries.

    Raises:
        OSError: It is not a Parquet file; also pyarrow's errors, which are ValueErrors or OSErrors.
        ValueError: The row count of the file differs from that of its row groups.
    """
    import pyarrow.parquet as pq

    meta = pq.read_metadata(source)
    leaves = leaf_numbers(meta.schema)
    groups = [meta.row_group(index) for index in range(meta.num_row_groups)]
    if sum(group.num_rows for group in groups) != meta.num_rows:
        raise ValueError(f"{path}: the footer and its row groups have different numbers of rows")
    writers = (meta.created_by or "",)
    requested_leaves = {
        request: leaf
        for request in requested
        if (leaf := leaves.get(request.column)) is not None
        and _fits(meta.schema, leaf, request.type)
        # Spark fails on unreadable values, so statistics must not hide that.
        and not any(parquet.unreadable_chunk(group.column(leaf)) for group in groups)
    }
    chunks = read_chunk_metadata(source, meta) if any(request.values for request in requested_leaves) else []
    facts = {}
    for request, leaf in requested_leaves.items():
        column_statistics = bounds_of_chunks(
            [group.column(leaf) for group in groups if group.num_rows], request.type
        )
        if request.values:
            values = dictionary_values(source, [group[leaf] for group in chunks], request.type)
            column_statistics = ColumnStatistics(
                column_statistics.nulls,
                column_statistics.least,
                column_statistics.greatest,
                column_statistics.attained,
                values,
            )
        facts[request.column] = without_distrusted(
            column_statistics,
            writers,
            request.type.name,
            nested=len(request.column.steps) > 1,
            physical_type=meta.schema.column(leaf).physical_type,
        )
    return FileStatistics(path, meta.num_rows, counts_rows(writers), facts, writers, size=source.size())


def leaf_numbers(schema: ParquetSchema) -> dict[Column, int]:
    """Return the leaves that are not repeated, by column; names that differ only by case are left out."""
    # A dot in a name cannot be distinguished from a struct's field; such a path matches no column.
    paths = [tuple(schema.column(index).path.split(".")) for index in range(len(schema))]
    spelled: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for path in paths:
        for depth in range(1, len(path) + 1):
            spelled.setdefault(tuple(map(str.lower, path[:depth])), set()).add(path[:depth])
    counts = Counter(paths)
    ambiguous = {spelling for spellings in spelled.values() if len(spellings) > 1 for spelling in spellings}
    return {
        Column(path): index
        for index, path in enumerate(paths)
        if schema.column(index).max_repetition_level == 0
        and counts[path] == 1
        and not any(path[:depth] in ambiguous for depth in range(1, len(path) + 1))
    }


def _fits(schema: ParquetSchema, leaf: int | None, kind: DataType) -> bool:
    """Return whether Spark reads the leaf as this type without conversion and its statistics are
    supported.
    """
    if leaf is None or kind.name == "binary" or leaf_type(schema.column(leaf)) != kind:
        return False
    return kind.name != "decimal" or schema.column(leaf).physical_type in ("INT32", "INT64")


def leaf_type(column: ColumnSchema) -> DataType | None:
    """Return the type as which Spark reads a leaf without changing a value, or None if that is uncertain."""
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
    # For older writers only the converted type says that it is an instant, which pyarrow ignores.
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
# For floats, only the NULL count is used.
_BOUNDED = frozenset({*_PYTHON, "decimal"})


def bounds_of_chunks(chunks: list[ColumnChunkMetaData], kind: DataType) -> ColumnStatistics:
    """Return the NULL count and the bounds of column chunks, without bounds if one of them has none."""
    nulls: int | None = 0
    lows: list[Any] = []
    highs: list[Any] = []
    bounded = kind.name in _BOUNDED
    for chunk in chunks:
        stats = chunk.statistics if chunk.is_stats_set else None
        null_count = stats.null_count if stats is not None and stats.has_null_count else None
        if null_count is not None and not 0 <= null_count <= chunk.num_values:
            null_count = None
        nulls = None if nulls is None or null_count is None else nulls + null_count
        # An all-NULL chunk has no bounds and needs none.
        if null_count == chunk.num_values or not bounded:
            continue
        low, high = _min_max(stats, kind) if stats is not None else (None, None)
        if low is None or high is None:
            bounded = False
        else:
            lows.append(low)
            highs.append(high)
    if not bounded or not lows:
        return ColumnStatistics(nulls)
    return ColumnStatistics(nulls, min(lows), max(highs), True)


def _min_max(stats: Any, kind: DataType) -> tuple[Any, Any]:
    if not stats.has_min_max:
        return None, None
    if kind.name == "decimal":
        if isinstance(stats.min_raw, bytes):
            return None, None
        # pyarrow makes decimals of integers only since release 22.
        low, high = (Decimal(raw).scaleb(-kind.numbers[1]) for raw in (stats.min_raw, stats.max_raw))
        return (low, high) if low <= high else (None, None)
    try:
        low, high = stats.min, stats.max
    except (ValueError, OverflowError, ArithmeticError):
        # Python has no dates after the year 9999.
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


# If there are more footers than this, Spark tasks read them.
MOST_ON_DRIVER = 2_000
# Object stores are slow but serve many requests at once; a local disk is faster sequentially.
_AT_A_TIME = 16
_PER_TASK = 200


def files(
    frame: DataFrame, dataset: Dataset | None, partitions: Partitions, request: StatisticsRequest
) -> list[FileStatistics] | None:
    """Return the Parquet files that a query on these partitions would read, or None if unknown."""
    paths = attempt(lambda: listing(frame, dataset))
    if paths is None or isinstance(paths, Failure):
        return None
    schema = schema_of(frame)
    # Spark's partition columns, which may differ from the contract's.
    keys = {name.lower(): name for name in folder_columns(frame, dataset)}
    partition_values: dict[str, PartitionValues] = {}
    for path in paths:
        values = _partition_values(path, schema, keys, dataset)
        if values is None:
            return None
        partition_values[path] = values
    selected = select_files(
        [FileStatistics(path, 1, columns=_facts(partition_values[path], 1)) for path in paths],
        partitions,
        schema,
    )
    if not all(file.is_complete for file in selected):
        return None
    file_statistics = _read_in_parallel(
        frame, [file.path for file in selected], tuple(_requested_columns(schema, request))
    )
    if file_statistics is None:
        return None
    return [
        replace(
            file,
            columns={**file.columns, **_facts(partition_values[file.path], file.rows)},
            path_columns=frozenset(keys.values()),
        )
        for file in file_statistics
    ]


PartitionValues = Mapping[Column, Scalar | None]
"""The values of a file's partition columns."""


def _facts(partition_values: PartitionValues, rows: int) -> dict[Column, ColumnStatistics]:
    return {column: constant_statistics(value, rows) for column, value in partition_values.items()}


def folder_columns(frame: DataFrame, dataset: Dataset | None = None) -> frozenset[str]:
    """Return the columns taken from folder names, for a frame of Parquet files, by exact names.

    Spark ignores such a column if a file also contains it. `dataset` is what the frame was opened from, if
    known.
    """
    if not hasattr(frame, "_jdf"):
        names = connect_files.partition_columns(frame)
    else:
        file_relation = _parquet_relation(frame, dataset)
        names = [] if file_relation is None else list(file_relation.partitionSchema().fieldNames())
    if dataset is not None and dataset.layout:
        names += dataset.layout.columns
    lowered = {name.lower() for name in names}
    return frozenset(name for name in frame.columns if name.lower() in lowered)


def _parquet_relation(frame: DataFrame, dataset: Dataset | None) -> Any:
    """Return Spark's relation of a frame that only reads Parquet files, or None."""
    has_keys = dataset is not None and bool(dataset.layout)
    leaf = leaf_relation(frame, "LogicalRelation", below_keys=has_keys)
    file_relation = leaf.relation() if leaf is not None else None
    if file_relation is None or file_relation.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    return (
        file_relation
        if file_relation.fileFormat().getClass().getSimpleName() == "ParquetFileFormat"
        else None
    )


def listing(frame: DataFrame, dataset: Dataset | None = None) -> list[str] | None:
    """Return the addresses of the files of a frame that reads Parquet files, each once, or None."""
    if not hasattr(frame, "_jdf"):
        return connect_files.files_read(frame) if dataset is None or not dataset.layout else None
    file_relation = _parquet_relation(frame, dataset)
    if file_relation is None:
        return None
    location = file_relation.location()
    # A catalog may map a partition to a folder with another name.
    if (
        location.getClass().getSimpleName() != "InMemoryFileIndex"
        and file_relation.partitionSchema().length()
    ):
        return None
    roots = location.rootPaths()
    # A path that is read twice is listed only once.
    if roots.distinct().size() != roots.size():
        return None
    # One py4j call for all files instead of one per array element. The addresses are URL-encoded, so they
    # contain no line breaks.
    jvm: Any = frame.sparkSession._jvm
    joined = jvm.org.apache.hadoop.util.StringUtils.join("\n", location.inputFiles())
    return sorted(data_files(joined.split("\n"))) if joined else []


def _partition_values(
    path: str, schema: DataType, keys: Mapping[str, str], dataset: Dataset | None
) -> PartitionValues | None:
    """Return the values of the partition columns of a file, from its path, or None if one is uncertain."""
    layout, root = (HIVE, "") if dataset is None else (dataset.layout, dataset.path or "")
    values: dict[Column, Scalar | None] = {}
    for name, text in (values_in_path(path, root, layout) or {}).items():
        key = keys.get(name)
        if key is None:
            continue
        kind = column_field(schema, key)
        make = PARTITION_PARSERS.get(kind.name) if kind else None
        if kind is None or make is None:
            return None
        try:
            values[Column((key,))] = None if text == NULL_PARTITION else make(text, kind)
        except (ValueError, ArithmeticError):
            return None
    return values if len(values) == len(keys) else None


def _requested_columns(schema: DataType, request: StatisticsRequest) -> Iterator[RequestedColumn]:
    for column in sorted(request.bounds | request.values, key=str):
        kind = resolve(schema, column)
        if isinstance(kind, DataType) and has_exact_names(schema, column):
            yield RequestedColumn(column, kind, column in request.values)


def _read_in_parallel(
    frame: DataFrame, paths: Sequence[str], requested: tuple[RequestedColumn, ...]
) -> list[FileStatistics] | None:
    work = partial(read_footers, requested=requested)
    if len(paths) > MOST_ON_DRIVER:
        chunks = [paths[start : start + _PER_TASK] for start in range(0, len(paths), _PER_TASK)]
        outputs = in_tasks(frame.sparkSession, chunks, work)
        parts = [None] if isinstance(outputs, Failure) else outputs
    elif paths and urlsplit(paths[0]).scheme not in ("", "file"):
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            parts = list(
                pool.map(partial(work, storage=connected_storage(paths)), ([path] for path in paths))
            )
    else:
        parts = [work(paths)]
    complete = [part for part in parts if part is not None]
    return [file for part in complete for file in part] if len(complete) == len(parts) else None


def read_footers(
    paths: Iterable[str], requested: tuple[RequestedColumn, ...], storage: ArrowFiles | None = None
) -> list[FileStatistics] | None:
    """Return the statistics of these files in their order, or None if one of them cannot be read."""
    storage = storage or ArrowFiles()
    file_statistics = []
    for path in paths:
        try:
            with open_input(path, storage) as source:
                file_statistics.append(read_statistics(source, path, requested))
        except (OSError, ValueError, NotImplementedError):
            return None
    return file_statistics
