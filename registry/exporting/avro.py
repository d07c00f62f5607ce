"""Avro: the schema of one row, as an `.avsc` file has it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import count

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.outcome import UsageError
from dq.contracts.types import DataType
from dq.registry.exporting import Exported, ExportKind, Losses, columns, parts, single, words

Node = dict[str, object]


@dataclass(slots=True)
class _Writing:
    """What is lost, and the names of records so far: each has one of its own in a schema."""

    records: set[str]
    losses: Losses = field(default_factory=Losses)


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
    one = single("a schema of Avro", objects)
    to = _Writing({_named(one.column)})
    fields = [_member(prop.column, _named(prop.column), prop, kind, to) for prop, kind in columns(one)]
    keys = [prop.column for prop in one.partition_keys()]
    if keys:
        to.losses.note(one.name, f"the partition keys {', '.join(keys)}", "fields", several=True)
    doc = {"doc": one.description} if one.description else {}
    made = {"type": "record", "name": _named(one.column), **doc, "fields": fields}
    return Exported(json.dumps(made, indent=2, ensure_ascii=False) + "\n", to.losses.all())


def _member(where: str, name: str, prop: Property | None, kind: DataType, to: _Writing) -> Node:
    doc = {"doc": prop.description} if prop and prop.description else {}
    made = _part(where, prop, kind, to)
    return {"name": name, "type": made, **doc, **({"default": None} if isinstance(made, list) else {})}


def _part(where: str, prop: Property | None, kind: DataType, to: _Writing) -> object:
    """The type, or null where the contract does not say that a value is there."""
    made = _type(where, prop, kind, to)
    return made if prop is not None and prop.required else ["null", made]


def _type(where: str, prop: Property | None, kind: DataType, to: _Writing) -> object:
    if kind.name in _EXACT:
        return _EXACT[kind.name]
    if kind.name == "decimal":
        precision, scale = kind.numbers
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    inside = parts(prop, kind)
    if kind.name == "struct":
        fields = [
            _member(f"{where}.{name}", _named(name), *part, to)
            for name, part in zip(kind.names, inside, strict=True)
        ]
        return {"type": "record", "name": _record(where, to), "fields": fields}
    if kind.name == "array":
        return {"type": "array", "items": _part(f"{where}[]", *inside[0], to)}
    if kind.name == "map":
        key = kind.parts[0]
        if key.name != "string":
            to.losses.note(where, f"a map from {key}", "one from string")
        return {"type": "map", "values": _part(f"{where}.*", *inside[1], to)}
    to.losses.note(where, kind, _NEAR[kind.name])
    return _NEAR[kind.name]


def _record(where: str, to: _Writing) -> str:
    """The path as a name that no other record of the schema has."""
    plain = where.replace("[]", "_item").replace(".*", "_value").replace(".", "_")
    names = (f"{plain}_record{number or ''}" for number in count())
    made = next(name for name in names if name not in to.records)
    to.records.add(made)
    return made


def _named(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"Avro takes no name such as {name!r}.", "Give it a physicalName of letters, digits and _."
        )
    return name


SAYS = words("description required partitioned", "description required", "required", "description")
KIND = ExportKind("avro", "the Avro schema of one row (.avsc)", write, SAYS)
