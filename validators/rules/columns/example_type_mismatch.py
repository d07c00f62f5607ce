"""Example does not match the property's logicalType.

Why: People copy examples into tests and queries, and trust them more than the type next to them.

Bad:
    schema:
      - name: orders
        properties:
          - {name: order_date, logicalType: date, examples: ["31.01.2026"]}

Good:
    schema:
      - name: orders
        properties:
          - {name: order_date, logicalType: date, examples: ["2026-01-31"]}

How to fix: Write the example as it occurs in the data: numbers without quotes, dates as 2026-01-31. If
`logicalTypeOptions` has a `format`, examples are not checked.
"""

from dq.validators.rule import (
    Context,
    Contract,
    Rule,
    Severity,
    Violations,
    fits_type,
    item_violation,
    quote_value,
)


def check(_contract: Contract, context: Context) -> Violations:
    for prop in context.walk.properties:
        options = prop.logical_type_options
        if not prop.examples or (options is not None and options.format is not None):
            continue
        for index, value in enumerate(prop.examples):
            # Values of a string column may look like numbers; null is checked by another rule.
            if value is None or prop.logical_type == "string" or _fits(value, prop.logical_type):
                continue
            message = (
                f"example {quote_value(value)[:60]} is not a value of the logical type {prop.logical_type!r}."
            )
            yield item_violation(prop, "examples", index, message, "Write a value that the column can hold.")


def _fits(value: object, logical: str | None) -> bool:
    """Return whether the example fits the type; numbers and booleans may be quoted."""
    if isinstance(value, str) and logical in ("integer", "number"):
        try:
            number = float(value)
        except ValueError:
            return False
        return logical == "number" or number.is_integer()
    if isinstance(value, str) and logical == "boolean":
        return value.lower() in ("true", "false")
    return isinstance(value, (dict, list)) or fits_type(value, logical)


RULE = Rule("example-type-mismatch", Severity.WARNING, __doc__, check)
