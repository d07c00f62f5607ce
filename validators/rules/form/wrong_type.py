"""Value with the wrong type.

Why: YAML reads `yes`, `1.10` and `2026-01-31` as a boolean, a number and a date. Tools that convert them back
do so differently.

Bad:
    version: 1.2

Good:
    version: "1.2.0"

How to fix: Put strings in quotes; remove the quotes from numbers and booleans.
"""

from dq.validators.rule import form_rule

RULE = form_rule("wrong-type", __doc__)
