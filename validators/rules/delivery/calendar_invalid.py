"""Delivery calendar with unknown holidays or contradictions.

Why: dq could not tell which deliveries are due.

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
            value: {calendar: {holidays: [DE-XX]}}

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
            value: {calendar: {holidays: [DE-BY]}}

How to fix: Write ISO 3166 codes of a country or subdivision, e.g. DE or DE-BY, and each date in only one
list.
"""

from dq.validators.rule import Rule, Severity, slo_finding_check

RULE = Rule("calendar-invalid", Severity.ERROR, __doc__, slo_finding_check("calendar-invalid"))
