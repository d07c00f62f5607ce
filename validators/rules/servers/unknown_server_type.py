"""A server is of a type that ODCS does not know.

Why: Nobody can tell where the data lies, so that no tool can check or register it.

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

Mend: Use a type of ODCS, or `custom` for one that it does not name.
"""

from dq.validators.rule import form

RULE = form("unknown-server-type", __doc__)
