"""Unknown contract status.

Why: Tools use the status to decide whether a contract is watched and whether its changes may break consumers.

Bad:
    status: activ

Good:
    status: active

How to fix: Write proposed, draft, active, deprecated or retired.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, suggestion, violation

STATUSES = ("proposed", "draft", "active", "deprecated", "retired")


def check(contract: Contract, _context: Context) -> Violations:
    if contract.status is not None and contract.status not in STATUSES:
        hint = suggestion(contract.status, STATUSES, f"Write one of {', '.join(STATUSES)}.")
        message = (
            f"unknown status {contract.status!r}, treated as active: deliveries are watched and alerts are "
            "sent."
        )
        yield violation(contract, "status", message, hint)


RULE = Rule("status-unknown", Severity.WARNING, __doc__, check)
