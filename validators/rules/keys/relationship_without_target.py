"""A relationship does not say what it refers to, or from what.

Why: A foreign key has two ends. On a property the first is the property itself; on an object both are named.

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

Mend: Add `to`; on an object also `from`, with as many properties.
"""

from dq.contracts.model import Relationship
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, absence, fault


def check(contract: Contract, context: Context) -> Faults:
    for one in contract.objects:
        for relationship in one.relationships:
            yield from _judge(relationship, ("from", "to"))
    for prop in context.walk.properties:
        for relationship in prop.relationships:
            yield from _judge(relationship, ("to",))


def _judge(relationship: Relationship, needed: tuple[str, ...]) -> Faults:
    ends = {"from": relationship.from_, "to": relationship.to}
    if "from" not in needed and relationship.has("from"):
        message = "'from' is the property itself, and is not said again."
        yield fault(relationship, "from", message, "Remove 'from'.")
        return
    absent = [key for key in needed if not ends[key]]
    if absent:
        yield absence(
            relationship, f"the relationship has no {absent[0]!r}.", f"Add '{absent[0]}: …'.", *absent
        )
        return
    here, there = (len(end) if isinstance(end, list) else 1 for end in ends.values())
    if "from" in needed and (here != there or type(ends["from"]) is not type(ends["to"])):
        message = f"the relationship leads from {here} properties to {there}."
        yield fault(relationship, "to", message, "Name as many on both sides.")


RULE = Rule("relationship-without-target", Severity.ERROR, __doc__, check)
