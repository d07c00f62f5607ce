"""The contract names no channel for notifications.

Why: When a delivery is late or a check fails, there is nobody to tell.

Bad:
    support:
      - {channel: "#sales-questions", tool: slack, scope: interactive}

Good:
    support:
      - {channel: "#sales-data", tool: slack, scope: notifications}

Mend: Add an entry with `scope: notifications` under `support`.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, absence


def check(contract: Contract, _context: Context) -> Faults:
    if not any((channel.scope or "").lower() == "notifications" for channel in contract.support):
        message = "no support channel has the scope 'notifications'."
        mend = "Add '{channel: \"#…\", tool: slack, scope: notifications}' under 'support'."
        yield absence(contract, message, mend, "support")


RULE = Rule("missing-notification-channel", Severity.WARNING, __doc__, check, wish=True)
