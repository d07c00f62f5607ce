"""A description is longer than the catalog keeps.

Why: Glue refuses a column comment over 255 characters and a table description over 2048 bytes, so that it
is cut off when the contract is registered.

Bad:
    schema:
      - name: orders
        properties:
          - name: amount
            logicalType: number
            description: >-
              What the customer pays in the end, after all rebates, vouchers and returns, in the currency of
              the shop, with value-added tax as the law of the country of delivery wants it, without the cost
              of shipping, which stands in a column of its own, and without deposits for bottles.

Good:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: number, description: "What the customer pays in the end."}

Mend: Say the essence in the description, and the rest where `authoritativeDefinitions` point to.
"""

from dq.contracts.model import Element
from dq.validators.rule import Argument, Context, Contract, Faults, Rule, Severity, fault, on_lake

COLUMN = Argument("column_characters", 255, "How long the description of a property may be.")
TABLE = Argument("table_characters", 2048, "How long the description of an object may be.")


def check(contract: Contract, context: Context) -> Faults:
    if not on_lake(contract):
        return
    for one in contract.objects:
        yield from _judge(one, context.value(TABLE))
    for column in context.walk.columns:
        # Only a column of the table has a comment in the catalog; a field of a struct has none.
        if column.top:
            yield from _judge(column.property, context.value(COLUMN))


def _judge(one: Element, limit: int) -> Faults:
    if one.description is not None and len(one.description) > limit:
        message = f"the description of {one.name!r} has {len(one.description)} characters, more than {limit}."
        yield fault(one, "description", message, "Shorten it; the catalog cuts it off.")


RULE = Rule("comment-too-long", Severity.WARNING, __doc__, check, arguments=(COLUMN, TABLE))
