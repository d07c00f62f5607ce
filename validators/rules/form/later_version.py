"""Key or value that requires a later ODCS version.

Why: Tools that support only the contract's `apiVersion` reject it, or ignore the key.

Bad:
    apiVersion: v3.1.0
    schema:
      - name: orders
        properties:
          - name: state
            logicalType: string
            enum: [{value: open}, {value: paid}]

Good:
    apiVersion: v3.2.0
    schema:
      - name: orders
        properties:
          - name: state
            logicalType: string
            enum: [{value: open}, {value: paid}]

How to fix: Raise `apiVersion`, or remove the key.
"""

from dq.validators.rule import form_rule

RULE = form_rule("later-version", __doc__)
