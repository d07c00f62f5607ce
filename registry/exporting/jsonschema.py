"""JSON Schema (draft 2020-12): one row of an object."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.types import DataType
from dq.registry.exporting import Exported, ExportKind, Losses, columns, parts, single, words
from dq.registry.importing.sources import FORMATS, LIMITS, are_values, is_limit

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


@dataclass(slots=True)
class _RowSchema:
    """What is lost of the row of the object with this name."""

    name: str
    losses: Losses = field(default_factory=Losses)


def write(_: Contract, objects: list[SchemaObject]) -> Exported:
    """The schema. Raises UsageError for several objects: a schema is of one row."""
    one = single("a JSON Schema", objects)
    to = _RowSchema(one.name)
    properties = {prop.column: _described(prop.column, prop, kind, to) for prop, kind in columns(one)}
    keys = [prop.column for prop in one.partition_keys()]
    if keys:
        to.losses.note(one.name, f"the partition keys {', '.join(keys)}", "properties", several=True)
    made: Node = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": one.column,
        **({"description": one.description} if one.description else {}),
        "type": "object",
        "properties": properties,
        "required": [prop.column for prop, _ in columns(one) if prop.required],
    }
    return Exported(json.dumps(made, indent=2, ensure_ascii=False) + "\n", to.losses.all())


def _described(where: str, prop: Property | None, kind: DataType, to: _RowSchema) -> Node:
    made = _node(where, prop, kind, to)
    if prop is None:
        return made
    if prop.description:
        made["description"] = prop.description
    word = str(made.get("type"))
    if prop.enum:
        values = [one.value for one in prop.enum]
        if are_values(word, values) and kind.name not in _OTHERWISE:
            made["enum"] = values
        else:
            to.losses.leave(to.name, f"enum of {where}")
    for name, value in _options(prop).items():
        if name not in made and kind.name not in _OTHERWISE and _has_word(word, name, value):
            made[name] = value
        else:
            to.losses.leave(to.name, f"{name} of {where}")
    return made


def _has_word(kind: str, name: str, value: object) -> bool:
    if kind == "string" and name in ("pattern", "format"):
        return name == "pattern" or value in FORMATS
    return name in LIMITS.get(kind, ()) and is_limit(name, value)


def _options(prop: Property) -> Node:
    options = prop.logical_type_options
    if options is None:
        return {}
    return options.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)


# Types whose texts are not those that a bound of the contract is about.
_OTHERWISE = ("binary", "date", "timestamp", "timestamp_ntz", "interval")


def _node(where: str, prop: Property | None, kind: DataType, to: _RowSchema) -> Node:
    if kind.name in _EXACT:
        return dict(_EXACT[kind.name])
    inside = parts(prop, kind)
    if kind.name == "struct":
        fields = {
            name: _described(f"{where}.{name}", *part, to)
            for name, part in zip(kind.names, inside, strict=True)
        }
        must = [name for name, (one, _) in zip(kind.names, inside, strict=True) if one and one.required]
        return {"type": "object", "properties": fields, **({"required": must} if must else {})}
    if kind.name == "array":
        return {"type": "array", "items": _described(f"{where}[]", *inside[0], to)}
    if kind.name == "map":
        key = kind.parts[0]
        if key.name != "string":
            to.losses.note(where, f"a map from {key}", "one from string")
        return {"type": "object", "additionalProperties": _described(f"{where}.*", *inside[1], to)}
    made = dict(_NEAR[kind.name])
    to.losses.note(where, kind, " ".join(str(word) for word in made.values()) or "anything")
    return made


_BOTH = "description required enum logicalTypeOptions"
SAYS = words(f"{_BOTH} partitioned", _BOTH, "description enum logicalTypeOptions", "description")
KIND = ExportKind("jsonschema", "the JSON Schema of one row", write, SAYS)
