"""Lower bound above the upper bound.

Why: No value can satisfy both, so every row of every delivery fails.

Bad:
    schema:
      - name: orders
        properties:
          - name: amount
            logicalType: number
            logicalTypeOptions: {minimum: 100, maximum: 10}

Good:
    schema:
      - name: orders
        properties:
          - name: amount
            logicalType: number
            logicalTypeOptions: {minimum: 10, maximum: 100}

How to fix: Swap the two bounds, or correct one of them.
"""

import datetime as dt

from dq.contracts.model import TypeOptions
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

# Lower key, its attribute, upper key, its attribute, and whether the two may be equal.
_PAIRS = (
    ("minimum", "minimum", "maximum", "maximum", True),
    ("exclusiveMinimum", "exclusive_minimum", "exclusiveMaximum", "exclusive_maximum", False),
    ("minimum", "minimum", "exclusiveMaximum", "exclusive_maximum", False),
    ("exclusiveMinimum", "exclusive_minimum", "maximum", "maximum", False),
    ("minLength", "min_length", "maxLength", "max_length", True),
    ("minItems", "min_items", "maxItems", "max_items", True),
    ("minProperties", "min_properties", "maxProperties", "max_properties", True),
)


def check(_contract: Contract, context: Context) -> Violations:
    for prop in context.walk.properties:
        options = prop.logical_type_options
        if options is not None:
            yield from _reversed_bounds(options)


def _reversed_bounds(options: TypeOptions) -> Violations:
    for low_key, low_attribute, high_key, high_attribute, may_be_equal in _PAIRS:
        low, high = getattr(options, low_attribute), getattr(options, high_attribute)
        if low is None or high is None or not _are_comparable(low, high):
            continue
        if low > high or (low == high and not may_be_equal):
            message = f"{low_key} {quote_value(low)} is not below {high_key} {quote_value(high)}."
            yield violation(options, low_key, message, "Swap the two, or correct one of them.")


def _are_comparable(low: object, high: object) -> bool:
    numbers = fits_type(low, "number") and fits_type(high, "number")
    return numbers or (type(low) is type(high) and isinstance(low, (str, dt.date)))


RULE = Rule("min-above-max", Severity.WARNING, __doc__, check)
