"""A decimal has no precision and scale.

Why: Spark then takes decimal(10, 0) and cuts the digits after the point off, without a word.

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

Mend: Write the number of digits, and how many of them follow the point.
"""

import re

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, on_lake

_BARE = re.compile(r"\b(?:decimal|numeric|dec)\b(?!\s*\()", re.IGNORECASE)


def check(contract: Contract, context: Context) -> Faults:
    if not on_lake(contract):
        return
    for prop in context.walk.properties:
        written = prop.physical_type
        # In a struct, `dec: int` is the name of a field.
        if written is not None and "struct" not in written.lower() and _BARE.search(written):
            message = f"type {written!r} has no precision."
            yield fault(prop, "physicalType", message, "Write decimal(18, 2), or what fits.")


RULE = Rule("decimal-without-precision", Severity.WARNING, __doc__, check)
