"""Log files and HFiles of Hudi, read as blocks and records.

A log file is a sequence of blocks with the changes of a file group; an HFile has the records of the metadata
table. Sources: `HoodieLogFormatWriter`, `HoodieLogBlock` and its subclasses of Hudi 0.12 to 1.1; HBase's
reference guide, appendix H, "HFile format version 3", and `HFile.proto`.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, BinaryIO

from dq.contracts.outcome import ReadError
from dq.lake.compression import avro_decoder

LOG_MAGIC = b"#HUDI#"
HFILE_MAGICS = frozenset({
    b"DATABLK*", b"IDXLEAF2", b"BLMFBLK2", b"METABLKc", b"IDXINTE2", b"IDXROOT2", b"FILEINF2",
})  # fmt: skip
"""The first eight bytes of an HFile are one of these."""

_LOG_VERSION = 1
_SCHEMA = 2  # the ordinal of a header
_LONG = struct.Struct(">q")
_INT = struct.Struct(">i")
# A version, a kind, the counts of two maps, and the lengths of the content and of the block.
_LEAST_BLOCK = 4 * _INT.size + 2 * _LONG.size
_CHUNK = 1 << 20


class Kind(IntEnum):
    """The kind of a block by its number in the file."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO = 3
    HFILE = 4
    PARQUET = 5
    CDC = 6


@dataclass(frozen=True, slots=True)
class LogBlock:
    """A block of a log file: its kind, the Avro schema of its records (may be empty), and its content.

    CORRUPT stands for bytes that are no block, e.g. after the crash of a writer.
    """

    kind: int
    schema: str = ""
    content: bytes = b""


def log_blocks(source: BinaryIO, size: int) -> Iterator[LogBlock]:
    """Yield the blocks of a log file of `size` bytes. Bytes that are no block are yielded as CORRUPT."""
    at = 0
    while at < size:
        source.seek(at)
        block, end = _log_block(source, at, size)
        if block is None:
            yield LogBlock(Kind.CORRUPT)
            end = _next_magic(source, at + 1, size)
        else:
            yield block
        at = end


def _log_block(source: BinaryIO, at: int, size: int) -> tuple[LogBlock | None, int]:
    """Return the block at an offset, or None if there is none, and the offset of its end."""
    head = source.read(len(LOG_MAGIC) + _LONG.size)
    if len(head) < len(LOG_MAGIC) + _LONG.size or not head.startswith(LOG_MAGIC):
        return None, at
    length = _LONG.unpack_from(head, len(LOG_MAGIC))[0]
    end = at + len(head) + length
    if length < _LEAST_BLOCK or end > size:
        return None, at
    data = source.read(length)
    # The last number is the length with the magic, which a crashed writer did not reach.
    if len(data) != length or _LONG.unpack_from(data, length - _LONG.size)[0] != length + len(LOG_MAGIC):
        return None, at
    reader = _Reader(data)
    try:
        version, kind = reader.read_int(), reader.read_int()
        if version != _LOG_VERSION:
            return None, at
        header = reader.read_texts()
        content = reader.read(reader.read_long())
        reader.read_texts()  # the footer
    except (struct.error, ValueError):
        return None, at
    if reader.at != length - _LONG.size:
        return None, at
    return LogBlock(kind, header.get(_SCHEMA, b"").decode(errors="replace"), content), end


def _next_magic(source: BinaryIO, at: int, size: int) -> int:
    while at < size:
        source.seek(at)
        chunk = source.read(_CHUNK)
        index = chunk.find(LOG_MAGIC)
        if index >= 0:
            return at + index
        at += max(len(chunk) - len(LOG_MAGIC) + 1, 1)
    return size


