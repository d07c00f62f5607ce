"""Unknown key.

Why: A misspelt key has no effect and is never checked, although its author believes that it is.

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

How to fix: Correct the spelling. Put your own keys under `customProperties`.
"""

from dq.validators.rule import form_rule

RULE = form_rule("unknown-key", __doc__)
