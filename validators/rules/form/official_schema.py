"""Rejected by the official JSON Schema of ODCS; only checked by `dq validate --official`.

Why: Other tools validate contracts with the JSON Schema that the standard publishes. A contract that dq
accepts and the schema rejects stops the pipelines of others.

Bad:
    servers: [{server: exports, type: sftp, location: files.example.com/orders}]

Good:
    servers: [{server: exports, type: sftp, location: "sftp://files.example.com/orders"}]

How to fix: Write what the schema requires. Where the schema is wrong, because it treats a column without
`logicalType` as having every type, this is a warning.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations


def check(contract: Contract, context: Context) -> Violations:
    if context.official is not None:
        from dq.validators.official import official_violations

        yield from official_violations(context.official, context.data, contract)


RULE = Rule("official-schema", Severity.ERROR, __doc__, check, consequences=True)
