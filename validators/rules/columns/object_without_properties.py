"""A property is a struct and does not say of what.

Why: The table is created with a text in its place, and the fields inside are never checked.

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

Mend: Add `properties`, or a `physicalType` that says the structure.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, absence


def check(_contract: Contract, context: Context) -> Faults:
    for prop in context.walk.properties:
        if prop.logical_type == "object" and not prop.properties and not prop.physical_type:
            message = f"{prop.name or 'an item'!r} is a struct without properties."
            yield absence(prop, message, "Add 'properties: […]'.", "properties")


RULE = Rule("object-without-properties", Severity.WARNING, __doc__, check)
