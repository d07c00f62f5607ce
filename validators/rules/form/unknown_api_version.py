"""Missing or unknown ODCS version.

Why: A contract is validated against its own version of the standard. Without it, the meaning of its keys is
undefined.

Bad:
    apiVersion: 3.2.0

Good:
    apiVersion: v3.2.0

How to fix: Write `apiVersion: v3.2.0`, with the `v`.
"""

from dq.validators.rule import form_rule

RULE = form_rule("unknown-api-version", __doc__)
