"""A subscription names a column or a tag that its contract does not have.

Why: No grant can be given for it, and nobody is told when the column that was meant changes.

Bad:
    columns: [orders.amuont]

Good:
    columns: [orders.amount]

Mend: Write `object.column` as the contract's schema names them; an object alone means all of its columns.
"""

from dq.contracts.subscriptions import unknown_columns, unknown_tags
from dq.validators.rule import Faults, Rule, Severity, Subscribed, Subscription, item_fault, of_subscription


def subscribed(one: Subscription, among: Subscribed) -> Faults:
    contract = among.contract(one)
    if contract is None:
        return
    for index, name, hint in unknown_columns(one, contract):
        message = f"{one.contract!r} has no {name!r}."
        mend = f"Did you mean {hint!r}?" if hint else "Write object.column as the schema names them."
        yield item_fault(one, "columns", index, message, mend)
    for index, tag, hint in unknown_tags(one, contract):
        message = f"nothing in {one.contract!r} has the tag {tag!r}."
        mend = f"Did you mean {hint!r}?" if hint else "Name the columns, or tag them in the contract."
        yield item_fault(one, "tags", index, message, mend)


RULE: Rule = of_subscription("subscription-column-unknown", Severity.ERROR, __doc__, subscribed)
