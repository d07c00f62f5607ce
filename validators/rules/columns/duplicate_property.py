"""Two properties that stand beside each other have one name.

Why: Spark, Hive and Glue match columns without regard to case, so that the two are one column to a reader; so
are two names of the same characters that Unicode writes in two ways.

Bad:
    schema:
      - name: orders
        properties:
          - name: amount
          - name: Amount

Good:
    schema:
      - name: orders
        properties:
          - name: amount
          - name: amount_in_euro

Mend: Rename one of them, or remove the copy.
"""

from collections.abc import Sequence

from dq.contracts.model import Property
from dq.validators.context import alike, note
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault


def check(contract: Contract, context: Context) -> Faults:
    for one in contract.objects:
        yield from _twins(one.properties)
    for prop in context.walk.properties:
        if prop.properties:
            yield from _twins(prop.properties)


def _twins(siblings: Sequence[Property]) -> Faults:
    names: dict[str, Property] = {}
    columns: dict[str, Property] = {}
    for one in siblings:
        if not one.name:
            continue
        first = names.setdefault(alike(one.name.lower()), one)
        if first is not one:
            line = f"line {first.at('name').line}{note(one.name, first.name or '')}"
            message = f"{one.name!r} is the name of the property in {line} already."
            yield fault(one, "name", message, "Rename one of them, or remove the copy.")
            continue
        first = columns.setdefault(alike(one.column.lower()), one)
        if first is not one:
            message = (
                f"{one.column!r} is the column of {first.name!r} in line {first.at('name').line} already."
            )
            key = "physicalName" if one.has("physicalName") else "name"
            yield fault(one, key, message, "Give each property a column of its own.")


RULE = Rule("duplicate-property", Severity.ERROR, __doc__, check)
