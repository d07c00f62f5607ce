"""Data without a description.

Why: Readers who find the table in the catalog have to guess from the names, and guess wrong. The policy sets
how many columns need a description.

Bad:
    schema:
      - name: orders
        properties:
          - {name: id, logicalType: string}
          - {name: am1, logicalType: number}
          - {name: am2, logicalType: number}
          - {name: am3, logicalType: number}
          - {name: flag, logicalType: string}
          - {name: dt1, logicalType: date}
          - {name: dt2, logicalType: date}
          - {name: cust, logicalType: string}
          - {name: kind, logicalType: string}
          - {name: state, logicalType: string}

Good:
    description: {purpose: Every order that a customer paid.}
    schema:
      - name: orders
        properties:
          - {name: id, logicalType: string}
          - {name: am1, logicalType: number, description: What was paid.}

How to fix: Add `description.purpose` to the contract, or `description` to its objects and properties. By
default, contracts with fewer than ten properties need none.
"""

from dq.validators.rule import Argument, Context, Contract, Rule, Severity, Violations, missing_key

# Contracts with fewer properties need no description by default.
MANY = 10
COLUMNS = Argument(
    "columns_percent", 0, "Minimum share of an object's properties with a description, in percent."
)


def check(contract: Contract, context: Context) -> Violations:
    if len(context.walk.columns) >= MANY and not _is_described_anywhere(contract, context):
        message = f"none of these {len(context.walk.columns)} properties is described."
        hint = "Add 'description' here, or 'description: {purpose: …}' to the contract."
        yield missing_key(contract.objects[0], message, hint, "description")
    minimum = context.value(COLUMNS)
    for schema_object in contract.objects if minimum else ():
        columns = [column.property for column in context.walk.columns if column.object is schema_object]
        columns_with_name = [column for column in columns if column.name]
        undescribed = [column for column in columns_with_name if not _has_text(column.description)]
        if columns_with_name and 100 * (len(columns_with_name) - len(undescribed)) < minimum * len(
            columns_with_name
        ):
            share = 100 * (len(columns_with_name) - len(undescribed)) // len(columns_with_name)
            message = (
                f"{share}% of the properties of {schema_object.name!r} have a description, less than "
                f"{minimum}%."
            )
            yield missing_key(undescribed[0], message, f"Start with {undescribed[0].name!r}.", "description")


def _is_described_anywhere(contract: Contract, context: Context) -> bool:
    purpose = contract.description.purpose if contract.description is not None else None
    elements = (*contract.objects, *context.walk.properties)
    return _has_text(purpose) or any(_has_text(element.description) for element in elements)


def _has_text(text: str | None) -> bool:
    return bool(text and text.strip())


RULE = Rule("missing-description", Severity.INFO, __doc__, check, arguments=(COLUMNS,), opt_in=True)
