"""The calendar of a delivery names what is not known, or contradicts itself.

Why: Nobody could tell which deliveries are due.

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

Mend: Write ISO 3166 codes of a country and its subdivision, such as DE or DE-BY, and each date in one list.
"""

from dq.validators.rule import Rule, Severity, of_promise

RULE = Rule("calendar-invalid", Severity.ERROR, __doc__, of_promise("calendar-invalid"))
