"""Subscription to personal or restricted data without an approver.

Why: The producer decides who may read such data and for which purpose, and the decision must be documented
for audits.

Bad:
    columns: [orders.order_id, orders.email]

Good:
    columns: [orders.order_id, orders.email]
    approvers: [ana@example.com]

How to fix: Ask the contract's owner, and list them under `approvers`; or remove the columns. Without
`columns` and `tags`, a subscription covers every column.
"""

from dq.contracts.subscriptions import covered_objects
from dq.validators.rule import (
    Argument,
    Rule,
    Severity,
    Subscription,
    SubscriptionContext,
    Violation,
    Violations,
    subscription_rule,
)

CLASSES = Argument(
    "classifications",
    ("pii", "personal", "sensitive", "restricted", "confidential"),
    "Classifications that require an approver, case-insensitive.",
)


def check(subscription: Subscription, context: SubscriptionContext) -> Violations:
    contract = context.contract(subscription)
    if contract is None or subscription.approvers:
        return
    classes = {word.lower() for word in context.value(CLASSES)}
    for part in covered_objects(subscription, contract):
        prop = next((p for p in part.walk_properties() if (p.classification or "").lower() in classes), None)
        if prop is not None:
            name = f"{part.object.name}.{prop.name or prop.column or 'an item'}"
            message = f"{name} is {prop.classification}, but this use has no approver."
            key = "columns" if subscription.columns else "tags" if subscription.tags else "contract"
            hint = "Add 'approvers: [NAME]' with the producer's approver, or remove the column."
            yield Violation(subscription.locate(key), message, hint, subscription.path(key))
            return


RULE: Rule = subscription_rule(
    "subscription-without-approver", Severity.ERROR, __doc__, check, arguments=(CLASSES,)
)
