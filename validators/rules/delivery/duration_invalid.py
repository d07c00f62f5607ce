"""A length of time in a delivery cannot be understood.

Why: A grace that nobody can read is no grace.

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

Mend: Write a whole number and a unit: 45m, 2h, 3d, 1w; or ISO 8601, such as PT45M.
"""

from dq.validators.rule import Rule, Severity, of_promise

RULE = Rule("duration-invalid", Severity.ERROR, __doc__, of_promise("duration-invalid"))
