"""A property has no name.

Why: Only the items of an array and the two sides of a map go without; a column must be called something.

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

Mend: Add `name`.
"""

from collections.abc import Sequence

from dq.contracts.model import Property
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, absence


def check(contract: Contract, context: Context) -> Faults:
    for one in contract.objects:
        yield from _unnamed(one.properties)
    for prop in context.walk.properties:
        yield from _unnamed(prop.properties)


def _unnamed(siblings: Sequence[Property]) -> Faults:
    for one in siblings:
        if not one.name:
            yield absence(one, "the property has no name.", "Add 'name: …'.", "name")


RULE = Rule("property-without-name", Severity.ERROR, __doc__, check)
