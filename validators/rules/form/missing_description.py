"""Nothing in the contract says what the data is.

Why: Readers who find the table in the catalog guess from the names, and guess wrong. Counting descriptions
is all that a gate can do; the policy says how many columns need one.

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

Mend: Add `description.purpose` to the contract, or `description` to its objects and properties. Of contracts
with fewer than ten properties, nothing is asked by default.
"""

from dq.validators.rule import Argument, Context, Contract, Faults, Rule, Severity, absence

# A contract with fewer properties may speak for itself.
MANY = 10
COLUMNS = Argument("columns_percent", 0, "How many of an object's properties need a description, in percent.")


def check(contract: Contract, context: Context) -> Faults:
    if len(context.walk.columns) >= MANY and not _said_anywhere(contract, context):
        message = f"nothing says what these {len(context.walk.columns)} properties are."
        mend = "Add 'description' here, or 'description: {purpose: …}' to the contract."
        yield absence(contract.objects[0], message, mend, "description")
    least = context.value(COLUMNS)
    for one in contract.objects if least else ():
        columns = [column.property for column in context.walk.columns if column.object is one]
        named = [column for column in columns if column.name]
        bare = [column for column in named if not _says(column.description)]
        if named and 100 * (len(named) - len(bare)) < least * len(named):
            share = 100 * (len(named) - len(bare)) // len(named)
            message = f"{share}% of the properties of {one.name!r} have a description, less than {least}%."
            yield absence(bare[0], message, f"Begin with {bare[0].name!r}.", "description")


def _said_anywhere(contract: Contract, context: Context) -> bool:
    purpose = contract.description.purpose if contract.description is not None else None
    elements = (*contract.objects, *context.walk.properties)
    return _says(purpose) or any(_says(one.description) for one in elements)


def _says(text: str | None) -> bool:
    return bool(text and text.strip())


RULE = Rule("missing-description", Severity.INFO, __doc__, check, arguments=(COLUMNS,), wish=True)