class _Reader:
    """Reads big-endian numbers and sized bytes. Raises struct.error or ValueError at the end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def read_int(self) -> int:
        (value,) = _INT.unpack_from(self.data, self.at)
        self.at += _INT.size
        return int(value)

    def read_long(self) -> int:
        (value,) = _LONG.unpack_from(self.data, self.at)
        self.at += _LONG.size
        return int(value)

    def read(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError
        self.at += size
        return self.data[self.at - size : self.at]

    def read_texts(self) -> dict[int, bytes]:
        texts = {}
        for _ in range(self.read_int()):
            name = self.read_int()
            texts[name] = self.read(self.read_int())
        return texts


def avro_rows(block: LogBlock) -> Iterator[Any]:
    """Yield the records of an Avro block or a block of change data. Raises ReadError for a damaged one."""
    decode = _decoder(block.schema)
    reader = _Reader(block.content)
    try:
        reader.read_int()  # the version of the block
        for _ in range(reader.read_int()):
            yield decode(reader.read(reader.read_int()))
    except (struct.error, ValueError) as error:
        raise _unreadable("a block of it is damaged") from error
    if reader.at != len(block.content):
        raise _unreadable("a block of it is damaged")


def _decoder(schema: str | bytes) -> Callable[[bytes], Any]:
    try:
        return avro_decoder(json.loads(schema))
    except ValueError as error:
        raise _unreadable("the Avro schema of a block cannot be read") from error


def _unreadable(reason: str) -> ReadError:
    return ReadError(f"{reason}.", "Check this file.")


_LEAST_DELETE_VERSION = 3


def deleted_records(block: LogBlock) -> list[Any] | None:
    """Return the record keys and partitions of a block of deletes, or None before its version 3.

    Older versions are objects serialized by Java or Kryo. Raises ReadError for a damaged block.
    """
    reader = _Reader(block.content)
    try:
        if reader.read_int() < _LEAST_DELETE_VERSION:
            return None
        return list(avro_decoder(_DELETES)(reader.read(reader.read_int()))["records"])
    except (struct.error, ValueError) as error:
        raise _unreadable("a block of deletes is damaged") from error


def _wrapper(name: str, kind: object) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": [{"name": "value", "type": kind}]}


_SCALARS = [
    _wrapper("Boolean", "boolean"), _wrapper("Int", "int"), _wrapper("Long", "long"),
    _wrapper("Float", "float"), _wrapper("Double", "double"), _wrapper("Bytes", "bytes"),
    _wrapper("String", "string"), _wrapper("Date", "int"),
    _wrapper("Decimal", {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}),
    _wrapper("Time", "long"), _wrapper("Timestamp", "long"),
]  # fmt: skip
_ARRAY = {
    "type": "record", "name": "Array", "fields": [{
        "name": "values",
        "type": ["null", {"type": "array", "items": [
            "null", *(scalar["name"] for scalar in _SCALARS), _wrapper("LocalDate", "int"),
        ]}],
    }],
}  # fmt: skip
# Hudi's HoodieDeleteRecordList.avsc; the names do not matter. The schema of older releases is its beginning.
_DELETES = {
    "type": "record", "name": "Deletes", "fields": [{"name": "records", "type": {"type": "array", "items": {
        "type": "record", "name": "Delete", "fields": [
            {"name": "key", "type": ["null", "string"]}, {"name": "partition", "type": ["null", "string"]},
            {"name": "order", "type": ["null", *_SCALARS, _ARRAY]},
        ],
    }}}],
}  # fmt: skip


# HFiles.

_TRAILER_BYTES = 4096
_TRAILER_MAGIC = b'TRABLK"$'
_HEADER = struct.Struct(">8siiqbii")
_FILE_INFO_MAGIC = b"PBUF"
_ENTRIES, _CODEC = 7, 12  # fields of HFile.proto
_GZIP, _NONE = 1, 2
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_SCHEMA_NAME = b"schema"


def hfile_records(source: BinaryIO, size: int) -> Iterator[tuple[bytes, Any]]:
    """Yield the keys of an HFile, each with its record.

    Raises ReadError for a file that is damaged, compressed with another codec than gzip, or without schema.
    """
    try:
        yield from _hfile_records(source, size)
    except (struct.error, zlib.error, ValueError, IndexError) as error:
        raise _unreadable("it is a damaged HFile") from error


def _hfile_records(source: BinaryIO, size: int) -> Iterator[tuple[bytes, Any]]:
    source.seek(max(size - _TRAILER_BYTES, 0))
    trailer = source.read(_TRAILER_BYTES)
    if not trailer.startswith(_TRAILER_MAGIC):
        raise _unreadable("it is an HFile without trailer")
    facts = dict(_fields(_delimited(trailer, len(_TRAILER_MAGIC))))
    codec = facts.get(_CODEC, _NONE)
    if codec not in (_GZIP, _NONE):
        raise _unreadable("it is an HFile with another compression than gzip")
    # The schema of the records is in a block behind them.
    data_blocks, schema = [], None
    at = 0
    while at < size - _TRAILER_BYTES:
        magic, content, end = _hfile_block(source, at, size, codec)
        if magic == b"DATABLK*":
            data_blocks.append(at)
        elif magic == b"FILEINF2":
            schema = dict(_file_info(content)).get(_SCHEMA_NAME)
        at = end
    if not data_blocks:
        return
    if schema is None:
        raise _unreadable("it is an HFile without schema")
    decode = _decoder(schema)
    count = 0
    for at in data_blocks:
        for key, value in _cells(_hfile_block(source, at, size, codec)[1]):
            count += 1
            # A record of the metadata table without value is deleted.
            yield key, decode(value) if value else None
    if count != facts.get(_ENTRIES):
        raise _unreadable("it is an HFile with another number of records than its trailer says")


def _hfile_block(source: BinaryIO, at: int, size: int, codec: object) -> tuple[bytes, bytes, int]:
    source.seek(at)
    magic, stored, _, _, _, _, with_header = _HEADER.unpack(source.read(_HEADER.size))
    end = at + _HEADER.size + stored
    if magic not in HFILE_MAGICS or not 0 <= with_header - _HEADER.size <= stored or end > size:
        raise ValueError
    content = source.read(with_header - _HEADER.size)
    return magic, zlib.decompress(content, _GZIP_WINDOW) if codec == _GZIP else content, end


def _cells(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the rows and values of a block of data."""
    reader = _Reader(content)
    while reader.at < len(content):
        key_size, value_size = reader.read_int(), reader.read_int()
        key, value = reader.read(key_size), reader.read(value_size)
        reader.read(1)  # the version of the cell, which is 0
        row_size = int.from_bytes(key[:2], "big")
        if row_size > len(key) - 2:
            raise ValueError
        yield key[2 : 2 + row_size], value


def _file_info(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not content.startswith(_FILE_INFO_MAGIC):
        raise _unreadable("it is an HFile of an older version")
    for _, pair in _fields(_delimited(content, len(_FILE_INFO_MAGIC))):
        entry = dict(_fields(pair))
        yield entry.get(1, b""), entry.get(2, b"")


# Protocol Buffers: https://protobuf.dev/programming-guides/encoding.


def _delimited(data: bytes, at: int) -> bytes:
    size, at = _varint(data, at)
    return data[at : at + size]


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        if tag & 7 == 0:
            value, at = _varint(message, at)
            yield tag >> 3, value
        elif tag & 7 == 2:
            size, at = _varint(message, at)
            yield tag >> 3, message[at : at + size]
            at += size
        else:
            raise ValueError


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
