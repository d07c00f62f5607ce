"""Nested elements that do not match the logicalType.

Why: Only an object has properties, only an array has items, and only a map has key and value. It is unclear
which of the two is wrong, and tools create a column from either.

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

How to fix: Correct the logicalType, or remove the nested elements.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation

# Key -> the logical type that has it, and whether logicalType may be absent.
_PARTS = {"properties": ("object", True), "items": ("array", True), "map": ("map", False)}


def check(_contract: Contract, context: Context) -> Violations:
    for prop in context.walk.properties:
        for key, (type_, may_be_absent) in _PARTS.items():
            is_allowed = prop.logical_type == type_ or (prop.logical_type is None and may_be_absent)
            if not is_allowed and getattr(prop, key):
                type_is = f"logicalType {prop.logical_type!r}" if prop.logical_type else "no logicalType"
                message = f"{prop.name or 'the item'!r} has {key!r}, but {type_is}."
                hint = f"Write 'logicalType: {type_}', or remove '{key}'."
                yield violation(prop, key, message, hint, needs=(prop.path("logicalType"),))


RULE = Rule("parts-not-for-type", Severity.ERROR, __doc__, check)
