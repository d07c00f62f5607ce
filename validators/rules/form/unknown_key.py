"""A key is not one that ODCS knows at this place.

Why: A misspelt key promises nothing and is never checked, while its author believes that it is.

Bad:
    schema:
      - name: orders
        properties:
          - name: order_id
            requierd: true

Good:
    schema:
      - name: orders
        properties:
          - name: order_id
            required: true

Mend: Correct the spelling. What is your own goes under `customProperties`.
"""

from dq.validators.rule import form

RULE = form("unknown-key", __doc__)
