"""Expired delivery calendar.

Why: Holidays after that date are unknown, so a delivery that is not due would raise an alert.

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

How to fix: Add the upcoming holidays, and extend `valid_until`.
"""

from datetime import datetime

from dq.validators.rule import Rule, Severity, Slo, Violations, slo_check, violation


def evaluate(slo: Slo, now: datetime) -> Violations:
    terms = slo.delivery.calendar
    if terms is not None and terms.valid_until is not None and terms.valid_until < now.date():
        message = f"the calendar expired on {terms.valid_until}."
        yield violation(terms, "valid_until", message, "Add the upcoming holidays, and extend valid_until.")


RULE = Rule("calendar-expired", Severity.WARNING, __doc__, slo_check(evaluate))
