"""The document is empty, a list or a single value.

Why: A contract is a mapping from keys to values; there is nothing to validate in anything else.

Bad:
    ---
    - orders
    - payments

Good:
    name: Orders

Mend: Begin with `apiVersion: v3.2.0` and `kind: DataContract`, or let `dq init` write the skeleton.
"""

from dq.validators.rule import form

RULE = form("not-a-contract", __doc__)
