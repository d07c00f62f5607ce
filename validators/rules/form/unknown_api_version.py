"""The contract does not say which version of ODCS it follows, or names one that does not exist.

Why: A contract is judged by its own version of the standard. Without one, nobody knows what its keys mean.

Bad:
    apiVersion: 3.2.0

Good:
    apiVersion: v3.2.0

Mend: Write `apiVersion: v3.2.0`, with the `v`.
"""

from dq.validators.rule import form

RULE = form("unknown-api-version", __doc__)
