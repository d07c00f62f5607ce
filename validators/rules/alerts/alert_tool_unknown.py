"""Alert channel with a tool that dq cannot send alerts to.

Why: The alert would go to the watcher's console, which this team does not read. The standard allows any tool,
so this is a warning; a policy can make it an error.

Bad:
    support:
      - {channel: "sales-data", tool: discord, scope: notifications}

Good:
    support:
      - {channel: "#sales-data", tool: slack, scope: notifications}

How to fix: Use a tool that dq sends alerts to, or a scope that receives no alerts, e.g. `interactive`.
"""

from dq.contracts.access.alert_target import tool_problem
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation


def check(contract: Contract, _context: Context) -> Violations:
    for support in contract.support:
        wrong = tool_problem(support)
        if wrong is not None:
            yield violation(support, "tool", f"{wrong.message}.", wrong.hint)


RULE = Rule("alert-tool-unknown", Severity.WARNING, __doc__, check)
