"""A subscription names a contract, or a major version of one, that the registry does not have.

Why: The consumer waits for something that nobody promises, and is not told when the real contract changes.

Bad:
    major: 2

Good:
    major: 1

Mend: Write the `id` of the contract, and the first number of its `version`. Where a major version was taken
out of the registry, move its consumers to the next one first.
"""

from dq.validators.rule import (
    Faults,
    Rule,
    Severity,
    Subscribed,
    Subscription,
    fault,
    of_subscription,
    suggestion,
)


def subscribed(one: Subscription, among: Subscribed) -> Faults:
    if among.contract(one) is not None or one.contract in among.unclear:
        return
    majors = among.majors(one.contract)
    if majors:
        message = f"{one.contract!r} has no major version {one.major}; it has {', '.join(majors)}."
        yield fault(one, "major", message, f"Write major: {majors[-1]}.")
        return
    mend = suggestion(one.contract, among.ids, "Write the 'id' of a contract of this registry.")
    yield fault(one, "contract", f"there is no contract {one.contract!r}.", mend)


RULE: Rule = of_subscription("subscription-contract-unknown", Severity.ERROR, __doc__, subscribed)
