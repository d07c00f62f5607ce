"""Contract without a notification channel.

Why: If a delivery is late or a check fails, no one is notified.

Bad:
    support:
      - {channel: "#sales-questions", tool: slack, scope: interactive}

Good:
    support:
      - {channel: "#sales-data", tool: slack, scope: notifications}

How to fix: Add an entry with `scope: notifications` under `support`.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, missing_key


def check(contract: Contract, _context: Context) -> Violations:
    if not any((channel.scope or "").lower() == "notifications" for channel in contract.support):
        message = "no support channel has the scope 'notifications'."
        hint = "Add '{channel: \"#…\", tool: slack, scope: notifications}' under 'support'."
        yield missing_key(contract, message, hint, "support")


RULE = Rule("missing-notification-channel", Severity.WARNING, __doc__, check, opt_in=True)
