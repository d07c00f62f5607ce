"""The partition that a delivery must bring cannot be computed.

Why: Without it the watcher would look for data at a place where it never lies.

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

Mend: Write `{due:%Y-%m-%d}`, or with civil arithmetic `{due - 1d:%Y-%m-%d}`; units are m h d w mo y.
"""

from dq.validators.rule import Rule, Severity, of_promise

RULE = Rule("partition-template-invalid", Severity.ERROR, __doc__, of_promise("partition-template-invalid"))
