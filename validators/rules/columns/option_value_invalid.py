"""Invalid value in logicalTypeOptions.

Why: A negative length, an empty list of required fields or an unknown number format is never checked,
although its author believes that it is.

Bad:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: integer, logicalTypeOptions: {format: int32}}

Good:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: integer, logicalTypeOptions: {format: i32}}

How to fix: Write a value as described in the message. Lengths and counts are 0 or more, `multipleOf` is above
0, and a vector needs `dimensions`.
"""

from collections.abc import Callable
from typing import Any

from dq.contracts.model import Property, TypeOptions
from dq.validators.rule import (
    Context,
    Contract,
    Rule,
    Severity,
    Violations,
    missing_key,
    suggestion,
    violation,
)

_FORMATS = {
    "integer": ("i8", "i16", "i32", "i64", "i128", "u8", "u16", "u32", "u64", "u128"),
    "number": ("f32", "f64"),
}
_WORDS = {
    "elementType": ("bfloat16", "binary", "float16", "float32", "float64", "int8", "uint8"),
    "distanceMetric": ("cosine", "dotProduct", "euclidean", "hamming", "manhattan"),
}
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
# Option -> condition for its value, and its description.
_MUST: dict[str, tuple[Callable[[Any], bool], str]] = {
    **{key: (lambda value: value >= 0, "0 or more") for key in _COUNTS},
    "multipleOf": (lambda value: value > 0, "above 0"),
    "dimensions": (lambda value: value >= 1, "1 or more"),
    "required": (lambda value: 0 < len(value) == len(set(value)), "a list of unique names"),
}


def check(_contract: Contract, context: Context) -> Violations:
    for prop in context.walk.properties:
        options = prop.logical_type_options
        if prop.logical_type == "vector" and (options is None or options.dimensions is None):
            message = f"{prop.name!r} is a vector without dimensions."
            hint = "Add 'logicalTypeOptions: {dimensions: …}'."
            yield missing_key(options or prop, message, hint, "dimensions", "logicalTypeOptions")
        if options is not None:
            yield from _check_options(prop, options)


def _check_options(prop: Property, options: TypeOptions) -> Violations:
    values = options.model_dump(by_alias=True, exclude_none=True)
    for key, value in values.items():
        words = _FORMATS.get(prop.logical_type or "") if key == "format" else _WORDS.get(key)
        if words is not None and value not in words:
            hint = suggestion(value, words, f"Write one of {', '.join(words)}.")
            yield violation(options, key, f"unknown {key} {value!r}.", hint)
        holds, must = _MUST.get(key, (None, ""))
        if holds is not None and not holds(value):
            yield violation(
                options, key, f"{key} is {value}, but must be {must}.", "Correct it, or remove it."
            )


RULE = Rule("option-value-invalid", Severity.ERROR, __doc__, check)
