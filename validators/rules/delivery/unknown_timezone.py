"""Unknown time zone in a delivery.

Why: A due time of 06:00 is only defined together with a time zone.

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
            value: {timezone: Europe/Berln}

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

How to fix: Write a name of the IANA time zone database, e.g. Europe/Berlin. Fixed abbreviations, e.g. EST,
are rejected because they do not follow DST.
"""

from dq.validators.rule import Rule, Severity, slo_finding_check

RULE = Rule("unknown-timezone", Severity.ERROR, __doc__, slo_finding_check("unknown-timezone"))
