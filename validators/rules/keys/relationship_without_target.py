"""Relationship without 'to', or without 'from' on an object.

Why: A foreign key has two ends. On a property, 'from' is the property itself; on an object, both are
required.

Bad:
    schema:
      - name: orders
        properties:
          - name: customer_id
            relationships:
              - {type: foreignKey}

Good:
    schema:
      - name: orders
        properties:
          - {name: order_id}
          - name: replaces
            relationships:
              - {type: foreignKey, to: orders.order_id}

How to fix: Add `to`; on an object also `from` with the same number of properties.
"""

from dq.contracts.model import Relationship
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, missing_key, violation


def check(contract: Contract, context: Context) -> Violations:
    for schema_object in contract.objects:
        for relationship in schema_object.relationships:
            yield from _check_ends(relationship, ("from", "to"))
    for prop in context.walk.properties:
        for relationship in prop.relationships:
            yield from _check_ends(relationship, ("to",))


def _check_ends(relationship: Relationship, needed: tuple[str, ...]) -> Violations:
    ends = {"from": relationship.from_, "to": relationship.to}
    if "from" not in needed and relationship.has("from"):
        message = "'from' is not allowed on a property: it is the property itself."
        yield violation(relationship, "from", message, "Remove 'from'.")
        return
    absent = [key for key in needed if not ends[key]]
    if absent:
        yield missing_key(
            relationship, f"the relationship has no {absent[0]!r}.", f"Add '{absent[0]}: …'.", *absent
        )
        return
    from_count, to_count = (len(end) if isinstance(end, list) else 1 for end in ends.values())
    if "from" in needed and (from_count != to_count or type(ends["from"]) is not type(ends["to"])):
        message = f"'from' and 'to' do not match: {from_count} and {to_count} properties."
        yield violation(relationship, "to", message, "Use two names, or two lists of the same length.")


RULE = Rule("relationship-without-target", Severity.ERROR, __doc__, check)
