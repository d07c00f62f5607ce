"""The calendar of a delivery ends in the past.

Why: Holidays after that day are unknown, and a delivery that nobody owes would raise an alert.

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
            value: {calendar: {skip: ["2020-12-25"], valid_until: 2020-12-31}}

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
            value: {calendar: {skip: ["2120-12-25"], valid_until: 2120-12-31}}

Mend: Add the free days to come, and move `valid_until`.
"""

from datetime import datetime

from dq.validators.rule import Faults, Rule, Severity, Slo, fault, of_each


def judge(slo: Slo, now: datetime) -> Faults:
    terms = slo.delivery.calendar
    if terms is not None and terms.valid_until is not None and terms.valid_until < now.date():
        message = f"the calendar was known up to {terms.valid_until}, which is over."
        yield fault(terms, "valid_until", message, "Add the free days to come, and move valid_until.")


RULE = Rule("calendar-expired", Severity.WARNING, __doc__, of_each(judge))
