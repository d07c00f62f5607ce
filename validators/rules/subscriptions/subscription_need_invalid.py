"""Invalid time or time zone in the needs of a subscription.

Why: Nobody can compare the promise of the producer with it.

Bad:
    needs: {timezone: Europe/Berln}

Good:
    needs: {timezone: Europe/Berlin}

How to fix: Write hours and minutes in quotes, e.g. "07:30", and a time zone of the tz database. "07:30+1d" is
on the day after the delivery is due.
"""

from dq.validators.rule import (
    Rule,
    Severity,
    Subscription,
    SubscriptionContext,
    Violations,
    subscription_rule,
    violation,
)


def check(subscription: Subscription, _context: SubscriptionContext) -> Violations:
    if subscription.needs is None:
        return
    # Imported here: most runs have no subscriptions.
    from dq.contracts.needs import needs_problem

    problem = needs_problem(subscription.needs)
    if problem is not None:
        yield violation(subscription.needs, problem[0], problem[1].message, problem[1].hint)


RULE: Rule = subscription_rule("subscription-need-invalid", Severity.ERROR, __doc__, check)
