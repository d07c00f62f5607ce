"""A property is a map and does not say of what.

Why: Without the types of key and value no table can be created, and nothing can be checked.

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

Mend: Add `map` with `key` and `value`.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, absence


def check(_contract: Contract, context: Context) -> Faults:
    for prop in context.walk.properties:
        if prop.logical_type == "map" and prop.map is None and "<" not in (prop.physical_type or ""):
            message = f"{prop.name!r} is a map without the types of key and value."
            mend = "Add 'map: {key: {logicalType: string}, value: {…}}'."
            yield absence(prop, message, mend, "map")


RULE = Rule("map-without-types", Severity.ERROR, __doc__, check)
