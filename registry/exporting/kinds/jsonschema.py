"""JSON Schema (draft 2020-12): one row of an object."""

from __future__ import annotations

import json

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.shared.errors import UsageError
from dq.contracts.types import DataType
from dq.registry.exporting.exported import Exported, ExportKind, Losses, columns, inner
from dq.registry.exporting.unsaid import words

Node = dict[str, object]

_EXACT: dict[str, Node] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "bigint": {"type": "integer"},
    "double": {"type": "number"},
    "date": {"type": "string", "format": "date"},
    "timestamp": {"type": "string", "format": "date-time"},
}
# What has no word of its own, and what a reader makes of the word that it gets.
_NEAR: dict[str, Node] = {
    **{name: {"type": "integer"} for name in ("tinyint", "smallint", "int")},
    "float": {"type": "number"},
    "decimal": {"type": "number"},
    "timestamp_ntz": {"type": "string", "format": "date-time"},
    **{name: {"type": "string"} for name in ("char", "varchar", "interval")},
    "binary": {"type": "string", "contentEncoding": "base64"},
    "variant": {},
}


def write(_: Contract, objects: list[SchemaObject]) -> Exported:
    """The schema. Raises UsageError for several objects: a schema is of one row."""
    if len(objects) > 1:
        names = ", ".join(one.name for one in objects)
        raise UsageError(f"a JSON Schema is of one object, and there are {names}.", "Name it with --object.")
    [one] = objects
    losses = Losses()
    properties = {prop.column: _described(prop.column, prop, kind, losses) for prop, kind in columns(one)}
    keys = [prop.column for prop in one.partition_keys()]
    if keys:
        losses.note(one.name, f"the partition keys {', '.join(keys)}", "properties", several=True)
    made: Node = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": one.column,
        **({"description": one.description} if one.description else {}),
        "type": "object",
        "properties": properties,
        "required": [prop.column for prop, _ in columns(one) if prop.required],
    }
    return Exported(json.dumps(made, indent=2, ensure_ascii=False) + "\n", losses.all())


def _described(where: str, prop: Property | None, kind: DataType, losses: Losses) -> Node:
    made = _node(where, prop, kind, losses)
    return {**made, "description": prop.description} if prop and prop.description else made


def _node(where: str, prop: Property | None, kind: DataType, losses: Losses) -> Node:
    if kind.name in _EXACT:
        return dict(_EXACT[kind.name])
    inside = list(zip(inner(prop, kind), kind.parts, strict=True))
    if kind.name == "struct":
        fields = {
            name: _described(f"{where}.{name}", *part, losses)
            for name, part in zip(kind.names, inside, strict=True)
        }
        must = [name for name, (one, _) in zip(kind.names, inside, strict=True) if one and one.required]
        return {"type": "object", "properties": fields, **({"required": must} if must else {})}
    if kind.name == "array":
        return {"type": "array", "items": _described(f"{where}[]", *inside[0], losses)}
    if kind.name == "map":
        key = kind.parts[0]
        if key.name != "string":
            losses.note(where, f"a map from {key}", "one from string")
        return {"type": "object", "additionalProperties": _described(f"{where}.*", *inside[1], losses)}
    made = dict(_NEAR[kind.name])
    losses.note(where, kind, " ".join(str(word) for word in made.values()) or "anything")
    return made


SAYS = words("description required partitioned", "description required", "description", "description")
KIND = ExportKind("jsonschema", "the JSON Schema of one row", write, SAYS)
