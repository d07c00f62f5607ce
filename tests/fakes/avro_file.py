"""Avro files whose records say what a test wants, by the schema that each file holds; no library is needed.

Source: the Avro 1.11 specification, "Binary Encoding" and "Object Container Files".
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

_MAGIC = b"Obj\x01"
_HEADER = {"type": "map", "values": "bytes"}


def rewritten(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The file with every record as `change` left it."""
    source = BytesIO(path.read_bytes())
    assert source.read(4) == _MAGIC
    header = _read(_HEADER, source)
    sync = source.read(16)
    schema, packed = json.loads(header["avro.schema"]), header.get("avro.codec") == b"deflate"
    records = []
    while source.tell() < len(source.getbuffer()):
        count, size = _long(source), _long(source)
        block = source.read(size)
        inside = BytesIO(zlib.decompress(block, -15) if packed else block)
        records += [_read(schema, inside) for _ in range(count)]
        assert source.read(16) == sync
    for record in records:
        change(record)
    made, body = BytesIO(), BytesIO()
    for record in records:
        _write(schema, record, body)
    made.write(_MAGIC)
    _write(_HEADER, header | {"avro.codec": b"null"}, made)
    made.write(sync)
    _put_long(len(records), made)
    _put_long(len(body.getvalue()), made)
    made.write(body.getvalue() + sync)
    path.write_bytes(made.getvalue())
    # Hadoop compares the file with this.
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    return path


def _long(source: BytesIO) -> int:
    value = shift = 0
    while True:
        byte = source.read(1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)
        shift += 7


def _put_long(value: int, made: BytesIO) -> None:
    left = value << 1 if value >= 0 else (-value << 1) - 1
    while left > 0x7F:
        made.write(bytes([left & 0x7F | 0x80]))
        left >>= 7
    made.write(bytes([left]))


_FIXED = {"boolean": "?", "float": "<f", "double": "<d"}
_LONGS, _BYTES = ("int", "long"), ("bytes", "string")


def _read(schema: Any, source: BytesIO) -> Any:
    if isinstance(schema, list):
        at = _long(source)
        return at, _read(schema[at], source)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "null":
        return None
    if kind in _LONGS:
        return _long(source)
    if kind in _BYTES:
        return source.read(_long(source))
    if kind in _FIXED:
        return struct.unpack(_FIXED[kind], source.read(struct.calcsize(_FIXED[kind])))[0]
    if kind == "fixed":
        return source.read(schema["size"])
    if kind == "record":
        return {field["name"]: _read(field["type"], source) for field in schema["fields"]}
    found: list[Any] = []
    while count := _long(source):
        if count < 0:
            _long(source)
        for _ in range(abs(count)):
            key = source.read(_long(source)).decode() if kind == "map" else None
            item = _read(schema["values" if kind == "map" else "items"], source)
            found.append((key, item) if kind == "map" else item)
    return dict(found) if kind == "map" else found


def _write(schema: Any, value: Any, made: BytesIO) -> None:
    if isinstance(schema, list):
        at, inner = value
        _put_long(at, made)
        return _write(schema[at], inner, made)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind in _LONGS:
        _put_long(value, made)
    elif kind in _BYTES:
        _put_long(len(value), made)
        made.write(value)
    elif kind in _FIXED:
        made.write(struct.pack(_FIXED[kind], value))
    elif kind == "fixed":
        made.write(value)
    elif kind == "record":
        for field in schema["fields"]:
            _write(field["type"], value[field["name"]], made)
    elif kind != "null":
        if value:
            _put_long(len(value), made)
        for item in value.items() if kind == "map" else value:
            if kind == "map":
                _put_long(len(item[0].encode()), made)
                made.write(item[0].encode())
            _write(schema["values" if kind == "map" else "items"], item[1] if kind == "map" else item, made)
        _put_long(0, made)
    return None
