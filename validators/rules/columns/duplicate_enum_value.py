"""An enum holds the same value twice.

Why: Usually one of the two was meant to be another value, which rows will now be refused for. The standard
refuses equal entries; a second entry of one value with another label or description is a warning.

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

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, shown


def check(_contract: Contract, context: Context) -> Faults:
    for prop in context.walk.properties:
        seen: set[tuple[type, str]] = set()
        for one in prop.enum or ():
            value = (type(one.value), str(one.value))
            if value in seen:
                message = f"{shown(one.value)} stands in the enum already."
                # The standard refuses equal entries, and allows a second one with another description.
                copy = any(each == one for each in prop.enum or () if each is not one)
                mend = "Remove the copy, or write what was meant."
                yield fault(one, "value", message, mend, doubt=not copy)
            seen.add(value)


RULE = Rule("duplicate-enum-value", Severity.ERROR, __doc__, check)
