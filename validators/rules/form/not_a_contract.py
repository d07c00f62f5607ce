"""Document that is empty, a list or a single value.

Why: A contract is a mapping of keys to values; nothing else can be validated.

Bad:
    ---
    - orders
    - payments

Good:
    name: Orders

How to fix: Start with `apiVersion: v3.2.0` and `kind: DataContract`, or create a skeleton with `dq init`.
"""

from dq.validators.rule import form_rule

RULE = form_rule("not-a-contract", __doc__)
