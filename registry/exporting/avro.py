"""Avro: the schema of one row, as an `.avsc` file has it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import count

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.outcome import UsageError
from dq.contracts.types import DataType
from dq.registry.exporting import Exported, ExportKind, LossReport, columns, parts, single, supported_keys

Node = dict[str, object]


@dataclass(slots=True)
class _SchemaState:
    """The losses, and the names of records so far, which are unique in a schema."""

    records: set[str]
    losses: LossReport = field(default_factory=LossReport)


_EXACT: dict[str, object] = {
    "string": "string",
    "boolean": "boolean",
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
}
_NEAR = {
    **dict.fromkeys(("tinyint", "smallint"), "int"),
    **dict.fromkeys(("char", "varchar", "interval", "variant"), "string"),
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def write(_: Contract, objects: list[SchemaObject]) -> Exported:
    """Return the schema. Raises UsageError for several objects, and for an invalid name in Avro."""
    schema_object = single("an Avro schema", objects)
    state = _SchemaState({_checked_name(schema_object.column)})
    fields = [
        _member(prop.column, _checked_name(prop.column), prop, kind, state)
        for prop, kind in columns(schema_object)
    ]
    keys = [prop.column for prop in schema_object.partition_keys()]
    if keys:
        state.losses.note(schema_object.name, f"the partition keys {', '.join(keys)}", "fields", several=True)
    doc = {"doc": schema_object.description} if schema_object.description else {}
    record = {"type": "record", "name": _checked_name(schema_object.column), **doc, "fields": fields}
    return Exported(json.dumps(record, indent=2, ensure_ascii=False) + "\n", state.losses.all())


def _member(path: str, name: str, prop: Property | None, kind: DataType, state: _SchemaState) -> Node:
    doc = {"doc": prop.description} if prop and prop.description else {}
    avro_type = _part(path, prop, kind, state)
    return {
        "name": name,
        "type": avro_type,
        **doc,
        **({"default": None} if isinstance(avro_type, list) else {}),
    }


def _part(path: str, prop: Property | None, kind: DataType, state: _SchemaState) -> object:
    """Return the type, nullable unless the property is required."""
    avro_type = _type(path, prop, kind, state)
    return avro_type if prop is not None and prop.required else ["null", avro_type]


def _type(path: str, prop: Property | None, kind: DataType, state: _SchemaState) -> object:
    if kind.name in _EXACT:
        return _EXACT[kind.name]
    if kind.name == "decimal":
        precision, scale = kind.numbers
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    children = parts(prop, kind)
    if kind.name == "struct":
        fields = [
            _member(f"{path}.{name}", _checked_name(name), *part, state)
            for name, part in zip(kind.names, children, strict=True)
        ]
        return {"type": "record", "name": _record(path, state), "fields": fields}
    if kind.name == "array":
        return {"type": "array", "items": _part(f"{path}[]", *children[0], state)}
    if kind.name == "map":
        key = kind.parts[0]
        if key.name != "string":
            state.losses.note(path, f"a map from {key}", "one from string")
        return {"type": "map", "values": _part(f"{path}.*", *children[1], state)}
    state.losses.note(path, kind, _NEAR[kind.name])
    return _NEAR[kind.name]


def _record(path: str, state: _SchemaState) -> str:
    """Return a unique record name from the path."""
    plain = path.replace("[]", "_item").replace(".*", "_value").replace(".", "_")
    names = (f"{plain}_record{number or ''}" for number in count())
    record_name = next(name for name in names if name not in state.records)
    state.records.add(record_name)
    return record_name


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"Avro does not allow the name {name!r}.", "Give it a physicalName of letters, digits and _."
        )
    return name


SUPPORTED_KEYS = supported_keys(
    "description required partitioned", "description required", "required", "description"
)
KIND = ExportKind("avro", "the Avro schema of one row (.avsc)", write, SUPPORTED_KEYS)
