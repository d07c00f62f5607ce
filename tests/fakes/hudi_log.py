"""A writer of Hudi's log files: blocks of any kind, with the schema and content that a test passes."""

from __future__ import annotations

import gzip
import io
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import fastavro

SCHEMA = {
    "type": "record", "name": "people", "fields": [
        {"name": "_hoodie_record_key", "type": ["null", "string"]}, {"name": "id", "type": "long"},
        {"name": "email", "type": ["null", "string"]},
    ],
}  # fmt: skip


def block(kind: int, content: bytes, schema: object = SCHEMA, version: int = 1) -> bytes:
    text = json.dumps(schema).encode()
    header = struct.pack(">iii", 1, 2, len(text)) + text
    body = struct.pack(">ii", version, kind) + header + struct.pack(">q", len(content)) + content
    body += struct.pack(">i", 0)
    size = len(body) + 8
    return b"#HUDI#" + struct.pack(">q", size) + body + struct.pack(">q", size + 6)


def encoded(record: Mapping[str, Any], schema: Any = SCHEMA) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), record)
    return file.getvalue()


def rows(records: Sequence[Mapping[str, Any]], schema: Any = SCHEMA) -> bytes:
    """A block of Avro records."""
    parts = [encoded({"_hoodie_record_key": None, "email": None} | record, schema) for record in records]
    content = b"".join(struct.pack(">i", len(part)) + part for part in parts)
    return block(3, struct.pack(">ii", 3, len(parts)) + content, schema)


def deletes(version: int, data: bytes) -> bytes:
    return block(1, struct.pack(">ii", version, len(data)) + data)


def hfile(entries: Mapping[str, Mapping[str, Any]], codec: int = 1, schema: Any = SCHEMA) -> bytes:
    """An HFile with one block of records, compressed by gzip (codec 1) or not (codec 2)."""
    cells = b""
    for key, record in entries.items():
        name, value = key.encode(), encoded(record, schema)
        cell = struct.pack(">h", len(name)) + name + bytes(10)
        cells += struct.pack(">ii", len(cell), len(value)) + cell + value + b"\0"
    pair = _field(1, b"schema") + _field(2, json.dumps(schema).encode())
    info = _field(1, pair)
    file = _hfile_block(b"DATABLK*", cells, codec) + _hfile_block(
        b"FILEINF2", b"PBUF" + _varint(len(info)) + info, codec
    )
    trailer = _varint(7 << 3) + _varint(len(entries)) + _varint(12 << 3) + _varint(codec)
    return file + (b'TRABLK"$' + _varint(len(trailer)) + trailer).ljust(4096, b"\0")


def _hfile_block(magic: bytes, content: bytes, codec: int) -> bytes:
    stored = gzip.compress(content) if codec == 1 else content
    return magic + struct.pack(">iiqbii", len(stored), len(content), -1, 0, 16384, len(stored) + 33) + stored


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    data = b""
    while value >= 0x80:
        data += bytes([value & 0x7F | 0x80])
        value >>= 7
    return data + bytes([value])
