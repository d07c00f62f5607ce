"""A delivery names a time zone that does not exist.

Why: A promise of six o'clock means nothing without the place where the clock hangs.

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

Mend: Write a name of the IANA database, such as Europe/Berlin; fixed abbreviations such as EST are refused,
because they do not follow the clock that people see.
"""

from dq.validators.rule import Rule, Severity, of_promise

RULE = Rule("unknown-timezone", Severity.ERROR, __doc__, of_promise("unknown-timezone"))
