"""Subscription that ends before it starts.

Why: It is never active: nothing is granted, and the consumer is not listed when the contract changes.

Bad:
    startDate: 2027-01-01
    endDate: 2026-12-31

Good:
    startDate: 2026-01-01
    endDate: 2027-12-31

How to fix: Correct one of the two dates; both are inclusive.
"""

from dq.validators.rule import (
    Rule,
    Severity,
    Subscription,
    SubscriptionContext,
    Violations,
    subscription_rule,
    violation,
)


def check(subscription: Subscription, _context: SubscriptionContext) -> Violations:
    if subscription.end_date is not None and subscription.end_date < subscription.start_date:
        message = f"endDate {subscription.end_date} is before startDate {subscription.start_date}."
        yield violation(subscription, "endDate", message, "Correct startDate or endDate.")


RULE: Rule = subscription_rule("subscription-dates-reversed", Severity.ERROR, __doc__, check)
