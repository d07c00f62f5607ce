"""Description too long for the catalog.

Why: Glue rejects column comments over 255 characters and table descriptions over 2048 bytes, so longer ones
are truncated when the contract is registered.

Bad:
    schema:
      - name: orders
        properties:
          - name: amount
            logicalType: number
            description: >-
              What the customer pays in the end, after all rebates, vouchers and returns, in the currency of
              the shop, with value-added tax as required by law in the country of delivery, without the cost
              of shipping, which has its own column, and without deposits for bottles.

Good:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: number, description: "What the customer pays in the end."}

How to fix: Keep the description short, and link to the details with `authoritativeDefinitions`.
"""

from dq.contracts.model import Element
from dq.validators.rule import Argument, Context, Contract, Rule, Severity, Violations, is_on_lake, violation

COLUMN = Argument("column_characters", 255, "Maximum length of a property's description.")
TABLE = Argument("table_characters", 2048, "Maximum length of an object's description.")


def check(contract: Contract, context: Context) -> Violations:
    if not is_on_lake(contract):
        return
    for schema_object in contract.objects:
        yield from _check_length(schema_object, context.value(TABLE))
    for column in context.walk.columns:
        # The catalog has comments for the columns of a table, not for the fields of a struct.
        if column.is_top_level:
            yield from _check_length(column.property, context.value(COLUMN))


def _check_length(element: Element, limit: int) -> Violations:
    if element.description is not None and len(element.description) > limit:
        message = (
            f"the description of {element.name!r} has {len(element.description)} characters, more than "
            f"{limit}."
        )
        yield violation(element, "description", message, "Shorten it; the catalog truncates longer ones.")


RULE = Rule("comment-too-long", Severity.WARNING, __doc__, check, arguments=(COLUMN, TABLE))
