"""Invalid channel name for the tool of an alert channel.

Why: The alert would not arrive: a Slack channel name has letters, digits, hyphens and underscores, and a
person is not a channel.

Bad:
    support:
      - {channel: "@ana", tool: slack, scope: notifications}

Good:
    support:
      - {channel: "#sales-data", tool: slack, scope: notifications}

How to fix: Write the channel's name with `#`, in quotes, or its id.
"""

from dq.contracts.access.alert_target import alert_target_problem, receives_breaches
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation


def check(contract: Contract, _context: Context) -> Violations:
    for support in contract.support:
        wrong = alert_target_problem(support) if receives_breaches(support) else None
        if wrong is not None:
            yield violation(support, "channel", f"{wrong.message}.", wrong.hint)


RULE = Rule("alert-channel-invalid", Severity.WARNING, __doc__, check)
