"""A waiver of the policy has ended, and what it waived is not mended.

Why: A waiver is a promise to mend something until a day. When nobody is told that the day has passed, it is
for ever.

Bad:
    waivers:
      - rule: status-unknown
        contract: orders
        path: status
        reason: The portal still writes the old word.
        by: ana@example.com
        expires: 2020-06-30

Good:
    waivers:
      - rule: status-unknown
        contract: returns
        path: status
        reason: The portal still writes the old word.
        by: ana@example.com
        expires: 2120-06-30

Mend: Mend the contract and remove the waiver, or have it given again with a new day.
"""

from dq.validators.rule import Severity, of_policy

RULE = of_policy("waiver-expired", Severity.ERROR, __doc__)
