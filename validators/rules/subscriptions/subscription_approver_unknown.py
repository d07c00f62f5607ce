"""A subscription names an approver who is no owner, steward or approver of the contract.

Why: Otherwise the team that asks for access approves it itself, and `dq register` grants it. With `--base`,
the contract at the base decides, so that a branch cannot make its author an owner.

Bad:
    approvers: [billing@example.com]

Good:
    approvers: [ana@example.com]

Mend: Name the contract's team, a member of it whose role is owner, steward or approver, or an approver of one
of its roles. A new approver is merged into the contract first.
"""

from dq.contracts.subscriptions import approvers, is_approver
from dq.validators.rule import Faults, Rule, Severity, Subscribed, Subscription, item_fault, of_subscription


def subscribed(one: Subscription, among: Subscribed) -> Faults:
    contract = among.approving_contract(one)
    if contract is None:
        return
    known = approvers(contract, one.start_date)
    names = ", ".join(known[:3])
    for index, name in enumerate(one.approvers):
        if is_approver(name, contract, one.start_date):
            continue
        if known:
            message = f"{name!r} is not an owner, steward or approver of contract {contract.id!r}."
            mend = f"Name someone who is, e.g. {names}."
        else:
            message = f"Contract {contract.id!r} names no owner, steward or approver, so {name!r} is none."
            mend = "Add one to the contract's 'team' first: {username: NAME, role: owner}."
        yield item_fault(one, "approvers", index, message, mend)


RULE: Rule = of_subscription("subscription-approver-unknown", Severity.ERROR, __doc__, subscribed)
