"""Expired waiver whose finding is not fixed.

Why: A waiver is a promise to fix something by a date. Without a reminder after that date it lasts forever.

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

How to fix: Fix the contract and remove the waiver, or have the waiver renewed with a new date.
"""

from dq.validators.rule import Severity, policy_rule

RULE = policy_rule("waiver-expired", Severity.ERROR, __doc__)
