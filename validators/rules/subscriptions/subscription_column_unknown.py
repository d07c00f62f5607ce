"""Unknown column or tag in a subscription.

Why: It cannot be granted, and the consumer is not notified when the intended column changes.

Bad:
    columns: [orders.amuont]

Good:
    columns: [orders.amount]

How to fix: Write `object.column` with the names of the contract's schema; an object alone means all of its
columns.
"""

from dq.contracts.subscriptions import unknown_columns, unknown_tags
from dq.validators.rule import (
    Rule,
    Severity,
    Subscription,
    SubscriptionContext,
    Violations,
    item_violation,
    subscription_rule,
)


def check(subscription: Subscription, context: SubscriptionContext) -> Violations:
    contract = context.contract(subscription)
    if contract is None:
        return
    for index, name, similar in unknown_columns(subscription, contract):
        message = f"{subscription.contract!r} has no {name!r}."
        hint = (
            f"Did you mean {similar!r}?" if similar else "Write object.column with the names of the schema."
        )
        yield item_violation(subscription, "columns", index, message, hint)
    for index, tag, similar in unknown_tags(subscription, contract):
        message = f"nothing in {subscription.contract!r} has the tag {tag!r}."
        hint = f"Did you mean {similar!r}?" if similar else "Name the columns, or tag them in the contract."
        yield item_violation(subscription, "tags", index, message, hint)


RULE: Rule = subscription_rule("subscription-column-unknown", Severity.ERROR, __doc__, check)
