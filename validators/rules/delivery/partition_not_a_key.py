"""Delivery partition with a column that is not a partition key.

Why: Its folder would never exist, so the delivery would always be missing.

Bad:
    schema:
      - name: orders
        properties:
          - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
    slaProperties:
      - id: daily
        property: frequency
        value: 1
        unit: d
        element: orders
        schedule: "0 6 * * *"
        customProperties:
          - property: delivery
            vendor: dq
            value: {partition: {date: "{due:%F}"}}

Good:
    schema:
      - name: orders
        properties:
          - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
    slaProperties:
      - id: daily
        property: frequency
        value: 1
        unit: d
        element: orders
        schedule: "0 6 * * *"
        customProperties:
          - property: delivery
            vendor: dq
            value: {partition: {day: "{due:%F}"}}

How to fix: Use a column with `partitioned: true`, or set it on this column.
"""

from datetime import datetime

from dq.validators.rule import Rule, Severity, Slo, Violations, slo_check, suggestion, violation


def evaluate(slo: Slo, _now: datetime) -> Violations:
    keys = [key.column for key in slo.object.partition_keys()]
    for column in slo.partition:
        if column not in keys:
            names = ", ".join(keys) or "none"
            message = f"{column!r} is not a partition key of {slo.object.name}; its partition keys: {names}."
            hint = suggestion(column, keys, "Set 'partitioned: true' on the column.")
            needs = (slo.object.path("properties"), *(p.path("partitioned") for p in slo.object.properties))
            yield violation(slo.delivery, "partition", message, hint, needs=needs)


RULE = Rule("partition-not-a-key", Severity.ERROR, __doc__, slo_check(evaluate))
