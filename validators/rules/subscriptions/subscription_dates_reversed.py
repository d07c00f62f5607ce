"""A subscription ends before it begins.

Why: It never holds: no grant is given, and no change of the contract names the consumer.

Bad:
    startDate: 2027-01-01
    endDate: 2026-12-31

Good:
    startDate: 2026-01-01
    endDate: 2027-12-31

Mend: Correct one of the two days; both belong to the subscription.
"""

from dq.validators.rule import Faults, Rule, Severity, Subscribed, Subscription, fault, of_subscription


def subscribed(one: Subscription, _among: Subscribed) -> Faults:
    if one.end_date is not None and one.end_date < one.start_date:
        message = f"it ends on {one.end_date}, before it begins on {one.start_date}."
        yield fault(one, "endDate", message, "Correct startDate or endDate.")


RULE: Rule = of_subscription("subscription-dates-reversed", Severity.ERROR, __doc__, subscribed)
