"""Contract without a schema.

Why: Without a schema the contract makes no statement about the data, and there is nothing to register or
check.

Bad:
    schema: []

Good:
    schema:
      - name: orders
        properties:
          - {name: order_id, logicalType: string}

How to fix: Describe the tables under `schema`.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, missing_key


def check(contract: Contract, _context: Context) -> Violations:
    if not contract.objects:
        yield missing_key(contract, "the contract has no objects.", "Add 'schema: [{name: …}]'.", "schema")


RULE = Rule("missing-schema", Severity.WARNING, __doc__, check, opt_in=True)
