"""Rows of a check's example as frames of every library, by way of Arrow."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from dq.contracts.types import DataType, parse

_ARROW = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}


def arrow(columns: str, rows: tuple[tuple[object, ...], ...]) -> pa.Table:
    """A table with these columns, as Spark's DDL names them."""
    struct = parse(f"struct<{columns}>")
    listed = list(zip(*rows, strict=True)) if rows else [() for _ in struct.names]
    arrays = [
        pa.array([_value(part, value) for value in values], type=_type(part), from_pandas=False)
        for part, values in zip(struct.parts, listed, strict=True)
    ]
    return pa.table(arrays, names=list(struct.names))


def _type(kind: DataType) -> pa.DataType:
    if kind.name == "decimal":
        return pa.decimal128(*kind.numbers)
    if kind.name == "array":
        return pa.list_(_type(kind.parts[0]))
    if kind.name == "map":
        return pa.map_(_type(kind.parts[0]), _type(kind.parts[1]))
    if kind.name == "struct":
        pairs = zip(kind.names, kind.parts, strict=True)
        return pa.struct([(name, _type(part)) for name, part in pairs])
    return _ARROW[kind.name]


def _value(kind: DataType, value: Any) -> Any:
    if value is None:
        return None
    if kind.name == "array":
        return [_value(kind.parts[0], one) for one in value]
    if kind.name == "map":
        return [(key, _value(kind.parts[1], one)) for key, one in value.items()]
    if kind.name == "struct":
        pairs = zip(kind.names, kind.parts, value, strict=True)
        return {name: _value(part, one) for name, part, one in pairs}
    if kind.name == "timestamp" and isinstance(value, dt.datetime) and value.tzinfo is None:
        return value.replace(tzinfo=dt.UTC)
    return value
