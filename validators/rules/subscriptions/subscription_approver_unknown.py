"""Approver of a subscription who is not an owner, steward or approver of the contract.

Why: Otherwise the team that requests access could approve it itself, and `dq register` would grant it. With
`--base`, the contract at the base applies, so a branch cannot make its author an owner.

Bad:
    approvers: [billing@example.com]

Good:
    approvers: [ana@example.com]

How to fix: Name the contract's team, a member of it whose role is owner, steward or approver, or an approver
of one of its roles. Merge new approvers into the contract first.
"""

from dq.contracts.subscriptions import approvers, is_approver
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
    contract = context.approving_contract(subscription)
    if contract is None:
        return
    candidates = approvers(contract, subscription.start_date)
    names = ", ".join(candidates[:3])
    for index, name in enumerate(subscription.approvers):
        if is_approver(name, contract, subscription.start_date):
            continue
        if candidates:
            message = f"{name!r} is not an owner, steward or approver of contract {contract.id!r}."
            hint = f"Name someone who is, e.g. {names}."
        else:
            message = (
                f"contract {contract.id!r} has no owner, steward or approver, so {name!r} cannot approve."
            )
            hint = "Add one to the contract's 'team' first: {username: NAME, role: owner}."
        yield item_violation(subscription, "approvers", index, message, hint)


RULE: Rule = subscription_rule("subscription-approver-unknown", Severity.ERROR, __doc__, check)
