"""JSON Schema: the properties of the object that it describes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from dq.contracts.outcome import UsageError
from dq.contracts.types import DataType
from dq.registry import importing
from dq.registry.importing.sources import (
    FORMATS,
    LIMITS,
    are_values,
    as_mapping,
    as_text,
    is_limit,
    read_json,
)

_MAX_BYTES = 16 << 20
_MAX_DEPTH = 32
_FORMATS = {"date": importing.DATE, "date-time": importing.TIMESTAMP}
_SCALARS = {"integer": importing.BIGINT, "number": importing.DOUBLE, "boolean": importing.BOOLEAN}
# Keys that the reader evaluates, and annotations without a counterpart in a contract.
_READ_KEYS = {
    "type",
    "format",
    "properties",
    "items",
    "required",
    "description",
    "$ref",
    "additionalProperties",
}
_ANNOTATIONS = {
    "title",
    "examples",
    "default",
    "$comment",
    "$id",
    "$schema",
    "$defs",
    "definitions",
    "deprecated",
}


def read(source: str) -> list[importing.ImportedTable]:
    """Read one table. Constraints that ODCS does not have are reported as unsupported.

    Raises ReadError if the file is not JSON, UsageError if the schema has no object with properties.
    """
    root = schema = read_json(source, "Pass a JSON Schema.", _MAX_BYTES)
    if isinstance(schema, dict):
        schema = _JsonSchemaReader(source, schema).resolve_ref(schema)
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        raise UsageError(
            f"{source} does not describe an object with properties.", "Pass the schema of one row."
        )
    reader = _JsonSchemaReader(source, root)
    required = schema.get("required")
    required_names = {str(name) for name in required} if isinstance(required, list) else set()
    columns = []
    for name, inner in schema["properties"].items():
        reader.odcs_keys = {}
        kind, evidence = reader.type(inner, name, 0)
        comment = as_text(inner.get("description")) if isinstance(inner, dict) else ""
        columns.append(
            importing.ImportedColumn(name, kind, comment, name in required_names, evidence, reader.odcs_keys)
        )
    title = str(schema.get("title") or source.rpartition("/")[2].partition(".")[0])
    return [importing.ImportedTable(title, tuple(columns), description=str(schema.get("description") or ""),
                       unsupported=tuple(reader.unsupported))]  # fmt: skip


class _JsonSchemaReader(importing.SchemaReader):
    def __init__(self, source: str, root: Mapping[str, object]) -> None:
        super().__init__(source)
        self.root = root

    def resolve_ref(self, schema: Mapping[str, object]) -> Mapping[str, object]:
        """Return the schema after following `$ref`s within the document."""
        for _ in range(_MAX_DEPTH):
            reference = schema.get("$ref")
            if not isinstance(reference, str) or not re.match("#(/|$)", reference):
                return schema
            target: object = self.root
            for step in reference.split("/")[1:]:
                target = (
                    target.get(step.replace("~1", "/").replace("~0", "~"))
                    if isinstance(target, dict)
                    else None
                )
            if not isinstance(target, dict):
                return schema
            schema = target
        return schema

    def _describe(self, path: str, schema: object, *, required: bool = False) -> None:
        comment = as_text(schema.get("description")) if isinstance(schema, dict) else ""
        self.describe(path, comment, required=required)

    def type(
        self,
        schema: object,
        name: str,
        depth: int,
        open_refs: frozenset[str] = frozenset(["#"]),
        path: str = "",
    ) -> tuple[DataType, str]:
        """Return the type of a value and its evidence. `path` is its path in the column."""
        self.count_field()
        if not isinstance(schema, dict) or depth > _MAX_DEPTH:
            return importing.STRING, "declared as anything"
        reference = schema.get("$ref")
        if isinstance(reference, str):
            if reference in open_refs:
                return importing.STRING, "refers to itself"
            open_refs |= {reference}
            schema = self.resolve_ref(schema)
            if "$ref" in schema:
                return importing.STRING, f"declared by {reference}, which does not exist"
        limits = _odcs_limits(schema)
        self.add_keys(path, limits)
        limit_keys = {"enum"} & limits.keys() | as_mapping(limits.get("logicalTypeOptions")).keys()
        for word in sorted(set(schema) - _READ_KEYS - _ANNOTATIONS - limit_keys):
            self.unsupported.append(f"{name}: {word} {json.dumps(schema[word])[:100]}")
        declared = schema.get("type")
        kinds = [
            type_name
            for type_name in (declared if isinstance(declared, list) else [declared])
            if type_name != "null"
        ]
        if len(kinds) != 1:
            return (
                importing.STRING,
                f"declared as {' or '.join(str(type_name) for type_name in kinds) or 'anything'}",
            )
        fields = schema.get("properties")
        if kinds == ["object"] and isinstance(fields, dict) and fields:
            required_names = schema.get("required")
            for key, inner in fields.items():
                self._describe(
                    f"{path}.{key}",
                    inner,
                    required=isinstance(required_names, list) and key in required_names,
                )
            parts = tuple(
                self.type(inner, f"{name}.{key}", depth + 1, open_refs, f"{path}.{key}")[0]
                for key, inner in fields.items()
            )
            return DataType("struct", (), parts, tuple(fields)), ""
        if kinds == ["object"] and isinstance(schema.get("additionalProperties"), dict):
            self._describe(f"{path}.*", schema["additionalProperties"])
            value, why = self.type(
                schema["additionalProperties"], f"{name}.*", depth + 1, open_refs, f"{path}.*"
            )
            return DataType("map", (), (importing.STRING, value)), why
        if kinds == ["array"]:
            self._describe(f"{path}[]", schema.get("items"))
            item, why = self.type(schema.get("items"), f"{name}[]", depth + 1, open_refs, f"{path}[]")
            return DataType("array", (), (item,)), why
        if kinds == ["string"]:
            return _FORMATS.get(str(schema.get("format")), importing.STRING), ""
        scalar = _SCALARS.get(str(kinds[0]))
        return (scalar, "") if scalar else (importing.STRING, f"declared as {kinds[0]}")


def _odcs_limits(schema: Mapping[str, object]) -> dict[str, object]:
    """Return the constraints on a value as ODCS keys."""
    kind = str(schema.get("type"))
    options = {key: schema[key] for key in LIMITS.get(kind, ()) if is_limit(key, schema.get(key))}
    if kind == "string" and schema.get("format") in FORMATS:
        options["format"] = schema["format"]
    odcs_keys: dict[str, object] = {"logicalTypeOptions": options} if options else {}
    values = schema.get("enum")
    if isinstance(values, list) and are_values(kind, values) and schema.get("format") not in _FORMATS:
        odcs_keys["enum"] = [{"value": value} for value in dict.fromkeys(values)]
    return odcs_keys


KIND = importing.ImportKind("jsonschema", "a file with the schema of one row", read, (".schema.json",))
