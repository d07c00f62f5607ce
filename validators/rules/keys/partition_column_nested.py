"""A field inside another property is declared a partition column.

Why: Hive, Glue and Spark partition a table by its own columns, never by a field of a struct.

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

Mend: Make the value a column of the object, and partition by that.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault


def check(_contract: Contract, context: Context) -> Faults:
    for column in context.walk.columns:
        if column.property.partitioned and not column.top:
            message = f"{column.property.name or 'an item'!r} lies inside another property."
            yield fault(
                column.property, "partitioned", message, "Partition by a column of the object itself."
            )


RULE = Rule("partition-column-nested", Severity.WARNING, __doc__, check)
