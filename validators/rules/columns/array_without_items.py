"""A property is an array and does not say of what.

Why: The table is created with an array of texts, and the type of the items is never checked.

Bad:
    schema:
      - name: orders
        properties:
          - {name: vouchers, logicalType: array}

Good:
    schema:
      - name: orders
        properties:
          - {name: vouchers, logicalType: array, items: {logicalType: string}}

Mend: Add `items` with their logicalType.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, absence


def check(_contract: Contract, context: Context) -> Faults:
    for prop in context.walk.properties:
        if prop.logical_type == "array" and prop.items is None and "<" not in (prop.physical_type or ""):
            message = f"{prop.name!r} is an array without the type of its items."
            yield absence(prop, message, "Add 'items: {logicalType: …}'.", "items")


RULE = Rule("array-without-items", Severity.WARNING, __doc__, check)
