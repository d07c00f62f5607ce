"""A physicalType cannot hold values of the logical type.

Why: One of the two is wrong, and readers who trust the other one are deceived.

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

Mend: Correct the one that is wrong.
"""

from dq.contracts import types
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, on_lake, one_of


def check(contract: Contract, context: Context) -> Faults:
    if not on_lake(contract):
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
            yield fault(prop, "physicalType", message, f"Write {carriers}, or correct logicalType.")


RULE = Rule("physical-type-contradicts", Severity.WARNING, __doc__, check)
