"""The grace of a delivery is as long as the time between two of them.

Why: Two cycles are then open at once, and one delivery can be taken for the other.

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

Mend: Shorten the grace, or promise less often.
"""

from datetime import datetime, timedelta

from dq.contracts.schedule.clock import shortest_gap
from dq.validators.rule import Faults, Rule, Severity, Slo, fault, of_each


def judge(slo: Slo, now: datetime) -> Faults:
    gap = shortest_gap(slo.schedule, now) if slo.grace else None
    if gap is not None and slo.grace >= gap:
        message = f"grace {slo.delivery.grace} is not shorter than the {span(gap)} between two dues."
        yield fault(slo.delivery, "grace", message, f"Write less than {span(gap)}.")


def span(length: timedelta) -> str:
    minutes = int(length.total_seconds()) // 60
    return f"{minutes // 60} h" if minutes % 60 == 0 else f"{minutes} min"


RULE = Rule("grace-not-shorter-than-gap", Severity.WARNING, __doc__, of_each(judge))
