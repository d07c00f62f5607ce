"""Struct without properties.

Why: The table is created with a string column instead, and the fields inside are never checked.

Bad:
    schema:
      - name: orders
        properties:
          - {name: address, logicalType: object}

Good:
    schema:
      - name: orders
        properties:
          - name: address
            logicalType: object
            properties: [{name: city, logicalType: string}]

How to fix: Add `properties`, or a `physicalType` with the structure.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, missing_key


def check(_contract: Contract, context: Context) -> Violations:
    for prop in context.walk.properties:
        if prop.logical_type == "object" and not prop.properties and not prop.physical_type:
            message = f"{prop.name or 'an item'!r} is a struct without properties."
            yield missing_key(prop, message, "Add 'properties: […]'.", "properties")


RULE = Rule("object-without-properties", Severity.WARNING, __doc__, check)
