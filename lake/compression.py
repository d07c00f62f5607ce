"""Decompression of table log files with a size limit, since a small file may expand to gigabytes."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from io import BytesIO
from types import ModuleType
from typing import Any, BinaryIO, NamedTuple

from dq.contracts.install import install_command
from dq.contracts.outcome import MissingTool, ReadError
from dq.lake.storage import Files

MOST_UNPACKED = 128 * 1024 * 1024
"""Limit in bytes; a larger file is not a table log, or cannot be parsed at every tick."""

MAGIC = b"Obj\x01"
_SYNC = 16
# Maximum number of types in a schema whose values take no bytes.
_MOST_HOLLOW = 8


_BROKEN = (ValueError, LookupError, TypeError, EOFError, zlib.error, OSError, lzma.LZMAError)


class Block(NamedTuple):
    """A block of an Avro file: its claimed number of records, and its compressed bytes."""

    records: int
    content: bytes


def unzipped(content: bytes, path: str) -> bytes:
    """Return the content of a gzip file. Raises ReadError if it is not gzip or exceeds the limit."""
    try:
        with gzip.GzipFile(fileobj=BytesIO(content)) as file:
            unpacked = file.read(MOST_UNPACKED + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ReadError(f"{path} is not a readable gzip file.", "Check this file.") from error
    if len(unpacked) > MOST_UNPACKED:
        raise _too_much(path)
    return unpacked


def require_bounded_avro(content: bytes, path: str) -> None:
    """Check that an Avro file is within the limit.

    Raises:
        ReadError: Its uncompressed blocks exceed the limit, or claim more records than they can hold.
        MissingTool: The package of its codec is not installed.
    """
    file = BytesIO(content)
    room = MOST_UNPACKED
    try:
        codec, schema, blocks = avro_header(file)
        if _takes_no_bytes(schema, path, []):
            raise _too_much(path)
        size = _SIZES.get(codec)
        if size is None:
            raise ReadError(
                f"{path} is compressed with {codec!r}, which is not supported.", "Check this file."
            )
        _require_codec(codec)
        for block in blocks:
            unpacked = size(block.content, room)
            room -= unpacked
            # A record takes at least one byte; log records always have fields.
            if room < 0 or block.records > max(unpacked, 0):
                raise _too_much(path)
    except _BROKEN as error:
        raise ReadError(f"{path} is not a readable Avro file.", "Check this file.") from error


def _too_much(path: str) -> ReadError:
    return ReadError(f"{path} holds more than {MOST_UNPACKED >> 20} MiB.", "Check this file.")


def _takes_no_bytes(schema: object, path: str, hollow: list[str]) -> bool:
    """Return whether a value takes no bytes, e.g. the partition of an unpartitioned table.

    `hollow` collects the names of such types. Raises ReadError for many of them, and for an array of such
    values, since any number of them fits into a block.
    """
    if isinstance(schema, list):
        for branch in schema:
            if branch != "null":
                _takes_no_bytes(branch, path, hollow)
        return False
    kind = schema.get("type") if isinstance(schema, dict) else None
    if not isinstance(schema, dict):
        is_hollow = schema == "null" or str(schema).rpartition(".")[2] in hollow
    elif kind == "record":
        parts = [_takes_no_bytes(field["type"], path, hollow) for field in schema.get("fields") or []]
        is_hollow = all(parts)
    elif kind == "fixed":
        is_hollow = not schema.get("size")
    elif kind in ("array", "map"):
        if (
            _takes_no_bytes(schema["items" if kind == "array" else "values"], path, hollow)
            and kind == "array"
        ):
            raise _too_much(path)
        is_hollow = False
    else:
        return _takes_no_bytes(kind, path, hollow)
    if is_hollow:
        hollow.append(str(schema.get("name") if isinstance(schema, dict) else schema).rpartition(".")[2])
        if len(hollow) > _MOST_HOLLOW:
            raise _too_much(path)
    return is_hollow


def avro_header(file: BinaryIO) -> tuple[str, object, Iterator[Block]]:
    """Return the codec, the schema and the blocks of an Avro file.

    Raises ValueError, LookupError or EOFError for other files. Source: the Avro specification, "Object
    Container Files".
    """
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError("not an Avro file")
    metadata: dict[bytes, bytes] = {}
    while count := _number(file):
        if count < 0:
            count = -count
            _number(file)
        for _ in range(count):
            name = _sized(file)
            metadata[name] = _sized(file)
    file.read(_SYNC)
    codec = metadata.get(b"avro.codec", b"null").decode()
    return codec, json.loads(metadata[b"avro.schema"]), _blocks(file)


def _blocks(file: BinaryIO) -> Iterator[Block]:
    while head := file.read(1):
        file.seek(-len(head), 1)
        yield Block(_number(file), _sized(file))
        file.read(_SYNC)


def _sized(file: BinaryIO) -> bytes:
    size = _number(file)
    data = file.read(size) if size >= 0 else b""
    if len(data) != size:
        raise EOFError
    return data


def _number(file: BinaryIO) -> int:
    """Read an Avro long: a zigzag-encoded varint."""
    number = _varint(file)
    return (number >> 1) ^ -(number & 1)


def _varint(file: BinaryIO) -> int:
    number, shift = 0, 0
    while shift < 70:
        (byte,) = file.read(1) or _end()
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number
        shift += 7
    raise ValueError("unterminated number")


def _end() -> bytes:
    raise EOFError


def _stream_size(open_file: Callable[[BytesIO], bz2.BZ2File | lzma.LZMAFile]) -> Callable[[bytes, int], int]:
    """Return a function for the uncompressed size of all streams of a block; fastavro decompresses all of
    them.
    """

    def size(content: bytes, room: int) -> int:
        with open_file(BytesIO(content)) as file:
            return len(file.read(room + 1))

    return size


# Uncompressed size of a block by codec; `room` + 1 stands for any larger size.
_SIZES: Mapping[str, Callable[[bytes, int], int]] = {
    "null": lambda content, _: len(content),
    "deflate": lambda content, room: len(zlib.decompressobj(-15).decompress(content, room + 1)),
    "bzip2": _stream_size(bz2.BZ2File),
    "xz": _stream_size(lzma.LZMAFile),
    # The block states its uncompressed size, which snappy enforces.
    "snappy": lambda content, _: _varint(BytesIO(content)),
    "zstandard": lambda content, room: _zstandard(content, room),
}


def _zstandard(content: bytes, room: int) -> int:
    zstd = _zstd()
    try:
        return _stream_size(zstd.ZstdFile)(content, room)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error


def _zstd() -> ModuleType:
    """Return the module that fastavro uses for this codec."""
    return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


_CODEC_MODULES: Mapping[str, Callable[[], ModuleType]] = {
    "snappy": lambda: import_module("cramjam"),
    "zstandard": _zstd,
}


def _require_codec(codec: str) -> None:
    """Raise MissingTool if the package of a codec is not installed."""
    try:
        _CODEC_MODULES.get(codec, lambda: sys)()
    except ImportError as error:
        what = f"Avro files compressed with {codec} need {error.name}, which is not installed."
        raise MissingTool(what, install_command("lakehouse")) from error


# Avro records: manifests of Iceberg and commits of Hudi.


def avro_records(files: Files, path: str) -> list[dict[str, Any]]:
    """Return all records of the file. Raises MissingTool without fastavro, ReadError if it is not Avro."""
    return parse_avro(files.read(path), path)


def parse_avro(content: bytes, path: str) -> list[dict[str, Any]]:
    """Return all records of a file with this content; `path` is used in messages."""
    fastavro = _fastavro()
    require_bounded_avro(content, path)
    try:
        return [record for record in fastavro.reader(BytesIO(content)) if isinstance(record, dict)]
    # fastavro and the decompressors raise many kinds of errors for broken files.
    except Exception as error:
        raise ReadError(f"{path} is not a readable Avro file.", "Check this file.") from error


def avro_decoder(schema: Any) -> Callable[[bytes], Any]:
    """Return a function that decodes one record of this schema, which has no header.

    Raises MissingTool without fastavro, and ValueError for an invalid schema. The function raises ValueError
    for bytes that are no such record.
    """
    fastavro = _fastavro()
    try:
        parsed = fastavro.parse_schema(schema)
    except (
        fastavro.schema.SchemaParseException,
        fastavro.schema.UnknownType,
        LookupError,
        TypeError,
    ) as error:
        raise ValueError("not an Avro schema") from error

    def decode(content: bytes) -> Any:
        file = BytesIO(content)
        try:
            record = fastavro.schemaless_reader(file, parsed, None)
        except (EOFError, LookupError, ValueError, TypeError, ArithmeticError, OverflowError) as error:
            raise ValueError("a record does not match its Avro schema") from error
        if file.tell() != len(content):
            raise ValueError("a record has more bytes than its Avro schema says")
        return record

    return decode


def _fastavro() -> ModuleType:
    try:
        return import_module("fastavro")
    except ImportError as error:
        what = "Commits of Iceberg and Hudi need fastavro, which is not installed."
        raise MissingTool(what, install_command("lakehouse")) from error
