"""Primary key positions that are not 1 to n.

Why: The order of the columns is part of the key for consumers that join or sort by it.

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

How to fix: Number the columns of the primary key 1, 2, 3 … in key order.
"""

from dq.validators.rule import PRIMARY, Rule, Severity, key_position_check

RULE = Rule("primary-key-positions", Severity.WARNING, __doc__, key_position_check(PRIMARY))
