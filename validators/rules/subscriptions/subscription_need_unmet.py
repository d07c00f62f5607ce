"""Consumer that needs more than the contract promises.

Why: The consumer relies on a time or a rule that nobody has promised, and is only notified when the promise
is broken.

Bad:
    needs: {quality: [orders.amount.required]}

Good:
    needs: {quality: [orders.amount.logicalType]}

How to fix: Agree with the owners on an earlier delivery or another rule, and change the contract; or write
what it promises. Grace counts: a delivery due at 07:00 with 45 minutes of grace is promised by 07:45.
"""

from dq.validators.rule import (
    Rule,
    Severity,
    Subscription,
    SubscriptionContext,
    Violations,
    item_violation,
    subscription_rule,
    violation,
)


def check(subscription: Subscription, context: SubscriptionContext) -> Violations:
    contract, needs = context.contract(subscription), subscription.needs
    if contract is None or needs is None:
        return
    # Imported here: most runs have no subscriptions.
    from dq.contracts.needs import late_promises, needed_clauses, similar_clause

    for entry in needed_clauses(subscription, contract):
        if not entry.clauses:
            similar = similar_clause(entry.text, contract)
            hint = f"Did you mean {similar!r}?" if similar else "Write e.g. orders.amount.required."
            message = f"{contract.id!r} has no clause {entry.text!r}."
            yield item_violation(needs, "quality", entry.index, message, hint)
    for late in late_promises(subscription, contract, context.today):
        team = subscription.consumer.team
        message = (
            f"{team} needs {late.object_name} by {needs.by} {needs.timezone}, but {late.describe(needs)}."
        )
        hint = "Agree on an earlier delivery with the owners, or write the time that is promised."
        yield violation(needs, "by", message, hint)


RULE: Rule = subscription_rule("subscription-need-unmet", Severity.WARNING, __doc__, check)
