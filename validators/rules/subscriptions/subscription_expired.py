"""Expired subscription.

Why: Its consumer is no longer listed when the contract changes, and `dq register` revokes its grants. If the
use continues, it is not approved.

Bad:
    endDate: 2026-06-30

Good:
    endDate: 2120-06-30

How to fix: Agree on a later `endDate`, or remove the file. If `dq register` manages its grants, let it revoke
them first.
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


def check(subscription: Subscription, context: SubscriptionContext) -> Violations:
    reversed_ = subscription.end_date is not None and subscription.end_date < subscription.start_date
    if subscription.is_expired(context.today) and not reversed_:
        message = f"the subscription of {subscription.consumer.team!r} expired after {subscription.end_date}."
        yield violation(subscription, "endDate", message, "Agree on a later endDate, or remove the file.")


RULE: Rule = subscription_rule("subscription-expired", Severity.WARNING, __doc__, check)
