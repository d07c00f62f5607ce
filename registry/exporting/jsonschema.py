"""JSON Schema (draft 2020-12): one row of an object."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.types import DataType
from dq.registry.exporting import Exported, ExportKind, LossReport, columns, parts, single, supported_keys
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
# Types without an exact equivalent -> the nearest one.
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
    """The losses for the object with this name."""

    name: str
    losses: LossReport = field(default_factory=LossReport)


def write(_: Contract, objects: list[SchemaObject]) -> Exported:
    """Return the schema. Raises UsageError for several objects: a schema describes one row."""
    schema_object = single("a JSON Schema", objects)
    row = _RowSchema(schema_object.name)
    properties = {
        prop.column: _property_schema(prop.column, prop, kind, row) for prop, kind in columns(schema_object)
    }
    keys = [prop.column for prop in schema_object.partition_keys()]
    if keys:
        row.losses.note(
            schema_object.name, f"the partition keys {', '.join(keys)}", "properties", several=True
        )
    schema: Node = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": schema_object.column,
        **({"description": schema_object.description} if schema_object.description else {}),
        "type": "object",
        "properties": properties,
        "required": [prop.column for prop, _ in columns(schema_object) if prop.required],
    }
    return Exported(json.dumps(schema, indent=2, ensure_ascii=False) + "\n", row.losses.all())


def _property_schema(path: str, prop: Property | None, kind: DataType, row: _RowSchema) -> Node:
    schema = _node(path, prop, kind, row)
    if prop is None:
        return schema
    if prop.description:
        schema["description"] = prop.description
    word = str(schema.get("type"))
    if prop.enum:
        values = [entry.value for entry in prop.enum]
        if are_values(word, values) and kind.name not in _ENCODED_TYPES:
            schema["enum"] = values
        else:
            row.losses.leave(row.name, f"enum of {path}")
    for name, value in _options(prop).items():
        if name not in schema and kind.name not in _ENCODED_TYPES and _is_supported(word, name, value):
            schema[name] = value
        else:
            row.losses.leave(row.name, f"{name} of {path}")
    return schema


def _is_supported(kind: str, name: str, value: object) -> bool:
    if kind == "string" and name in ("pattern", "format"):
        return name == "pattern" or value in FORMATS
    return name in LIMITS.get(kind, ()) and is_limit(name, value)


def _options(prop: Property) -> Node:
    options = prop.logical_type_options
    if options is None:
        return {}
    return options.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)


# Types that are encoded as text, so that bounds of the contract do not apply to the encoded value.
_ENCODED_TYPES = ("binary", "date", "timestamp", "timestamp_ntz", "interval")


def _node(path: str, prop: Property | None, kind: DataType, row: _RowSchema) -> Node:
    if kind.name in _EXACT:
        return dict(_EXACT[kind.name])
    children = parts(prop, kind)
    if kind.name == "struct":
        fields = {
            name: _property_schema(f"{path}.{name}", *part, row)
            for name, part in zip(kind.names, children, strict=True)
        }
        required = [
            name for name, (inner, _) in zip(kind.names, children, strict=True) if inner and inner.required
        ]
        return {"type": "object", "properties": fields, **({"required": required} if required else {})}
    if kind.name == "array":
        return {"type": "array", "items": _property_schema(f"{path}[]", *children[0], row)}
    if kind.name == "map":
        key = kind.parts[0]
        if key.name != "string":
            row.losses.note(path, f"a map from {key}", "one from string")
        return {"type": "object", "additionalProperties": _property_schema(f"{path}.*", *children[1], row)}
    schema = dict(_NEAR[kind.name])
    row.losses.note(path, kind, " ".join(str(word) for word in schema.values()) or "anything")
    return schema


_COMMON = "description required enum logicalTypeOptions"
SUPPORTED_KEYS = supported_keys(
    f"{_COMMON} partitioned", _COMMON, "description enum logicalTypeOptions", "description"
)
KIND = ExportKind("jsonschema", "the JSON Schema of one row", write, SUPPORTED_KEYS)
