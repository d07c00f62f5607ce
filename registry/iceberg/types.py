"""TABLE: types of columns in Iceberg, against Spark's DDL, which our specifications hold.

Sources: Iceberg's table specification, "Schemas and Data Types" and "Schema Evolution"; Iceberg for Spark,
"Type compatibility".
"""

from __future__ import annotations

from itertools import count

from pyiceberg import types as ice

from dq.contracts.types import DataType, NotAType, parse

# Spark's type -> Iceberg's. Some of Spark's have no other of their own; a property keeps the exact ones.
_PLAIN: dict[str, ice.PrimitiveType] = {
    "boolean": ice.BooleanType(),
    **dict.fromkeys(("tinyint", "smallint", "int"), ice.IntegerType()),
    "bigint": ice.LongType(),
    "float": ice.FloatType(),
    "double": ice.DoubleType(),
    "date": ice.DateType(),
    "timestamp": ice.TimestamptzType(),
    "timestamp_ntz": ice.TimestampType(),
    **dict.fromkeys(("string", "char", "varchar"), ice.StringType()),
    "binary": ice.BinaryType(),
}
# Iceberg's type -> what a reader calls it.
_NAMES = {
    str(kind): name for name, kind in _PLAIN.items() if name not in ("tinyint", "smallint", "char", "varchar")
}
# Files keep what they have, and readers widen it as they read.
_WIDENED = {("int", "long"), ("float", "double")}


def iceberg_type(kind: DataType, ids: count[int]) -> ice.IcebergType:
    """The type in Iceberg; its parts get the next ids. Raises NotAType for one that Iceberg has not."""
    if kind.name == "decimal":
        return ice.DecimalType(*kind.numbers)
    if kind.name == "array":
        return ice.ListType(next(ids), iceberg_type(kind.parts[0], ids), element_required=False)
    if kind.name == "map":
        key, value = kind.parts
        return ice.MapType(
            next(ids), iceberg_type(key, ids), next(ids), iceberg_type(value, ids), value_required=False
        )
    if kind.name == "struct":
        fields = [
            ice.NestedField(next(ids), name, iceberg_type(part, ids), required=False)
            for name, part in zip(kind.names, kind.parts, strict=True)
        ]
        return ice.StructType(*fields)
    if kind.name not in _PLAIN:
        raise NotAType(f"Iceberg has no {kind.name}")
    return _PLAIN[kind.name]


def ddl(kind: ice.IcebergType) -> str:
    """The type as Spark's DDL; one that Spark has not, as Iceberg writes it."""
    if isinstance(kind, ice.ListType):
        return f"array<{ddl(kind.element_type)}>"
    if isinstance(kind, ice.MapType):
        return f"map<{ddl(kind.key_type)},{ddl(kind.value_type)}>"
    if isinstance(kind, ice.StructType):
        return f"struct<{','.join(f'{field.name}:{ddl(field.field_type)}' for field in kind.fields)}>"
    if isinstance(kind, ice.DecimalType):
        return f"decimal({kind.precision},{kind.scale})"
    return _NAMES.get(str(kind), str(kind))


def kept_as(text: str) -> str:
    """What a table of Iceberg says of a column of this type. Raises NotAType for one that Iceberg has not."""
    return ddl(iceberg_type(parse(text), count(1)))


def exact(live: str, told: str | None) -> str:
    """The type as our specifications write it: `told`, if that is what the live one stands for."""
    try:
        return told if told is not None and kept_as(told).lower() == live.lower() else live
    except NotAType:
        return live


def is_widened(old: ice.IcebergType, new: ice.IcebergType) -> bool:
    """Whether a plain type can become the other one: readers of Iceberg widen what old files hold."""
    if isinstance(old, ice.DecimalType) and isinstance(new, ice.DecimalType):
        return old.scale == new.scale and old.precision <= new.precision
    return old == new or (str(old), str(new)) in _WIDENED
