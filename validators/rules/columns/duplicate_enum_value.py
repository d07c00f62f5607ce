"""Duplicate value in an enum.

Why: Usually one of the two was meant to be another value, and rows with that value now fail. The standard
forbids equal entries; a second entry of a value with another label or description is a warning.

Bad:
    schema:
      - name: orders
        properties:
          - {name: state, logicalType: string, enum: [{value: open}, {value: open}]}

Good:
    schema:
      - name: orders
        properties:
          - {name: state, logicalType: string, enum: [{value: open}, {value: paid}]}

How to fix: Remove the duplicate, or write the intended value.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, quote_value, violation


def check(_contract: Contract, context: Context) -> Violations:
    for prop in context.walk.properties:
        values: set[tuple[type, str]] = set()
        for entry in prop.enum or ():
            value = (type(entry.value), str(entry.value))
            if value in values:
                message = f"duplicate enum value {quote_value(entry.value)}."
                # The standard forbids equal entries, but allows a second one with another description.
                copy = any(other == entry for other in prop.enum or () if other is not entry)
                hint = "Remove the duplicate, or write the intended value."
                yield violation(entry, "value", message, hint, doubt=not copy)
            values.add(value)


RULE = Rule("duplicate-enum-value", Severity.ERROR, __doc__, check)
