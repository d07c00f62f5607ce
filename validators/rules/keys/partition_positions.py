"""The positions of the partition columns are not 1 to n.

Why: The order of the partition columns is the order of the folders in the lake. With a gap, a twin or none,
each tool would write and look for the data in another place.

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

Mend: Number the partition columns 1, 2, 3 … in the order of the folders.
"""

from dq.validators.rule import PARTITION, Rule, Severity, of_key

RULE = Rule("partition-positions", Severity.WARNING, __doc__, of_key(PARTITION))
