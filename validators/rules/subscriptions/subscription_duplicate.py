"""Two subscriptions say the same: one consumer, one contract and one purpose, at the same time.

Why: One of them is changed or ended and the other is forgotten, so the use goes on that was meant to end.

Bad:
    purpose: the invoices of each month.
    columns: [orders.order_id]

Good:
    purpose: The report to the tax office.
    columns: [orders.order_id]

Mend: Put the columns into one file, or say in `purpose` how the two uses differ.
"""

from datetime import date

from dq.validators.rule import Faults, Rule, Severity, Subscribed, Subscription, fault, of_subscription


def subscribed(one: Subscription, among: Subscribed) -> Faults:
    earlier = True
    for other in among.every:
        if other is one:
            earlier = False
            continue
        # Of two, the later is told; the earlier only where nobody looks at the later.
        if (earlier or other.file not in among.told) and _key(one) == _key(other) and _meet(one, other):
            message = f"{other.file} has the same consumer, contract and purpose."
            yield fault(one, "purpose", message, "Put the columns into one file, or tell the purposes apart.")
            return


def _key(one: Subscription) -> tuple[object, ...]:
    consumer = one.consumer
    purpose = " ".join(one.purpose.casefold().split())
    return one.identity, consumer.team, consumer.account, consumer.principal, purpose


def _meet(one: Subscription, other: Subscription) -> bool:
    ends = (one.end_date or date.max, other.end_date or date.max)
    return one.start_date <= ends[1] and other.start_date <= ends[0]


RULE: Rule = of_subscription("subscription-duplicate", Severity.ERROR, __doc__, subscribed)
