"""Invalid duration in a delivery.

Why: Without a valid duration, dq cannot tell when the delivery is late.

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
            value: {grace: 1 hour}

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
            value: {timezone: Europe/Berlin, grace: 1h}

How to fix: Write a whole number and a unit: 45m, 2h, 3d, 1w; or ISO 8601, e.g. PT45M.
"""

from dq.validators.rule import Rule, Severity, slo_finding_check

RULE = Rule("duration-invalid", Severity.ERROR, __doc__, slo_finding_check("duration-invalid"))
