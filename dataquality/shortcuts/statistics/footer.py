"""One Parquet file's footer to facts; runs on the driver or in a task, without Spark."""

from __future__ import annotations

import datetime as dt
import json
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dq.contracts.types import DataType
from dq.dataquality.model.column import Column
from dq.dataquality.shortcuts.statistics.facts import MOST_VALUES, Facts, File, Scalar
from dq.dataquality.shortcuts.statistics.thrift import Fields, Malformed, structure

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.parquet import ColumnChunkMetaData, FileMetaData, ParquetSchema

# From here on the calendars of all writers agree: earlier dates may have been written in the Julian one, and
# earlier instants with the local mean times of cities, which Spark shifts when it reads them.
_CERTAIN_FROM = dt.date(1900, 1, 1)
_MAGIC = b"PAR1"


@dataclass(frozen=True, slots=True)
class Asked:
    """A column as the frame has it, exactly so written, and whether its values are wanted."""

    column: Column
    type: DataType
    values: bool


def read(source: NativeFile, path: str, asked: tuple[Asked, ...]) -> File:
    """The file's rows, and what its footer and its dictionaries say about these columns.

    Raises OSError and pyarrow's errors, which are ValueErrors or OSErrors, for what is no Parquet file.
    """
    import pyarrow.parquet as pq

    meta = pq.read_metadata(source)
    leaves = _leaves(meta.schema)
    groups = [meta.row_group(index) for index in range(meta.num_row_groups)]
    wanted = {
        one: leaves[one.column] for one in asked if _fits(meta.schema, leaves.get(one.column), one.type)
    }
    chunks = _chunks(source, meta) if any(one.values for one in wanted) else []
    facts = {}
    for one, leaf in wanted.items():
        found = _bounds([group.column(leaf) for group in groups if group.num_rows], one.type)
        if one.values:
            values = _values(source, [group[leaf] for group in chunks], one.type)
            found = Facts(found.nulls, found.least, found.greatest, found.attained, values)
        facts[one.column] = found
    return File(path, meta.num_rows, True, facts)


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
    """Whether Spark reads this leaf as the type without changing a value."""
    fits = _FITS.get(kind.name)
    if leaf is None or fits is None:
        return False
    column = schema.column(leaf)
    return fits(json.loads(column.logical_type.to_json()), column.physical_type, kind)


_Fits = Callable[[Mapping[str, Any], str, DataType], bool]


def _integer(bits: int, physical: str) -> _Fits:
    def fits(logical: Mapping[str, Any], stored: str, _kind: DataType) -> bool:
        if logical["Type"] == "None":
            return stored == physical and bits in (32, 64)
        return stored == physical and logical == {"Type": "Int", "bitWidth": bits, "isSigned": True}

    return fits


def _decimal(logical: Mapping[str, Any], stored: str, kind: DataType) -> bool:
    numbers = (logical.get("precision"), logical.get("scale"))
    return logical["Type"] == "Decimal" and numbers == kind.numbers and stored in ("INT32", "INT64")


def _instant(utc: bool) -> _Fits:
    def fits(logical: Mapping[str, Any], stored: str, _kind: DataType) -> bool:
        return (
            logical["Type"] == "Timestamp"
            and stored == "INT64"
            and logical["isAdjustedToUTC"] is utc
            and logical["timeUnit"] in ("milliseconds", "microseconds")
        )

    return fits


_FITS: dict[str, _Fits] = {
    "boolean": lambda logical, stored, _: logical["Type"] == "None" and stored == "BOOLEAN",
    "tinyint": _integer(8, "INT32"),
    "smallint": _integer(16, "INT32"),
    "int": _integer(32, "INT32"),
    "bigint": _integer(64, "INT64"),
    "decimal": _decimal,
    "date": lambda logical, stored, _: logical["Type"] == "Date" and stored == "INT32",
    "timestamp": _instant(utc=True),
    "timestamp_ntz": _instant(utc=False),
    "string": lambda logical, stored, _: logical["Type"] == "String" and stored == "BYTE_ARRAY",
    # Of these only the number of NULLs is used; see _BOUNDED.
    "float": lambda logical, stored, _: logical["Type"] == "None" and stored == "FLOAT",
    "double": lambda logical, stored, _: logical["Type"] == "None" and stored == "DOUBLE",
}
_PYTHON: dict[str, type] = {
    "boolean": bool,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int),
    "date": dt.date,
    "timestamp": dt.datetime,
    "timestamp_ntz": dt.datetime,
}
_BOUNDED = frozenset({*_PYTHON, "decimal"})


def _bounds(chunks: list[ColumnChunkMetaData], kind: DataType) -> Facts:
    nulls: int | None = 0
    lows: list[Any] = []
    highs: list[Any] = []
    bounded = kind.name in _BOUNDED
    for chunk in chunks:
        found = chunk.statistics if chunk.is_stats_set else None
        absent = found.null_count if found is not None and found.has_null_count else None
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
        if day < _CERTAIN_FROM:
            return None, None
    if isinstance(low, dt.datetime) and (low.tzinfo is None) is (kind.name == "timestamp"):
        return None, None
    return low, high


# Ids of fields and values of enums in parquet.thrift.
_ROW_GROUPS, _COLUMNS, _META = 4, 1, 3
_CODEC, _DATA_AT, _DICTIONARY_AT, _ENCODING_STATS = 4, 9, 11, 13
_DATA_PAGES, _DICTIONARY_PAGE = (0, 3), 2
_PLAIN, _DICTIONARY_ENCODINGS = (0, 2), (2, 8)
_CODECS = {1: "snappy", 2: "gzip", 6: "zstd", 7: "lz4_raw"}
# A dictionary of 1,000 values that is larger than this has values too long to be worth the reading.
_MOST_BYTES = 1 << 20


def _chunks(source: NativeFile, meta: FileMetaData) -> list[list[Fields]]:
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


def _values(source: NativeFile, chunks: list[Fields], kind: DataType) -> frozenset[Scalar] | None:
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
    if any(day < _CERTAIN_FROM for day in days):
        raise ValueError("a date of an uncertain calendar")
    return list(days)


_DECODE: dict[str, Callable[[bytes, int, DataType], list[Scalar]]] = {
    "string": _texts,
    **dict.fromkeys(("tinyint", "smallint", "int"), _integers("i")),
    "bigint": _integers("q"),
    "date": _dates,
}
