"""A delivery may be empty, and only its files could show that it came.

Why: An empty partition without a marker cannot be told from a missing one.

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

Mend: Let a receipt, a marker or a commit say that it came.
"""

from datetime import datetime

from dq.validators.rule import Faults, Rule, Severity, Slo, fault, of_each


def judge(slo: Slo, _now: datetime) -> Faults:
    if slo.delivery.empty == "allowed" and set(slo.delivery.evidence) == {"file"}:
        message = "an empty delivery shows no file, and nothing else is asked for."
        yield fault(slo.delivery, "evidence", message, "Write evidence: [receipt, marker].")


RULE = Rule("empty-without-marker", Severity.ERROR, __doc__, of_each(judge))
