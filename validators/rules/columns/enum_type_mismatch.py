"""A value of an enum is not one of the property's logical type.

Why: No row can ever have this value, and YAML may have read it as something that was not meant.

Bad:
    schema:
      - name: orders
        properties:
          - {name: country, logicalType: string, enum: [{value: SE}, {value: NO}]}

Good:
    schema:
      - name: orders
        properties:
          - {name: country, logicalType: string, enum: [{value: SE}, {value: "NO"}]}

Mend: Write the value as the type wants it; quote what is meant as text.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, fits, shown


def check(_contract: Contract, context: Context) -> Faults:
    for prop in context.walk.properties:
        for one in prop.enum or ():
            if one.value is not None and not fits(one.value, prop.logical_type):
                written = one.place.raw.get("value", shown(one.value))
                message = f"{written} is not a value of the logical type {prop.logical_type!r}."
                mend = f"Quote it: {written!r}." if prop.logical_type == "string" else "Correct the value."
                yield fault(one, "value", message, mend)


RULE = Rule("enum-type-mismatch", Severity.WARNING, __doc__, check)
