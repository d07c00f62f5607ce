"""A value is not one of those that ODCS allows at this place.

Why: Tools that meet a word they do not know ignore the promise that it makes.

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

Mend: Use one of the allowed words.
"""

from dq.validators.rule import form

RULE = form("unknown-value", __doc__)
