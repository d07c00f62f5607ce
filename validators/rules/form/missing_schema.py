"""The contract has no object.

Why: Without a schema nothing is promised of the data, and there is nothing to register or to check.

Bad:
    schema: []

Good:
    schema:
      - name: orders
        properties:
          - {name: order_id, logicalType: string}

Mend: Describe the tables under `schema`.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, absence


def check(contract: Contract, _context: Context) -> Faults:
    if not contract.objects:
        yield absence(contract, "the contract describes no object.", "Add 'schema: [{name: …}]'.", "schema")


RULE = Rule("missing-schema", Severity.WARNING, __doc__, check, wish=True)
