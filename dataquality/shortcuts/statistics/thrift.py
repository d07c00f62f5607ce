"""Thrift's compact protocol, read without a schema: what pyarrow does not hand out of a Parquet footer.

Source: the Thrift compact protocol specification; Parquet's structures are in parquet.thrift.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

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
