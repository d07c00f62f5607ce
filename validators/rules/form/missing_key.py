"""A key is missing that ODCS requires at this place.

Why: Without it the element has no meaning, or no identity that anything could refer to.

Bad:
    support:
      - tool: slack
        scope: notifications

Good:
    support:
      - channel: "#sales-data"
        tool: slack
        scope: notifications

Mend: Add the key.
"""

from dq.validators.rule import form

RULE = form("missing-key", __doc__)
