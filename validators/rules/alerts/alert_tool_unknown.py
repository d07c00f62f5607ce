"""A support channel that wants to hear of breaches names a tool that dq brings no alerts to.

Why: The alert would go to the watcher's console, where nobody of this team reads it. The standard allows any
tool, so this is a warning; a policy can make it an error.

Bad:
    support:
      - {channel: "sales-data", tool: discord, scope: notifications}

Good:
    support:
      - {channel: "#sales-data", tool: slack, scope: notifications}

Mend: Name a tool that alerts go through, or a scope that hears of no breaches, such as `interactive`.
"""

from dq.contracts.access.alert_target import tool_fault
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault


def check(contract: Contract, _context: Context) -> Faults:
    for support in contract.support:
        wrong = tool_fault(support)
        if wrong is not None:
            yield fault(support, "tool", f"{wrong.message}.", wrong.mend)


RULE = Rule("alert-tool-unknown", Severity.WARNING, __doc__, check)
