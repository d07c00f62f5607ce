"""Missing key that ODCS requires.

Why: Without it the element has no meaning, or cannot be referenced.

Bad:
    support:
      - tool: slack
        scope: notifications

Good:
    support:
      - channel: "#sales-data"
        tool: slack
        scope: notifications

How to fix: Add the key.
"""

from dq.validators.rule import form_rule

RULE = form_rule("missing-key", __doc__)
