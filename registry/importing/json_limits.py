"""TABLE: what limits values, where JSON Schema and ODCS call it the same."""

from __future__ import annotations

_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
# What a value is to JSON Schema -> the keys of `logicalTypeOptions` that it has too.
LIMITS = {
    "string": ("minLength", "maxLength"),
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "array": ("minItems", "maxItems", "uniqueItems"),
}
FORMATS = ("email", "hostname", "ipv4", "ipv6", "uri", "uuid")
"""Formats of texts that are nothing but texts in a table."""

_VALUES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
}  # fmt: skip
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems")


def is_limit(key: str, value: object) -> bool:
    """Whether a value can stand at the key. In ODCS 3.0 and old drafts `exclusiveMinimum` is a flag."""
    if key == "uniqueItems":
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return not (key in _COUNTS and (value < 0 or int(value) != value)) and (key != "multipleOf" or value > 0)


def are_values(kind: str, values: object) -> bool:
    """Whether they are a list of values, of which each is of this kind of JSON Schema."""
    wanted = _VALUES.get(kind, ())
    return isinstance(values, list) and bool(values) and all(type(one) in wanted for one in values)
