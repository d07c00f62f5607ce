"""Invalid partition template of a delivery.

Why: Without a valid partition, the watcher would look for data where it never is.

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
            value: {partition: {day: "{due - 1 day:%Y-%m-%d}"}}

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
            value: {partition: {day: "{due - 1d:%Y-%m-%d}"}}

How to fix: Write `{due:%Y-%m-%d}`, or with calendar arithmetic `{due - 1d:%Y-%m-%d}`; units are m h d w mo y.
"""

from dq.validators.rule import Rule, Severity, slo_finding_check

RULE = Rule(
    "partition-template-invalid", Severity.ERROR, __doc__, slo_finding_check("partition-template-invalid")
)
