"""Grace not shorter than the time between two deliveries.

Why: Two cycles are then open at once, and one delivery can be mistaken for the other.

Bad:
    slaProperties:
      - id: daily
        property: frequency
        value: 1
        unit: d
        element: orders
        schedule: "0 * * * *"
        customProperties:
          - property: delivery
            vendor: dq
            value: {grace: 1h}

Good:
    slaProperties:
      - id: daily
        property: frequency
        value: 1
        unit: d
        element: orders
        schedule: "0 * * * *"
        customProperties:
          - property: delivery
            vendor: dq
            value: {grace: 30m}

How to fix: Shorten the grace, or schedule deliveries less often.
"""

from datetime import datetime, timedelta

from dq.contracts.schedule.clock import shortest_gap
from dq.validators.rule import Rule, Severity, Slo, Violations, slo_check, violation


def evaluate(slo: Slo, now: datetime) -> Violations:
    gap = shortest_gap(slo.schedule, now) if slo.grace else None
    if gap is not None and slo.grace >= gap:
        message = f"grace {slo.delivery.grace} is not shorter than the {span(gap)} between two deliveries."
        yield violation(slo.delivery, "grace", message, f"Write less than {span(gap)}.")


def span(length: timedelta) -> str:
    minutes = int(length.total_seconds()) // 60
    return f"{minutes // 60} h" if minutes % 60 == 0 else f"{minutes} min"


RULE = Rule("grace-not-shorter-than-gap", Severity.WARNING, __doc__, slo_check(evaluate))
