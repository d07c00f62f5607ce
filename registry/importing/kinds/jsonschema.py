"""JSON Schema: the properties of the object that it describes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from dq.contracts.outcome import UsageError
from dq.contracts.types import DataType
from dq.registry import importing
from dq.registry.importing.sources import FORMATS, LIMITS, are_values, is_limit, mapped, parsed, text

_MOST_BYTES = 16 << 20
_MOST_DEPTH = 32
_FORMATS = {"date": importing.DATE, "date-time": importing.TIMESTAMP}
_SCALARS = {"integer": importing.BIGINT, "number": importing.DOUBLE, "boolean": importing.BOOLEAN}
# What says what a value is, and what only tells about it.
_READ = {"type", "format", "properties", "items", "required", "description", "$ref", "additionalProperties"}
_TOLD = {"title", "examples", "default", "$comment", "$id", "$schema", "$defs", "definitions", "deprecated"}


def read(source: str) -> list[importing.FoundTable]:
    """One table. What limits values is taken over where ODCS has the word, else told.

    Raises Unreadable for what is no JSON, UsageError for a schema that describes no object with properties.
    """
    whole = schema = parsed(source, "Name a JSON Schema.", _MOST_BYTES)
    if isinstance(schema, dict):
        schema = _JsonSchemaReader(source, schema).followed(schema)
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        raise UsageError(f"{source} describes no object with properties.", "Name the schema of one row.")
    reader = _JsonSchemaReader(source, whole)
    required = schema.get("required")
    must = {str(name) for name in required} if isinstance(required, list) else set()
    columns = []
    for name, inner in schema["properties"].items():
        reader.said = {}
        kind, evidence = reader.type(inner, name, 0)
        comment = text(inner.get("description")) if isinstance(inner, dict) else ""
        columns.append(importing.FoundColumn(name, kind, comment, name in must, evidence, reader.said))
    title = str(schema.get("title") or source.rpartition("/")[2].partition(".")[0])
    return [importing.FoundTable(title, tuple(columns), description=str(schema.get("description") or ""),
                       lost=tuple(reader.lost))]  # fmt: skip


class _JsonSchemaReader(importing.SchemaReader):
    def __init__(self, source: str, root: Mapping[str, object]) -> None:
        super().__init__(source)
        self.root = root

    def followed(self, schema: Mapping[str, object]) -> Mapping[str, object]:
        """The schema that a `$ref` into the same document leads to."""
        for _ in range(_MOST_DEPTH):
            reference = schema.get("$ref")
            if not isinstance(reference, str) or not re.match("#(/|$)", reference):
                return schema
            found: object = self.root
            for step in reference.split("/")[1:]:
                found = (
                    found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
                )
            if not isinstance(found, dict):
                return schema
            schema = found
        return schema

    def _describe(self, path: str, schema: object, *, required: bool = False) -> None:
        comment = text(schema.get("description")) if isinstance(schema, dict) else ""
        self.describe(path, comment, required=required)

    def type(
        self, schema: object, name: str, depth: int, above: frozenset[str] = frozenset(["#"]), path: str = ""
    ) -> tuple[DataType, str]:
        """The type of a value, and what has to be said of it. `path` is where it stands in its column."""
        self.step()
        if not isinstance(schema, dict) or depth > _MOST_DEPTH:
            return importing.STRING, "declared as anything"
        reference = schema.get("$ref")
        if isinstance(reference, str):
            if reference in above:
                return importing.STRING, "refers to itself"
            above |= {reference}
            schema = self.followed(schema)
            if "$ref" in schema:
                return importing.STRING, f"declared by {reference}, which is not here"
        limits = _limits(schema)
        self.say(path, limits)
        taken = {"enum"} & limits.keys() | mapped(limits.get("logicalTypeOptions")).keys()
        for word in sorted(set(schema) - _READ - _TOLD - taken):
            self.lost.append(f"{name}: {word} {json.dumps(schema[word])[:100]}")
        declared = schema.get("type")
        kinds = [one for one in (declared if isinstance(declared, list) else [declared]) if one != "null"]
        if len(kinds) != 1:
            return importing.STRING, f"declared as {' or '.join(str(one) for one in kinds) or 'anything'}"
        fields = schema.get("properties")
        if kinds == ["object"] and isinstance(fields, dict) and fields:
            must = schema.get("required")
            for key, one in fields.items():
                self._describe(f"{path}.{key}", one, required=isinstance(must, list) and key in must)
            parts = tuple(
                self.type(one, f"{name}.{key}", depth + 1, above, f"{path}.{key}")[0]
                for key, one in fields.items()
            )
            return DataType("struct", (), parts, tuple(fields)), ""
        if kinds == ["object"] and isinstance(schema.get("additionalProperties"), dict):
            self._describe(f"{path}.*", schema["additionalProperties"])
            value, why = self.type(schema["additionalProperties"], f"{name}.*", depth + 1, above, f"{path}.*")
            return DataType("map", (), (importing.STRING, value)), why
        if kinds == ["array"]:
            self._describe(f"{path}[]", schema.get("items"))
            item, why = self.type(schema.get("items"), f"{name}[]", depth + 1, above, f"{path}[]")
            return DataType("array", (), (item,)), why
        if kinds == ["string"]:
            return _FORMATS.get(str(schema.get("format")), importing.STRING), ""
        made = _SCALARS.get(str(kinds[0]))
        return (made, "") if made else (importing.STRING, f"declared as {kinds[0]}")


def _limits(schema: Mapping[str, object]) -> dict[str, object]:
    """What limits a value, in the words of ODCS."""
    kind = str(schema.get("type"))
    options = {key: schema[key] for key in LIMITS.get(kind, ()) if is_limit(key, schema.get(key))}
    if kind == "string" and schema.get("format") in FORMATS:
        options["format"] = schema["format"]
    made: dict[str, object] = {"logicalTypeOptions": options} if options else {}
    values = schema.get("enum")
    if isinstance(values, list) and are_values(kind, values) and schema.get("format") not in _FORMATS:
        made["enum"] = [{"value": one} for one in dict.fromkeys(values)]
    return made


KIND = importing.ImportKind("jsonschema", "a file with the schema of one row", read)
