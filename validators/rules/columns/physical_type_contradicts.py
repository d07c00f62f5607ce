"""Physical type that cannot hold values of the logicalType.

Why: One of the two is wrong, and readers cannot tell which.

Bad:
    schema:
      - name: orders
        properties:
          - {name: order_date, logicalType: date, physicalType: boolean}

Good:
    schema:
      - name: orders
        properties:
          - {name: order_date, logicalType: date, physicalType: date}

How to fix: Correct `physicalType` or `logicalType`.
"""

from dq.contracts import types
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, is_on_lake, one_of, violation


def check(contract: Contract, context: Context) -> Violations:
    if not is_on_lake(contract):
        return
    for prop in context.walk.properties:
        if prop.physical_type is None or prop.logical_type is None:
            continue
        try:
            physical = types.parse(prop.physical_type)
        except types.NotAType:
            continue
        if not types.carries(physical, prop.logical_type, contract.odcs):
            carriers = one_of(types.carriers(prop.logical_type, contract.odcs))
            message = f"{physical} cannot hold values of the logical type {prop.logical_type!r}."
            yield violation(prop, "physicalType", message, f"Write {carriers}, or correct logicalType.")


RULE = Rule("physical-type-contradicts", Severity.WARNING, __doc__, check)
