"""A subscription is over.

Why: Its consumer is no longer named when the contract changes, and `dq register` takes its grants back. If
the use goes on, nobody has agreed to that.

Bad:
    endDate: 2026-06-30

Good:
    endDate: 2120-06-30

Mend: Agree on a later `endDate`, or remove the file. Where `dq register` keeps grants, let it take them back
first.
"""

from dq.validators.rule import Faults, Rule, Severity, Subscribed, Subscription, fault, of_subscription


def subscribed(one: Subscription, among: Subscribed) -> Faults:
    reversed_ = one.end_date is not None and one.end_date < one.start_date
    if one.over(among.today) and not reversed_:
        message = f"the subscription of {one.consumer.team!r} was over after {one.end_date}."
        yield fault(one, "endDate", message, "Agree on a later endDate, or remove the file.")


RULE: Rule = of_subscription("subscription-expired", Severity.WARNING, __doc__, subscribed)
