"""Schema-less reader of Thrift's compact protocol, for parts of Parquet that pyarrow does not expose.

Source: the Thrift compact protocol specification; Parquet's structures are in parquet.thrift.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

Value = bool | int | float | bytes | list["Value"] | dict[int, "Value"]
Fields = dict[int, Value]

_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_NUMBERS = (4, 5, 6)
# A list header has four bits for the size; this value means that a varint size follows.
_LONG = 15


class Malformed(ValueError):
    """The bytes are not a struct of Thrift's compact protocol as used by Parquet."""


def read_struct(data: bytes, offset: int = 0) -> tuple[Fields, int]:
    """Return the struct at an offset as values by field id, and the offset after it. Raises Malformed."""
    try:
        return _read_struct(data, offset)
    except (IndexError, struct.error, RecursionError) as error:
        raise Malformed("the bytes end inside of a structure") from error


def _read_struct(data: bytes, offset: int) -> tuple[Fields, int]:
    fields: Fields = {}
    field_id = 0
    while data[offset] != _STOP:
        delta, kind = data[offset] >> 4, data[offset] & 15
        offset += 1
        if delta:
            field_id += delta
        else:
            field_id, offset = _read_zigzag(data, offset)
        if kind in (_TRUE, _FALSE):
            fields[field_id] = kind == _TRUE
        else:
            fields[field_id], offset = _read_value(kind)(data, offset)
    return fields, offset + 1


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
        shift += 7


def _read_zigzag(data: bytes, offset: int) -> tuple[int, int]:
    value, offset = _read_varint(data, offset)
    return (value >> 1) ^ -(value & 1), offset


def _read_binary(data: bytes, offset: int) -> tuple[Value, int]:
    size, offset = _read_varint(data, offset)
    if offset + size > len(data):
        raise Malformed("the bytes end inside of a text")
    return data[offset : offset + size], offset + size


def _read_list(data: bytes, offset: int) -> tuple[Value, int]:
    size, kind = data[offset] >> 4, data[offset] & 15
    offset += 1
    if size == _LONG:
        size, offset = _read_varint(data, offset)
    values: list[Value] = []
    for _ in range(size):
        if kind in (_TRUE, _FALSE):
            # Inside a list, a boolean is a byte of its own.
            value: Value = data[offset] == _TRUE
            offset += 1
        else:
            value, offset = _read_value(kind)(data, offset)
        values.append(value)
    return values, offset


_READ_VALUE: dict[int, Callable[[bytes, int], tuple[Value, int]]] = {
    _BYTE: lambda data, offset: (data[offset], offset + 1),
    **dict.fromkeys(_NUMBERS, _read_zigzag),
    _DOUBLE: lambda data, offset: (struct.unpack_from("<d", data, offset)[0], offset + 8),
    _BINARY: _read_binary,
    _LIST: _read_list,
    _SET: _read_list,
    _STRUCT: _read_struct,
}


def _read_value(kind: int) -> Callable[[bytes, int], tuple[Value, int]]:
    try:
        return _READ_VALUE[kind]
    except KeyError:
        raise Malformed(f"{kind} is not a Parquet type") from None
