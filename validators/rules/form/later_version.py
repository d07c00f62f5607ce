"""A key or value arrives only in a later version of ODCS than the contract follows.

Why: A tool that reads the contract by its own version refuses it, or passes over the promise.

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

Mend: Raise `apiVersion`, or leave the key out.
"""

from dq.validators.rule import form

RULE = form("later-version", __doc__)
