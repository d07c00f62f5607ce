"""Between our specification of a table and Iceberg's metadata, both ways."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count

from pyiceberg import types as ice
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField
from pyiceberg.view import View

from dq.contracts.types import DataType, NotAType, parse
from dq.registry.diff import LiveTable
from dq.registry.table import EXACT_TYPES, VIEW, Key, TableColumn, TableSpec, digest, folded

# TABLE: types of columns in Iceberg, against Spark's DDL, which our specifications hold.
#
# Sources: Iceberg's table specification, "Schemas and Data Types" and "Schema Evolution"; Iceberg for
# Spark, "Type compatibility".

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


# Between our specification of a table and Iceberg's metadata: both ways.

FORMAT = "iceberg"
DESCRIPTION = "comment"
"""The property in which Spark, Trino and Flink keep what a table is."""

_OURS = (DESCRIPTION, EXACT_TYPES)
_FIRST_FIELD = 1000
_UNREAD = "one that pyiceberg does not understand"


@dataclass(frozen=True, slots=True)
class StrangeTable:
    """A table that is there, and that pyiceberg does not understand, such as one with a newer type."""

    key: Key

    def name(self) -> Key:
        return self.key


def live_table(found: Table | View | StrangeTable) -> LiveTable:
    """A table or a view as the catalog answers it, folded.

    Its version is the digest of what is read: commits of data, which come all the time, do not change it.
    """
    key = found.name()[-2], found.name()[-1]
    if isinstance(found, StrangeTable):
        # Nobody's, and of no format of ours: a conflict for who wants it, and no obstacle for others.
        return LiveTable(folded(TableSpec(*key, "", _UNREAD, ())), "")
    spec = _view(key, found) if isinstance(found, View) else _table(key, found.metadata)
    return LiveTable(spec, digest(spec), None if isinstance(found, View) else _changed_at(found.metadata))


def _changed_at(metadata: TableMetadata) -> datetime | None:
    """When the table was changed last; None where that was a commit of data, which hides the change."""
    at = metadata.last_updated_ms
    if any(snapshot.timestamp_ms == at for snapshot in metadata.snapshots):
        return None
    return datetime.fromtimestamp(at / 1000, UTC)


def _table(key: Key, metadata: TableMetadata) -> TableSpec:
    told = _told(metadata.properties)
    fields = {field.field_id: field for field in metadata.schema().fields}
    keys = [
        part.source_id
        for part in metadata.spec().fields
        if isinstance(part.transform, IdentityTransform) and part.source_id in fields
    ]
    return folded(
        TableSpec(
            *key,
            metadata.location,
            FORMAT,
            tuple(_table_column(field, told) for number, field in fields.items() if number not in keys),
            tuple(_table_column(fields[number], told) for number in keys),
            _parameters(metadata.properties),
            metadata.properties.get(DESCRIPTION, ""),
        )
    )


def _view(key: Key, view: View) -> TableSpec:
    columns = tuple(_table_column(field, {}) for field in view.schema().fields)
    description = view.properties.get(DESCRIPTION, "")
    return folded(TableSpec(*key, "", VIEW, columns, (), _parameters(view.properties), description))


def _parameters(properties: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((key, text) for key, text in properties.items() if key not in _OURS)


def _told(properties: Mapping[str, str]) -> dict[str, str]:
    """The exact types that the table keeps; none where another has written something else there."""
    try:
        told = json.loads(properties.get(EXACT_TYPES, "{}"))
    except (ValueError, RecursionError):
        return {}
    return (
        {key: text for key, text in told.items() if isinstance(text, str)} if isinstance(told, dict) else {}
    )


def _table_column(field: NestedField, told: Mapping[str, str]) -> TableColumn:
    kind = exact(ddl(field.field_type), told.get(field.name.lower()))
    return TableColumn(field.name, kind, field.doc or "", required=field.required)


def schema_of(spec: TableSpec) -> Schema:
    """The schema of a new table: the columns, then the keys. Raises NotAType for what Iceberg has not."""
    ids = count(1)
    fields = []
    for column in (*spec.columns, *spec.partitions):
        number = next(ids)
        kind = iceberg_type(parse(column.type), ids)
        doc = column.comment or None
        fields.append(NestedField(number, column.name, kind, required=column.required, doc=doc))
    return Schema(*fields)


def partitions_of(spec: TableSpec, schema: Schema) -> PartitionSpec:
    """One part for each key, in their order, by the value as it is."""
    keys = [schema.find_field(column.name).field_id for column in spec.partitions]
    parts = zip(count(_FIRST_FIELD), keys, spec.partitions, strict=False)
    return PartitionSpec(
        *(PartitionField(source, number, IdentityTransform(), key.name) for number, source, key in parts)
    )


def _is_other(text: str) -> bool:
    """Whether Iceberg keeps another type for this one; of its own types that we have no word for, none."""
    try:
        return kept_as(text) != text
    except NotAType:
        return False


def properties_of(spec: TableSpec) -> dict[str, str]:
    """All properties that are the specification's: parameters, description, exact types."""
    told = {
        column.name: column.type for column in (*spec.columns, *spec.partitions) if _is_other(column.type)
    }
    made = dict(spec.parameters)
    if spec.description:
        made[DESCRIPTION] = spec.description
    if told:
        made[EXACT_TYPES] = json.dumps(told, sort_keys=True)
    return made
