"""Rows of a check's example as frames of every library, by way of Arrow."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from dq.contracts.types import DataType, parse
from dq.lake.types import arrow_type


def arrow(columns: str, rows: tuple[tuple[object, ...], ...]) -> pa.Table:
    """A table with these columns, as Spark's DDL names them."""
    struct = parse(f"struct<{columns}>")
    listed = list(zip(*rows, strict=True)) if rows else [() for _ in struct.names]
    arrays = [
        pa.array([_value(part, value) for value in values], type=arrow_type(part), from_pandas=False)
        for part, values in zip(struct.parts, listed, strict=True)
    ]
    return pa.table(arrays, names=list(struct.names))


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
