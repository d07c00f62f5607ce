"""Overlapping subscriptions with the same consumer, contract and purpose.

Why: If one is changed or ended and the other is forgotten, the use continues although it should have ended.

Bad:
    purpose: the invoices of each month.
    columns: [orders.order_id]

Good:
    purpose: The report to the tax office.
    columns: [orders.order_id]

How to fix: Put the columns into one file, or describe in `purpose` how the two uses differ.
"""

from datetime import date

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
    earlier = True
    for other in context.subscriptions:
        if other is subscription:
            earlier = False
            continue
        # The later of two is reported; the earlier only if the later is not validated.
        if (
            (earlier or other.file not in context.reported_files)
            and _key(subscription) == _key(other)
            and _overlap(subscription, other)
        ):
            message = f"{other.file} has the same consumer, contract and purpose."
            yield violation(
                subscription,
                "purpose",
                message,
                "Put the columns into one file, or write different purposes.",
            )
            return


def _key(subscription: Subscription) -> tuple[object, ...]:
    consumer = subscription.consumer
    purpose = " ".join(subscription.purpose.casefold().split())
    return subscription.identity, consumer.team, consumer.account, consumer.principal, purpose


def _overlap(subscription: Subscription, other: Subscription) -> bool:
    ends = (subscription.end_date or date.max, other.end_date or date.max)
    return subscription.start_date <= ends[1] and other.start_date <= ends[0]


RULE: Rule = subscription_rule("subscription-duplicate", Severity.ERROR, __doc__, check)
