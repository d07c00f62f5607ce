"""Invalid delivery objective.

Why: The error budget is calculated from the objective.

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

How to fix: Write a percentage above 0 and up to 100, e.g. 95%.
"""

from dq.validators.rule import Rule, Severity, slo_finding_check

RULE = Rule("objective-invalid", Severity.ERROR, __doc__, slo_finding_check("objective-invalid"))
