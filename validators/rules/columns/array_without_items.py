"""Array without an item type.

Why: The table is created with an array of strings, and the type of the items is never checked.

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

How to fix: Add `items` with a logicalType.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, missing_key


def check(_contract: Contract, context: Context) -> Violations:
    for prop in context.walk.properties:
        if prop.logical_type == "array" and prop.items is None and "<" not in (prop.physical_type or ""):
            message = f"{prop.name!r} is an array without an item type."
            yield missing_key(prop, message, "Add 'items: {logicalType: …}'.", "items")


RULE = Rule("array-without-items", Severity.WARNING, __doc__, check)
