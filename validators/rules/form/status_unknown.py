"""The contract has a status that is none of ODCS.

Why: Tools decide by the status whether a contract is watched and whether its changes may break readers.

Bad:
    status: activ

Good:
    status: active

Mend: Write proposed, draft, active, deprecated or retired.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, suggestion

KNOWN = ("proposed", "draft", "active", "deprecated", "retired")


def check(contract: Contract, _context: Context) -> Faults:
    if contract.status is not None and contract.status not in KNOWN:
        mend = suggestion(contract.status, KNOWN, f"Write one of {', '.join(KNOWN)}.")
        yield fault(contract, "status", f"status {contract.status!r} is not one of ODCS.", mend)


RULE = Rule("status-unknown", Severity.WARNING, __doc__, check)
