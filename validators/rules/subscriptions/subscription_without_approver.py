"""A subscription is about columns of personal or restricted data, and nobody has approved it.

Why: Who may read such data, and for which purpose, is for the producer to decide, and has to be found again
when somebody asks.

Bad:
    columns: [orders.order_id, orders.email]

Good:
    columns: [orders.order_id, orders.email]
    approvers: [ana@example.com]

Mend: Ask the contract's owner, and name them under `approvers`; or leave the columns out. Without `columns`
and `tags`, a subscription is about every column.
"""

from dq.contracts.subscriptions import covered
from dq.validators.rule import (
    Argument,
    Fault,
    Faults,
    Rule,
    Severity,
    Subscribed,
    Subscription,
    of_subscription,
)

CLASSES = Argument(
    "classifications",
    ("pii", "personal", "sensitive", "restricted", "confidential"),
    "The classifications that ask for an approver, in any case.",
)


def subscribed(one: Subscription, among: Subscribed) -> Faults:
    contract = among.contract(one)
    if contract is None or one.approvers:
        return
    classes = {word.lower() for word in among.value(CLASSES)}
    for part in covered(one, contract):
        found = next((p for p in part.every() if (p.classification or "").lower() in classes), None)
        if found is not None:
            name = f"{part.object.name}.{found.name or found.column or 'an item'}"
            message = f"{name} is {found.classification}, and nobody has approved this use."
            key = "columns" if one.columns else "tags" if one.tags else "contract"
            mend = "Add 'approvers: [NAME]' with who agreed for the producer, or leave the column out."
            yield Fault(one.at(key), message, mend, one.path(key))
            return


RULE: Rule = of_subscription(
    "subscription-without-approver", Severity.ERROR, __doc__, subscribed, arguments=(CLASSES,)
)
