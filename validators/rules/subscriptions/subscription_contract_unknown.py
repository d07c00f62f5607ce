"""Unknown contract or major version in a subscription.

Why: The consumer relies on a contract that does not exist, and is not notified when the intended one changes.

Bad:
    major: 2

Good:
    major: 1

How to fix: Write the `id` of the contract, and the first number of its `version`. Before removing a
major version from the registry, move its consumers to the next one.
"""

from dq.validators.rule import (
    Rule,
    Severity,
    Subscription,
    SubscriptionContext,
    Violations,
    subscription_rule,
    suggestion,
    violation,
)


def check(subscription: Subscription, context: SubscriptionContext) -> Violations:
    if context.contract(subscription) is not None or subscription.contract in context.unreadable_ids:
        return
    majors = context.majors(subscription.contract)
    if majors:
        message = (
            f"{subscription.contract!r} has no major version {subscription.major}; it has "
            f"{', '.join(majors)}."
        )
        yield violation(subscription, "major", message, f"Write major: {majors[-1]}.")
        return
    hint = suggestion(subscription.contract, context.ids, "Write the 'id' of a contract of this registry.")
    yield violation(subscription, "contract", f"unknown contract {subscription.contract!r}.", hint)


RULE: Rule = subscription_rule("subscription-contract-unknown", Severity.ERROR, __doc__, check)
