"""Avro: the schema of one row, as an `.avsc` file has it."""

from __future__ import annotations

import json
import re

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.shared.errors import UsageError
from dq.contracts.types import DataType
from dq.registry.exporting.exported import Exported, ExportKind, Losses, columns

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
    """The schema. Raises UsageError for several objects, and for a name that Avro does not take."""
    if len(objects) > 1:
        names = ", ".join(one.name for one in objects)
        raise UsageError(
            f"a schema of Avro is of one object, and there are {names}.", "Name it with --object."
        )
    [one] = objects
    losses = Losses()
    fields = [_field(prop, kind, losses) for prop, kind in columns(one)]
    keys = [prop.column for prop in one.partition_keys()]
    if keys:
        losses.note(one.name, f"the partition keys {', '.join(keys)}", "fields", several=True)
    doc = {"doc": one.description} if one.description else {}
    made = {"type": "record", "name": _named(one.column), **doc, "fields": fields}
    return Exported(json.dumps(made, indent=2, ensure_ascii=False) + "\n", losses.all())


def _field(prop: Property, kind: DataType, losses: Losses) -> dict[str, object]:
    name = _named(prop.column)
    made = _type(name, kind, losses)
    doc = {"doc": prop.description} if prop.description else {}
    if prop.required:
        return {"name": name, "type": made, **doc}
    return {"name": name, "type": ["null", made], **doc, "default": None}


def _type(where: str, kind: DataType, losses: Losses) -> object:
    if kind.name in _EXACT:
        return _EXACT[kind.name]
    if kind.name == "decimal":
        precision, scale = kind.numbers
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    if kind.name == "struct":
        # Records have names of their own, each once in a schema.
        fields = [
            {"name": _named(name), "type": ["null", _type(f"{where}_{name}", part, losses)], "default": None}
            for name, part in zip(kind.names, kind.parts, strict=True)
        ]
        return {"type": "record", "name": f"{where}_record", "fields": fields}
    if kind.name == "array":
        return {"type": "array", "items": ["null", _type(f"{where}_item", kind.parts[0], losses)]}
    if kind.name == "map":
        key, value = kind.parts
        if key.name != "string":
            losses.note(where, f"a map from {key}", "one from string")
        return {"type": "map", "values": ["null", _type(f"{where}_value", value, losses)]}
    losses.note(where, kind, _NEAR[kind.name])
    return _NEAR[kind.name]


def _named(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"Avro takes no name such as {name!r}.", "Give it a physicalName of letters, digits and _."
        )
    return name


KIND = ExportKind("avro", "the Avro schema of one row (.avsc)", write)
