"""The objective of a delivery is not a share of its cycles.

Why: The error budget is counted from it.

Bad:
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
            value: {objective: most}

Good:
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
            value: {objective: 95%}

Mend: Write a percentage above 0 and up to 100, such as 95%.
"""

from dq.validators.rule import Rule, Severity, of_promise

RULE = Rule("objective-invalid", Severity.ERROR, __doc__, of_promise("objective-invalid"))
