"""Bound does not match the property's logicalType.

Why: A date cannot be compared with a number, so the check can only fail or be skipped.

Bad:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: number, logicalTypeOptions: {minimum: none}}

Good:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: number, logicalTypeOptions: {minimum: 0}}

How to fix: Write a value of the type: a number, or a date, e.g. "2026-01-31".
"""

from dq.validators.rule import (
    Context,
    Contract,
    Rule,
    Severity,
    Violations,
    fits_type,
    quote_value,
    violation,
)

_BOUNDS = ("minimum", "maximum", "exclusive_minimum", "exclusive_maximum")
_KEYS = {"exclusive_minimum": "exclusiveMinimum", "exclusive_maximum": "exclusiveMaximum"}
_NUMERIC = {"integer": "number"}


def check(contract: Contract, context: Context) -> Violations:
    # In ODCS 3.0 an exclusive bound is a boolean that modifies the other bound.
    flags = contract.odcs < (3, 1, 0)
    for prop in context.walk.properties:
        options = prop.logical_type_options
        if options is None or prop.logical_type not in ("integer", "number", "date", "timestamp", "time"):
            continue
        is_temporal = prop.logical_type in ("date", "timestamp", "time")
        expected = _NUMERIC.get(prop.logical_type, prop.logical_type)
        for attribute in _BOUNDS:
            value, key = getattr(options, attribute), _KEYS.get(attribute, attribute)
            type_ = "boolean" if flags and key.startswith("exclusive") else expected
            # Dates with a custom format are written in that format.
            if is_temporal and options.format is not None and type_ != "boolean":
                continue
            if value is not None and not fits_type(value, type_):
                message = f"{key} {quote_value(value)} is not a value of the logical type {type_!r}."
                # The JSON Schema accepts every string as a date.
                doubt = is_temporal and isinstance(value, str) and type_ != "boolean"
                yield violation(options, key, message, "Write a value of that type.", doubt=doubt)


RULE = Rule("option-type-mismatch", Severity.ERROR, __doc__, check)
