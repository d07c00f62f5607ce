"""All values of a Parquet column, as the dictionaries of its chunks list them."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dq.contracts.types import DataType
from dq.dataquality.answers.statistics.facts import MOST_VALUES, Scalar

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.parquet import FileMetaData


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
            found[field], at = _read(kind)(data, at)
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
            value, at = _read(kind)(data, at)
        found.append(value)
    return found, at


_READ: dict[int, Callable[[bytes, int], tuple[Value, int]]] = {
    _BYTE: lambda data, at: (data[at], at + 1),
    **dict.fromkeys(_NUMBERS, _zigzag),
    _DOUBLE: lambda data, at: (struct.unpack_from("<d", data, at)[0], at + 8),
    _BINARY: _binary,
    _LIST: _list,
    _SET: _list,
    _STRUCT: _structure,
}


def _read(kind: int) -> Callable[[bytes, int], tuple[Value, int]]:
    try:
        return _READ[kind]
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
