"""Arrow's types as Spark reads them from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dq.contracts.types import DataType
from dq.registry.importing.guess import STRING

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "float": "float",
    "double": "double",
    **dict.fromkeys(("string", "large_string", "string_view"), "string"),
    **dict.fromkeys(("binary", "large_binary", "binary_view"), "binary"),
    "date32[day]": "date",
}


def of_arrow(kind: pa.DataType) -> tuple[DataType, str]:
    """The type, and what has to be said of it; "" where nothing has.

    A type that Spark does not read is a text.
    """
    from pyarrow import types

    plain = _PLAIN.get(str(kind))
    if plain is not None:
        note = f"stored as {kind}" if str(kind).startswith("uint") else ""
        return DataType(plain), note
    if str(kind) == "uint64":
        return DataType("decimal", (20, 0)), "stored as uint64"
    if types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= 38:
        return DataType("decimal", (kind.precision, kind.scale)), ""
    if types.is_timestamp(kind):
        note = "stored in nanoseconds, which Spark does not read" if kind.unit == "ns" else ""
        return DataType("timestamp" if kind.tz else "timestamp_ntz"), note
    if types.is_fixed_size_binary(kind):
        return DataType("binary"), f"stored as {kind}"
    if types.is_dictionary(kind):
        return of_arrow(kind.value_type)
    if types.is_map(kind):
        return _nested("map", [kind.key_type, kind.item_type])
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _nested("array", [kind.value_type])
    if types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return _nested("struct", [one.type for one in fields], tuple(one.name for one in fields))
    return STRING, f"stored as {kind}, which Spark does not read"


def _nested(name: str, kinds: list[pa.DataType], names: tuple[str, ...] = ()) -> tuple[DataType, str]:
    parts, notes = zip(*(of_arrow(kind) for kind in kinds), strict=True)
    return DataType(name, (), tuple(parts), names), "; ".join(dict.fromkeys(note for note in notes if note))
