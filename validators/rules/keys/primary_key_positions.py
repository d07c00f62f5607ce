"""The positions of the primary key's columns are not 1 to n.

Why: The order of a key is part of it, for those who join and sort by it.

Bad:
    schema:
      - name: orders
        properties:
          - {name: country, logicalType: string, primaryKey: true, primaryKeyPosition: 1}
          - {name: order_id, logicalType: string, primaryKey: true, primaryKeyPosition: 1}

Good:
    schema:
      - name: orders
        properties:
          - {name: country, logicalType: string, primaryKey: true, primaryKeyPosition: 1}
          - {name: order_id, logicalType: string, primaryKey: true, primaryKeyPosition: 2}

Mend: Number the columns of the primary key 1, 2, 3 … in their order.
"""

from dq.validators.rule import PRIMARY, Rule, Severity, of_key

RULE = Rule("primary-key-positions", Severity.WARNING, __doc__, of_key(PRIMARY))
