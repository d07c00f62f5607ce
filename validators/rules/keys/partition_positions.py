"""Partition column positions that are not 1 to n.

Why: The order of the partition columns is the order of the folders in the lake. If positions are missing or
duplicated, each tool writes and looks for the data in a different place.

Bad:
    schema:
      - name: orders
        properties:
          - {name: order_date, logicalType: date, partitioned: true, partitionKeyPosition: 1}
          - {name: country, logicalType: string, partitioned: true, partitionKeyPosition: 3}

Good:
    schema:
      - name: orders
        properties:
          - {name: order_date, logicalType: date, partitioned: true, partitionKeyPosition: 1}
          - {name: country, logicalType: string, partitioned: true, partitionKeyPosition: 2}

How to fix: Number the partition columns 1, 2, 3 … in the order of the folders.
"""

from dq.validators.rule import PARTITION, Rule, Severity, key_position_check

RULE = Rule("partition-positions", Severity.WARNING, __doc__, key_position_check(PARTITION))
