"""Parquet files whose footer says what a test wants: Thrift's compact protocol, read and written with types.

A node is a pair of a type and a value; a structure's value maps field ids to nodes, a list's is the type of
its elements and their values.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

Node = tuple[int, Any]
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_WHOLE = (4, 5, 6)
# Field ids of parquet.thrift.
ROWS, GROUPS, CREATED_BY = 3, 4, 6
COLUMNS, GROUP_ROWS = 1, 3
META, STATISTICS, ENCODING_STATS = 3, 12, 13
OLD_MAX, OLD_MIN, NULLS, DISTINCT, MAX, MIN, MAX_EXACT, MIN_EXACT = 1, 2, 3, 4, 5, 6, 7, 8


def rewritten(path: Path, change: Callable[[dict[int, Node]], None]) -> Path:
    """The file with a footer that `change` was let at."""
    data = path.read_bytes()
    (size,) = struct.unpack("<I", data[-8:-4])
    start = len(data) - 8 - size
    footer, _ = _structure(data, start)
    change(footer)
    made = bytearray()
    _write_structure(made, footer)
    path.write_bytes(data[:start] + bytes(made) + struct.pack("<I", len(made)) + b"PAR1")
    return path


def chunks(footer: dict[int, Node], column: int = 0) -> list[dict[int, Node]]:
    """The metadata of a column's chunk in every row group."""
    groups = footer[GROUPS][1][1]
    return [group[COLUMNS][1][1][column][META][1] for group in groups]


def statistics(footer: dict[int, Node], column: int = 0) -> list[dict[int, Node]]:
    """The statistics of a column in every row group that has them."""
    return [chunk[STATISTICS][1] for chunk in chunks(footer, column) if STATISTICS in chunk]


def whole(value: int) -> Node:
    return (6, value)


def raw(value: bytes) -> Node:
    return (_BINARY, value)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _read(kind: int, data: bytes, at: int) -> tuple[Any, int]:
    if kind in _WHOLE:
        value, at = _varint(data, at)
        return (value >> 1) ^ -(value & 1), at
    if kind == _BINARY:
        size, at = _varint(data, at)
        return data[at : at + size], at + size
    if kind == _BYTE:
        return data[at], at + 1
    if kind == _DOUBLE:
        return data[at : at + 8], at + 8
    if kind in (_LIST, _SET):
        size, inner = data[at] >> 4, data[at] & 15
        at += 1
        if size == 15:
            size, at = _varint(data, at)
        values = []
        for _ in range(size):
            value, at = (data[at], at + 1) if inner in (_TRUE, _FALSE) else _read(inner, data, at)
            values.append(value)
        return (inner, values), at
    return _structure(data, at)


def _structure(data: bytes, at: int) -> tuple[dict[int, Node], int]:
    found: dict[int, Node] = {}
    field = 0
    while data[at]:
        delta, kind = data[at] >> 4, data[at] & 15
        at += 1
        if delta:
            field += delta
        else:
            field, at = _read(_WHOLE[0], data, at)
        if kind in (_TRUE, _FALSE):
            found[field] = (kind, None)
        else:
            value, at = _read(kind, data, at)
            found[field] = (kind, value)
    return found, at + 1


def _write_varint(made: bytearray, value: int) -> None:
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)


def _write(made: bytearray, kind: int, value: Any) -> None:
    if kind in _WHOLE:
        _write_varint(made, value << 1 if value >= 0 else (-value << 1) - 1)
    elif kind == _BINARY:
        _write_varint(made, len(value))
        made += value
    elif kind == _BYTE:
        made.append(value)
    elif kind == _DOUBLE:
        made += value
    elif kind in (_LIST, _SET):
        inner, values = value
        made.append(min(len(values), 15) << 4 | inner)
        if len(values) >= 15:
            _write_varint(made, len(values))
        for each in values:
            if inner in (_TRUE, _FALSE):
                made.append(each)
            else:
                _write(made, inner, each)
    else:
        _write_structure(made, value)


def _write_structure(made: bytearray, fields: dict[int, Node]) -> None:
    before = 0
    for field, (kind, value) in sorted(fields.items()):
        made.append((field - before) << 4 | kind)
        before = field
        if kind not in (_TRUE, _FALSE):
            _write(made, kind, value)
    made.append(0)
