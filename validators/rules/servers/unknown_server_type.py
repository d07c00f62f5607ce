"""Unknown server type.

Why: The location of the data is unknown, so no tool can check or register it.

Bad:
    servers:
      - server: lake
        type: s4
        location: s3://sales/orders

Good:
    servers:
      - server: lake
        type: s3
        location: s3://sales/orders

How to fix: Use a type of ODCS, or `custom` for a type that ODCS does not have.
"""

from dq.validators.rule import form_rule

RULE = form_rule("unknown-server-type", __doc__)
