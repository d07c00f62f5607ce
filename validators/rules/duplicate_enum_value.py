"""An enum holds the same value twice.

Why: Usually one of the two was meant to be another value, which rows will now be refused for.

Bad:
    schema:
      - name: orders
        properties:
          - {name: state, logicalType: string, enum: [{value: open}, {value: open}]}

Good:
    schema:
      - name: orders
        properties:
          - {name: state, logicalType: string, enum: [{value: open}, {value: paid}]}

Mend: Remove the copy, or write the value that was meant.
"""

from dq.validators.facts.values import shown
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault


def check(_contract: Contract, context: Context) -> Faults:
    for prop in context.walk.properties:
        seen: set[tuple[type, str]] = set()
        for one in prop.enum or ():
            value = (type(one.value), str(one.value))
            if value in seen:
                message = f"{shown(one.value)} stands in the enum already."
                yield fault(one, "value", message, "Remove the copy, or write what was meant.")
            seen.add(value)


RULE = Rule("duplicate-enum-value", Severity.WARNING, __doc__, check)
