"""What dq adds to ODCS as a JSON Schema of the whole contract: editors lay it over the official one."""

from __future__ import annotations

from typing import Any

from dq.contracts.extension import VENDOR, json_schema


def editor_schema() -> dict[str, object]:
    """The schema, which says nothing but what dq's own values look like, and where.

    Written in draft 7, which every editor knows.
    """
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "What dq adds to an ODCS contract",
        "type": "object",
        "properties": {
            # ODCS 3.0 and 3.1, where an SLA entry takes no custom property.
            "customProperties": {"items": _ours({"pattern": "^delivery:"}, "delivery")},
            "slaProperties": {"items": _custom("delivery")},
            "schema": {"items": _element(_custom("dataset"))},
            "support": {"items": _custom("route")},
        },
        "$defs": {**_definitions(), "property": _element({"properties": {}})},
    }


def _definitions() -> dict[str, Any]:
    made = json_schema()["$defs"]
    assert isinstance(made, dict)
    return made


def _custom(name: str) -> dict[str, Any]:
    """A mapping whose custom property of this name is ours."""
    return {"properties": {"customProperties": {"items": _ours({"const": name}, name)}}}


def _ours(named: dict[str, str], value: str) -> dict[str, Any]:
    """A custom property: when it has the name, and no other vendor, its value is of this kind."""
    return {
        "if": {"required": ["property"], "properties": {"property": named, "vendor": {"const": VENDOR}}},
        "then": {"properties": {"value": {"$ref": f"#/$defs/{value}"}}},
    }


def _element(more: dict[str, Any]) -> dict[str, Any]:
    """An object or a property: quality rules and properties at any depth."""
    inside = {"$ref": "#/$defs/property"}
    return {
        "properties": {
            **more["properties"],
            "quality": {"items": _custom("scope")},
            "properties": {"items": inside},
            "items": inside,
            "map": {"properties": {"key": inside, "value": inside}},
        }
    }
