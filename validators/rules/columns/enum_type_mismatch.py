"""Enum value does not match the property's logicalType.

Why: No row can ever have this value, and YAML may have read it differently than intended.

Bad:
    schema:
      - name: orders
        properties:
          - {name: country, logicalType: string, enum: [{value: SE}, {value: NO}]}

Good:
    schema:
      - name: orders
        properties:
          - {name: country, logicalType: string, enum: [{value: SE}, {value: "NO"}]}

How to fix: Write a value of the logical type; put strings in quotes.
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


def check(_contract: Contract, context: Context) -> Violations:
    for prop in context.walk.properties:
        for entry in prop.enum or ():
            if entry.value is not None and not fits_type(entry.value, prop.logical_type):
                text = entry.place.raw.get("value", quote_value(entry.value))
                message = f"{text} is not a value of the logical type {prop.logical_type!r}."
                hint = f"Quote it: {text!r}." if prop.logical_type == "string" else "Correct the value."
                yield violation(entry, "value", message, hint)


RULE = Rule("enum-type-mismatch", Severity.WARNING, __doc__, check)
