"""Nested field as a partition column.

Why: Hive, Glue and Spark partition a table by its top-level columns, never by a field of a struct.

Bad:
    schema:
      - name: orders
        properties:
          - name: placed
            logicalType: object
            properties:
              - {name: day, logicalType: date, partitioned: true}

Good:
    schema:
      - name: orders
        properties:
          - {name: placed_day, logicalType: date, partitioned: true}
          - name: placed
            logicalType: object
            properties:
              - {name: day, logicalType: date}

How to fix: Add a top-level column with the value, and partition by it.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation


def check(_contract: Contract, context: Context) -> Violations:
    for column in context.walk.columns:
        if column.property.partitioned and not column.is_top_level:
            message = f"{column.property.name or 'an item'!r} is nested in another property."
            yield violation(
                column.property, "partitioned", message, "Partition by a top-level column of the object."
            )


RULE = Rule("partition-column-nested", Severity.WARNING, __doc__, check)
