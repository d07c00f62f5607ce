"""Map without key and value types.

Why: Without the types of key and value, the table cannot be created and nothing can be checked.

Bad:
    schema:
      - name: orders
        properties:
          - {name: labels, logicalType: map}

Good:
    schema:
      - name: orders
        properties:
          - name: labels
            logicalType: map
            map: {key: {logicalType: string}, value: {logicalType: string}}

How to fix: Add `map` with `key` and `value`.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, missing_key


def check(_contract: Contract, context: Context) -> Violations:
    for prop in context.walk.properties:
        if prop.logical_type == "map" and prop.map is None and "<" not in (prop.physical_type or ""):
            message = f"{prop.name!r} is a map without key and value types."
            hint = "Add 'map: {key: {logicalType: string}, value: {…}}'."
            yield missing_key(prop, message, hint, "map")


RULE = Rule("map-without-types", Severity.ERROR, __doc__, check)
