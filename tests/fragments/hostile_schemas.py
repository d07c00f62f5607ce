"""JSON Schemas of a policy, and values for them, that ask for much work or break a validator."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class HostileSchema(NamedTuple):
    """A schema of the level `contract` and the value of the custom property `a` that it meets."""

    schema: Any
    value: Any = "x"


def _property(schema: Any, **more: Any) -> Any:
    return {"properties": {"a": schema}, **more}


def _chain(keyword: str, levels: int, width: int = 2) -> Any:
    definitions: dict[str, Any] = {
        f"d{level}": {keyword: [{"$ref": f"#/$defs/d{level + 1}"}] * width} for level in range(levels)
    }
    definitions[f"d{levels}"] = {"type": "integer"}
    return _property({"$ref": "#/$defs/d0"}, **{"$defs": definitions})


def _nested(keyword: str, levels: int, inner: Any) -> Any:
    schema = inner
    for _ in range(levels):
        schema = {keyword: [schema]} if keyword.endswith("Of") else {keyword: schema}
    return _property(schema)


def _deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"a": value}
    return value


def _unevaluated(levels: int) -> Any:
    schema: Any = {"unevaluatedProperties": False}
    for _ in range(levels):
        schema = {"allOf": [schema, schema], "unevaluatedProperties": {"type": "string"}}
    return _property(schema)


_TEXT = "a" * 5_000 + "!"
_DIGITS = int("9" * 401)

HOSTILE_SCHEMAS: dict[str, HostileSchema] = {
    "a pattern with nested repetition": HostileSchema(_property({"pattern": "^(a+)+$"}), "a" * 40 + "!"),
    "a pattern with overlapping alternatives": HostileSchema(_property({"pattern": "^(a|aa)+$"}), _TEXT),
    "a pattern with thirty choices": HostileSchema(_property({"pattern": "^" + "(a|a)" * 30 + "$"}), _TEXT),
    "a pattern that only Python reads": HostileSchema(_property({"pattern": "^(?P<x>a+)+$"}), "a" * 40 + "!"),
    "a pattern that ignores case": HostileSchema(_property({"pattern": "(?i)^(a|A)+$"}), "a" * 40 + "!"),
    "a pattern with flags": HostileSchema(_property({"pattern": "(?s)^(.|\n)+$"}), "\n" * 40 + "\r"),
    "a pattern with a huge repetition": HostileSchema(_property({"pattern": "a{99999999999}"}), _TEXT),
    "a pattern of many characters": HostileSchema(_property({"pattern": "(a|b)" * 2_000}), _TEXT),
    "a thousand patterns": HostileSchema(
        _property({"allOf": [{"pattern": f"^[a-z]*{number}$"} for number in range(1_000)]}), _TEXT
    ),
    "a quadratic pattern on a long text": HostileSchema(_property({"pattern": "a+!x"}), "a" * 200_000),
    "a quadratic pattern on many texts": HostileSchema(
        _property({"items": {"pattern": "a+!x"}}), ["a" * 2_000] * 1_000
    ),
    "a pattern of names with nested repetition": HostileSchema(
        _property({"patternProperties": {"^(a+)+$": True}}), {"a" * 40 + "!": 1}
    ),
    "patterns of many names": HostileSchema(
        _property({"patternProperties": {f"[a-z]+{n}x": False for n in range(30)}}),
        {"a" * 500 + str(number): 1 for number in range(2_000)},
    ),
    "closed patterns of many names": HostileSchema(
        _property({"patternProperties": {"[a-z]+!x": True}, "additionalProperties": False}),
        {"a" * 500 + str(number): 1 for number in range(2_000)},
    ),
    "references that double under allOf": HostileSchema(_chain("allOf", 25), 1),
    "references that double under anyOf": HostileSchema(_chain("anyOf", 25)),
    "references that double under oneOf": HostileSchema(_chain("oneOf", 25)),
    "references of great width": HostileSchema(_chain("anyOf", 3, 100)),
    "a chain of references": HostileSchema(_chain("allOf", 900, 1), 1),
    "a reference to itself": HostileSchema(_property({"$ref": "#/properties/a"})),
    "a reference to the whole": HostileSchema(_property({"properties": {"a": {"$ref": "#"}}}), _deep(50)),
    "two references in a ring": HostileSchema(
        _property(
            {"$ref": "#/$defs/b"}, **{"$defs": {"b": {"$ref": "#/$defs/c"}, "c": {"$ref": "#/$defs/b"}}}
        )
    ),
    "a reference into a list by a word": HostileSchema({"allOf": [True], **_property({"$ref": "#/allOf/x"})}),
    "a reference far behind a list": HostileSchema({"allOf": [True], **_property({"$ref": "#/allOf/99"})}),
    "a reference to a text": HostileSchema({"title": "t", **_property({"$ref": "#/title"})}),
    "a reference to what is no schema": HostileSchema(
        {"x": {"type": "sometimes"}, **_property({"$ref": "#/x"})}
    ),
    "a reference out of the schema": HostileSchema(_property({"$ref": "file:///etc/passwd"})),
    "a dynamic reference": HostileSchema(
        {"$dynamicAnchor": "node", **_property({"$dynamicRef": "#node"})}, _deep(50)
    ),
    "an identifier inside": HostileSchema(
        _property({"$id": "https://example.com/s", "$ref": "#/properties/a"}), _deep(5)
    ),
    "unique items that cannot be sorted": HostileSchema(
        _property({"uniqueItems": True}), [{"n": n % 2_900} for n in range(30_000)]
    ),
    "unique items that all differ": HostileSchema(
        _property({"uniqueItems": True, "maxItems": 1}), [{"n": n} for n in range(30_000)]
    ),
    "unique items of two types": HostileSchema(
        _property({"uniqueItems": True, "maxItems": 1}), [n if n % 2 else str(n) for n in range(30_000)]
    ),
    "many large numbers for multipleOf": HostileSchema(_property({"multipleOf": 0.1}), _DIGITS),
    "a schema with 401 digits": HostileSchema(_property({"multipleOf": _DIGITS}), 1),
    "an infinite number": HostileSchema(_property({"multipleOf": 0.5}), float("inf")),
    "no number": HostileSchema(_property({"multipleOf": 0.5}), float("nan")),
    "a deep schema": HostileSchema(_nested("not", 45, {"type": "integer"})),
    "unevaluated properties on each level": HostileSchema(_unevaluated(9), {"b": 1}),
    "unevaluated items of a long list": HostileSchema(
        _property({"prefixItems": [True], "unevaluatedItems": False}), [1] * 20_000
    ),
    "many errors with long messages": HostileSchema(
        _property({"allOf": [{"type": "integer"}] * 1_000}), "x" * 1_000_000
    ),
    "many errors on many items": HostileSchema(
        _property({"items": {"allOf": [{"type": "integer"}] * 500}}), ["x"] * 20_000
    ),
    "a long enumeration for many items": HostileSchema(
        _property({"items": {"enum": [{"n": n} for n in range(900)]}}), [{"n": -1}] * 10_000
    ),
    "contains on each level": HostileSchema(
        _property({"contains": {"contains": {"contains": {"type": "integer"}}}}), [[["x"] * 30] * 30] * 30
    ),
}


def policy(name: str) -> str:
    """The policy with a hostile schema, as JSON in YAML."""
    return f"customProperties: {{contract: {_json(HOSTILE_SCHEMAS[name].schema)}}}\n"


def custom_properties(name: str) -> str:
    """The custom properties of a contract that meet it."""
    return f"customProperties: [{{property: a, value: {_json(HOSTILE_SCHEMAS[name].value)}}}]\n"


def _json(value: Any) -> str:
    return json.dumps(value).replace("Infinity", ".inf").replace("NaN", ".nan")
