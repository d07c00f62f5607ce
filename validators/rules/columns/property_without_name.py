"""Property without a name.

Why: Every column needs a name; only the items of an array and the key and value of a map have none.

Bad:
    schema:
      - name: orders
        properties:
          - {logicalType: string}

Good:
    schema:
      - name: orders
        properties:
          - {name: order_id, logicalType: string}

How to fix: Add `name`.
"""

from collections.abc import Sequence

from dq.contracts.model import Property
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, missing_key


def check(contract: Contract, context: Context) -> Violations:
    for schema_object in contract.objects:
        yield from _unnamed(schema_object.properties)
    for prop in context.walk.properties:
        yield from _unnamed(prop.properties)


def _unnamed(siblings: Sequence[Property]) -> Violations:
    for prop in siblings:
        if not prop.name:
            yield missing_key(prop, "the property has no name.", "Add 'name: …'.", "name")


RULE = Rule("property-without-name", Severity.ERROR, __doc__, check)
