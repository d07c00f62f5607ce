"""The AWS account or the principal of a consumer is none, or the two do not fit.

Why: A grant to a misspelt account fails, or gives the data to somebody else.

Bad:
    consumer: {team: billing, account: '21098765432'}

Good:
    consumer:
      team: billing
      account: '210987654321'
      principal: arn:aws:iam::210987654321:role/billing-reader

Mend: Write the account's 12 digits in quotes, and as `principal` the ARN of a role or user of that account.
A wildcard is no principal.
"""

import re

from dq.validators.rule import Faults, Rule, Severity, Subscribed, Subscription, fault, of_subscription

_ACCOUNT = re.compile(r"[0-9]{12}")
_PRINCIPAL = re.compile(r"arn:aws[a-z-]*:iam::(?P<account>[0-9]{12}):(role|user)/[\w+=,.@/-]+", re.ASCII)


def subscribed(one: Subscription, _among: Subscribed) -> Faults:
    consumer = one.consumer
    account, principal = consumer.account, consumer.principal
    valid = account is None or _ACCOUNT.fullmatch(account) is not None
    if not valid:
        yield fault(consumer, "account", f"{account!r} is no account.", "Write its 12 digits in quotes.")
    if principal is None:
        return
    found = _PRINCIPAL.fullmatch(principal)
    if found is None:
        message = f"{principal!r} is no role and no user."
        mend = "Write an ARN such as arn:aws:iam::210987654321:role/billing-reader."
        yield fault(consumer, "principal", message, mend)
    elif valid and account is not None and found["account"] != account:
        message = f"the principal is of account {found['account']}, and the consumer's account is {account}."
        yield fault(consumer, "principal", message, "Correct one of the two.")


RULE: Rule = of_subscription("subscription-account-invalid", Severity.ERROR, __doc__, subscribed)
