"""Value that ODCS does not allow for this key.

Why: Tools ignore a clause with a value that they do not know.

Bad:
    schema:
      - name: orders
        properties:
          - name: order_id
            logicalType: strng

Good:
    schema:
      - name: orders
        properties:
          - name: order_id
            logicalType: string

How to fix: Use one of the allowed values.
"""

from dq.validators.rule import form_rule

RULE = form_rule("unknown-value", __doc__)
