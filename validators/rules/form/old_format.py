"""Format that ODCS 3 has replaced.

Why: ODCS 2 and the Data Contract Specification use other keys; reading them as ODCS 3 would only produce
misleading findings.

Bad:
    apiVersion: v2.2.2

Good:
    apiVersion: v3.2.0

How to fix: Convert the contract once, and keep the result.
"""

from dq.validators.rule import form_rule

RULE = form_rule("old-format", __doc__)
