"""The official JSON Schema of ODCS refuses what dq accepts; only `dq validate --official` asks it.

Why: Other tools validate contracts by the JSON Schema that the standard publishes. A contract that passes
here and fails there stops somebody else's pipeline.

Bad:
    servers: [{server: exports, type: sftp, location: files.example.com/orders}]

Good:
    servers: [{server: exports, type: sftp, location: "sftp://files.example.com/orders"}]

Mend: Write what the schema asks for. Where the schema errs, because it takes a column without `logicalType`
for one of every type, this is a warning.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity


def check(contract: Contract, context: Context) -> Faults:
    if context.official is not None:
        from dq.validators.official import official_faults

        yield from official_faults(context.official, context.data, contract)


RULE = Rule("official-schema", Severity.ERROR, __doc__, check, consequences=True)
