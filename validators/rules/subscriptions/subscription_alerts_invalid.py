"""Invalid alert channel of a subscription.

Why: The consumer would not be notified of breaches, or at once at night.

Bad:
    alerts: {channel: "#billing", tool: slak}

Good:
    alerts: {channel: "#billing", tool: slack, escalateAfter: 30m}

How to fix: Write a channel as under `support` in a contract, durations like 30m or 2h, quiet hours like
"22:00-07:00", and a time zone of the tz database. The operator of the watcher can restrict channels further.
"""

from dq.contracts.access.alert_target import TOOLS, parse_terms, target_problem
from dq.validators.rule import (
    Rule,
    Severity,
    Subscription,
    SubscriptionContext,
    Violation,
    Violations,
    subscription_rule,
    suggestion,
    violation,
)


def check(subscription: Subscription, _context: SubscriptionContext) -> Violations:
    alerts = subscription.alerts
    if alerts is None:
        return
    if alerts.tool not in TOOLS:
        hint = suggestion(alerts.tool, TOOLS, f"Write one of {', '.join(TOOLS)}.")
        yield violation(alerts, "tool", f"dq has no channel {alerts.tool!r}.", hint)
    problem = target_problem(alerts.tool, alerts.channel)
    if problem is not None:
        yield violation(alerts, "channel", f"{problem.message}.", problem.hint)
    for finding in parse_terms(alerts)[1]:
        yield Violation(finding.at, finding.message, finding.hint, finding.path)


RULE: Rule = subscription_rule("subscription-alerts-invalid", Severity.ERROR, __doc__, check)
