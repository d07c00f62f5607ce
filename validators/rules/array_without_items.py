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

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Severity
from dq.validators.context import Context
from dq.validators.rule import Fault, Rule, absence


def check(_contract: Contract, context: Context) -> Iterator[Fault]:
    for column in context.walk.columns:
        prop = column.property
        if prop.logical_type == "array" and prop.items is None and "<" not in (prop.physical_type or ""):
            message = f"{prop.name!r} is an array without the type of its items."
            yield absence(prop, message, "Add 'items: {logicalType: …}'.", "items")


RULE = Rule("array-without-items", Severity.WARNING, __doc__, check)
