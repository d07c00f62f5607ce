"""Compressed files of a table's log, never unpacked to more than a limit: a small file may hold gigabytes."""

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
from dq.contracts.outcome import MissingTool, Unreadable
from dq.lake.storage import Files

# Compressed parts of a table's log, never unpacked to more than a limit: a small file may hold gigabytes.

MOST_UNPACKED = 128 * 1024 * 1024
"""More is no log of a table, or none that can be understood at every tick."""

MAGIC = b"Obj\x01"
_SYNC = 16
# Fields of a record that take no byte, and are made of none all the same.
_MOST_HOLLOW = 8


_BROKEN = (ValueError, LookupError, TypeError, EOFError, zlib.error, OSError, lzma.LZMAError)


class Block(NamedTuple):
    """A block of an Avro file: how many records it says to hold, and its bytes as they are written."""

    records: int
    content: bytes


def unzipped(content: bytes, path: str) -> bytes:
    """The content of a gzip file. Raises Unreadable for what is none, and for what is too much."""
    try:
        with gzip.GzipFile(fileobj=BytesIO(content)) as file:
            found = file.read(MOST_UNPACKED + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise Unreadable(f"{path} is no gzip file that can be read.", "Look at this file.") from error
    if len(found) > MOST_UNPACKED:
        raise _too_much(path)
    return found


def require_bounded_avro(content: bytes, path: str) -> None:
    """Raises Unreadable for an Avro file whose blocks hold too much when they are unpacked, or claim more
    records than they have room for, and MissingTool for a codec whose package is not installed.
    """
    file = BytesIO(content)
    room = MOST_UNPACKED
    try:
        codec, schema, blocks = avro_header(file)
        if _hollow(schema, path, []):
            raise _too_much(path)
        size = _SIZES.get(codec)
        if size is None:
            raise Unreadable(f"{path} is packed by {codec!r}, which is not read.", "Look at this file.")
        _require_codec(codec)
        for block in blocks:
            unpacked = size(block.content, room)
            room -= unpacked
            # A record takes a byte at least: one without any field is none of a log's.
            if room < 0 or block.records > max(unpacked, 0):
                raise _too_much(path)
    except _BROKEN as error:
        raise Unreadable(f"{path} is no Avro file that can be read.", "Look at this file.") from error


def _too_much(path: str) -> Unreadable:
    return Unreadable(f"{path} holds more than {MOST_UNPACKED >> 20} MiB.", "Look at this file.")


def _hollow(schema: object, path: str, hollow: list[str]) -> bool:
    """Whether a value takes no byte, as the partition of a table that has none; `hollow` are the names of
    such types so far. Raises Unreadable for many of them, and for a list of such values: any number of these
    fits in a block.
    """
    if isinstance(schema, list):
        for one in schema:
            if one != "null":
                _hollow(one, path, hollow)
        return False
    kind = schema.get("type") if isinstance(schema, dict) else None
    if not isinstance(schema, dict):
        found = schema == "null" or str(schema).rpartition(".")[2] in hollow
    elif kind == "record":
        parts = [_hollow(one["type"], path, hollow) for one in schema.get("fields") or []]
        found = all(parts)
    elif kind == "fixed":
        found = not schema.get("size")
    elif kind in ("array", "map"):
        if _hollow(schema["items" if kind == "array" else "values"], path, hollow) and kind == "array":
            raise _too_much(path)
        found = False
    else:
        return _hollow(kind, path, hollow)
    if found:
        hollow.append(str(schema.get("name") if isinstance(schema, dict) else schema).rpartition(".")[2])
        if len(hollow) > _MOST_HOLLOW:
            raise _too_much(path)
    return found


def avro_header(file: BinaryIO) -> tuple[str, object, Iterator[Block]]:
    """The codec and the schema of an Avro file, and its blocks.

    Raises ValueError, LookupError or EOFError for what is none. Source: the Avro specification, "Object
    Container Files".
    """
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError("it is no Avro")
    terms: dict[bytes, bytes] = {}
    while count := _number(file):
        if count < 0:
            count = -count
            _number(file)
        for _ in range(count):
            name = _sized(file)
            terms[name] = _sized(file)
    file.read(_SYNC)
    codec = terms.get(b"avro.codec", b"null").decode()
    return codec, json.loads(terms[b"avro.schema"]), _blocks(file)


def _blocks(file: BinaryIO) -> Iterator[Block]:
    while head := file.read(1):
        file.seek(-len(head), 1)
        yield Block(_number(file), _sized(file))
        file.read(_SYNC)


def _sized(file: BinaryIO) -> bytes:
    size = _number(file)
    found = file.read(size) if size >= 0 else b""
    if len(found) != size:
        raise EOFError
    return found


def _number(file: BinaryIO) -> int:
    """A number as Avro writes it: seven bits in a byte, the lowest first, signs folded in."""
    found = _varint(file)
    return (found >> 1) ^ -(found & 1)


def _varint(file: BinaryIO) -> int:
    found, shift = 0, 0
    while shift < 70:
        (byte,) = file.read(1) or _end()
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found
        shift += 7
    raise ValueError("a number without an end")


def _end() -> bytes:
    raise EOFError


def _streamed(open_file: Callable[[BytesIO], bz2.BZ2File | lzma.LZMAFile]) -> Callable[[bytes, int], int]:
    """The size of all streams of a block: fastavro unpacks every one."""

    def size(content: bytes, room: int) -> int:
        with open_file(BytesIO(content)) as file:
            return len(file.read(room + 1))

    return size


# How many bytes a block holds when it is unpacked; one more than there is room for stands for any number.
_SIZES: Mapping[str, Callable[[bytes, int], int]] = {
    "null": lambda content, _: len(content),
    "deflate": lambda content, room: len(zlib.decompressobj(-15).decompress(content, room + 1)),
    "bzip2": _streamed(bz2.BZ2File),
    "xz": _streamed(lzma.LZMAFile),
    # It says itself how much it holds, and cannot hold more than it says.
    "snappy": lambda content, _: _varint(BytesIO(content)),
    "zstandard": lambda content, room: _zstandard(content, room),
}


def _zstandard(content: bytes, room: int) -> int:
    zstd = _zstd()
    try:
        return _streamed(zstd.ZstdFile)(content, room)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error


def _zstd() -> ModuleType:
    """The module that fastavro takes for this codec."""
    return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


_CODEC_MODULES: Mapping[str, Callable[[], ModuleType]] = {
    "snappy": lambda: import_module("cramjam"),
    "zstandard": _zstd,
}


def _require_codec(codec: str) -> None:
    """Raises MissingTool for a codec whose package is not installed."""
    try:
        _CODEC_MODULES.get(codec, lambda: sys)()
    except ImportError as error:
        what = f"Avro files packed by {codec} need {error.name}, which is not installed."
        raise MissingTool(what, install_command("lakehouse")) from error


# Records of an Avro file, in which Iceberg keeps its manifests and Hudi its commits.


def avro_records(files: Files, path: str) -> list[dict[str, Any]]:
    """Every record of the file. Raises MissingTool without fastavro, Unreadable for what is no Avro."""
    return parse_avro(files.read(path), path)


def parse_avro(content: bytes, path: str) -> list[dict[str, Any]]:
    """Every record of a file with this content, which lies at `path`."""
    try:
        import fastavro
    except ImportError as error:
        what = "Commits of Iceberg and Hudi need fastavro, which is not installed."
        raise MissingTool(what, install_command("lakehouse")) from error
    require_bounded_avro(content, path)
    try:
        return [one for one in fastavro.reader(BytesIO(content)) if isinstance(one, dict)]
    # What it raises for broken files is of many kinds, those of the decompressors among them.
    except Exception as error:
        raise Unreadable(f"{path} is no Avro file that can be read.", "Look at this file.") from error
