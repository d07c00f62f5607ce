"""A delivery must bring a partition of a column that is no partition key.

Why: Its folder would never exist, and the delivery would always be missing.

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

Mend: Name a column with `partitioned: true`, or mark the column so.
"""

from datetime import datetime

from dq.validators.rule import Faults, Rule, Severity, Slo, fault, of_each, suggestion


def judge(slo: Slo, _now: datetime) -> Faults:
    keys = [key.column for key in slo.object.partition_keys()]
    for column in slo.partition:
        if column not in keys:
            has = ", ".join(keys) or "none"
            message = f"{column!r} is no partition key of {slo.object.name}, which has {has}."
            mend = suggestion(column, keys, "Mark the column with 'partitioned: true'.")
            needs = (slo.object.path("properties"), *(p.path("partitioned") for p in slo.object.properties))
            yield fault(slo.delivery, "partition", message, mend, needs=needs)


RULE = Rule("partition-not-a-key", Severity.ERROR, __doc__, of_each(judge))
