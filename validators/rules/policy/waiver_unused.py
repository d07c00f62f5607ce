"""Unused waiver: the contract has no such finding.

Why: The finding may have been fixed, the path may be misspelt, or an element may have been inserted before
it. A leftover waiver would hide the next finding at the same path.

Bad:
    waivers:
      - rule: status-unknown
        contract: orders
        path: status
        reason: The portal still writes the old word.
        by: ana@example.com
        expires: 2120-06-30

Good:
    waivers: []

How to fix: Remove it, or copy rule and path from `dq validate --format json`. Waivers of contracts that were
not read in this run are not checked.
"""

from dq.validators.rule import Severity, policy_rule

RULE = policy_rule("waiver-unused", Severity.WARNING, __doc__)
