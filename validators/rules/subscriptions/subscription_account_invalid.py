"""Invalid AWS account or principal of a consumer, or a mismatch between the two.

Why: A grant to a misspelt account fails, or gives the data to someone else.

Bad:
    consumer: {team: billing, account: '21098765432'}

Good:
    consumer:
      team: billing
      account: '210987654321'
      principal: arn:aws:iam::210987654321:role/billing-reader

How to fix: Write the account's 12 digits in quotes, and as `principal` the ARN of a role or user of that
account. Wildcards are not allowed.
"""

import re

from dq.validators.rule import (
    Rule,
    Severity,
    Subscription,
    SubscriptionContext,
    Violations,
    subscription_rule,
    violation,
)

_ACCOUNT = re.compile(r"[0-9]{12}")
_PRINCIPAL = re.compile(r"arn:aws[a-z-]*:iam::(?P<account>[0-9]{12}):(role|user)/[\w+=,.@/-]+", re.ASCII)


def check(subscription: Subscription, _context: SubscriptionContext) -> Violations:
    consumer = subscription.consumer
    account, principal = consumer.account, consumer.principal
    valid = account is None or _ACCOUNT.fullmatch(account) is not None
    if not valid:
        yield violation(
            consumer, "account", f"invalid AWS account {account!r}.", "Write its 12 digits in quotes."
        )
    if principal is None:
        return
    match = _PRINCIPAL.fullmatch(principal)
    if match is None:
        message = f"{principal!r} is not the ARN of a role or user."
        hint = "Write an ARN, e.g. arn:aws:iam::210987654321:role/billing-reader."
        yield violation(consumer, "principal", message, hint)
    elif valid and account is not None and match["account"] != account:
        message = f"the principal is in account {match['account']}, but the consumer's account is {account}."
        yield violation(consumer, "principal", message, "Correct one of the two.")


RULE: Rule = subscription_rule("subscription-account-invalid", Severity.ERROR, __doc__, check)
