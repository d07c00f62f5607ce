"""Decimal without precision and scale.

Why: Spark then uses decimal(10, 0) and silently drops all decimal places.

Bad:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: number, physicalType: decimal}

Good:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: number, physicalType: "decimal(18, 2)"}

How to fix: Specify the total number of digits and the number of decimal places.
"""

import re

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, is_on_lake, violation

_BARE = re.compile(r"\b(?:decimal|numeric|dec)\b(?!\s*\()", re.IGNORECASE)


def check(contract: Contract, context: Context) -> Violations:
    if not is_on_lake(contract):
        return
    for prop in context.walk.properties:
        physical_type = prop.physical_type
        # In a struct, `dec: int` is the name of a field.
        if (
            physical_type is not None
            and "struct" not in physical_type.lower()
            and _BARE.search(physical_type)
        ):
            message = f"type {physical_type!r} has no precision and scale."
            yield violation(prop, "physicalType", message, "Specify them, e.g. decimal(18, 2).")


RULE = Rule("decimal-without-precision", Severity.WARNING, __doc__, check)
