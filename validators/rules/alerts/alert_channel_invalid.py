"""A support channel for alerts does not have the form of its tool.

Why: The alert would not arrive: a Slack channel has a name of letters, digits, hyphens and underscores, and a
person is none.

Bad:
    support:
      - {channel: "@ana", tool: slack, scope: notifications}

Good:
    support:
      - {channel: "#sales-data", tool: slack, scope: notifications}

Mend: Write the channel's name with `#`, in quotes, or its id.
"""

from dq.contracts.access.alert_target import hears, target_fault
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault


def check(contract: Contract, _context: Context) -> Faults:
    for support in contract.support:
        wrong = target_fault(support) if hears(support) else None
        if wrong is not None:
            yield fault(support, "channel", f"{wrong.message}.", wrong.mend)


RULE = Rule("alert-channel-invalid", Severity.WARNING, __doc__, check)
