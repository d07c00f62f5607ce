"""A property has parts that its logical type does not have.

Why: Only an object has properties, only an array has items, and only a map has key and value. Which of the
two is wrong, nobody can tell, and tools create a column of either.

Bad:
    schema:
      - name: orders
        properties:
          - name: lines
            logicalType: string
            items: {logicalType: string}

Good:
    schema:
      - name: orders
        properties:
          - name: lines
            logicalType: array
            items: {logicalType: string}

Mend: Correct the logicalType, or remove the parts.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault

# Key -> the logical type that has it, and whether an absent logicalType may stand for it.
_PARTS = {"properties": ("object", True), "items": ("array", True), "map": ("map", False)}


def check(_contract: Contract, context: Context) -> Faults:
    for prop in context.walk.properties:
        for key, (type_, may_be_absent) in _PARTS.items():
            fits = prop.logical_type == type_ or (prop.logical_type is None and may_be_absent)
            if not fits and getattr(prop, key):
                type_is = f"logicalType {prop.logical_type!r}" if prop.logical_type else "no logicalType"
                message = f"{prop.name or 'the item'!r} has {key!r}, and {type_is}."
                mend = f"Write 'logicalType: {type_}', or remove '{key}'."
                yield fault(prop, key, message, mend, needs=(prop.path("logicalType"),))


RULE = Rule("parts-not-for-type", Severity.ERROR, __doc__, check)
