"""Delivery that may be empty, but has only files as evidence.

Why: An empty partition without a marker cannot be distinguished from a missing one.

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
            value: {empty: allowed, evidence: [file]}

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
            value: {empty: allowed, evidence: [receipt, marker]}

How to fix: Use a receipt, a marker or a commit as evidence.
"""

from datetime import datetime

from dq.validators.rule import Rule, Severity, Slo, Violations, slo_check, violation


def evaluate(slo: Slo, _now: datetime) -> Violations:
    if slo.delivery.empty == "allowed" and set(slo.delivery.evidence) == {"file"}:
        message = "an empty delivery has no files, but files are its only evidence."
        yield violation(slo.delivery, "evidence", message, "Write evidence: [receipt, marker].")


RULE = Rule("empty-without-marker", Severity.ERROR, __doc__, slo_check(evaluate))
