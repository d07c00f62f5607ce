"""The file follows a format that ODCS 3 has replaced.

Why: ODCS 2 and the Data Contract Specification have other keys; reading them as ODCS 3 would only give
misleading findings.

Bad:
    apiVersion: v2.2.2

Good:
    apiVersion: v3.2.0

Mend: Convert the contract once, and keep the result.
"""

from dq.validators.rule import form

RULE = form("old-format", __doc__)
