"""Early warnings of a schedule that is too frequent for their budget.

Why: dq sends no early warning of such a delivery: it compares at most 500 earlier cycles, and these cannot
show that so few warnings of so many deliveries would be false.

Bad:
    slaProperties:
      - id: hourly
        property: frequency
        value: 1
        unit: h
        element: orders
        schedule: "10 * * * *"
        customProperties:
          - property: delivery
            vendor: dq
            value: {grace: 20m, warn: usual}

Good:
    slaProperties:
      - id: hourly
        property: frequency
        value: 1
        unit: h
        element: orders
        schedule: "10 * * * *"
        customProperties:
          - property: delivery
            vendor: dq
            value: {grace: 20m, warn: usual, falseWarnings: 2/month}

How to fix: Allow more false warnings, or remove `warn`.
"""

from datetime import datetime

from dq.contracts.schedule.clock import shortest_gap
from dq.contracts.slo import MAX_COMPARED_CYCLES
from dq.validators.rule import Rule, Severity, Slo, Violations, slo_check, violation


def evaluate(slo: Slo, now: datetime) -> Violations:
    budget = slo.false_warnings
    gap = shortest_gap(slo.schedule, now) if budget else None
    if budget is None or gap is None:
        return
    needed = int(budget.period / gap / budget.number)
    if needed > MAX_COMPARED_CYCLES:
        message = (
            f"falseWarnings {budget.text} would need about {needed:,} earlier cycles, and "
            f"{MAX_COMPARED_CYCLES} are compared: dq never warns."
        )
        yield violation(slo.delivery, "falseWarnings", message, "Allow more, e.g. 2/month, or remove 'warn'.")


RULE = Rule("early-warning-impossible", Severity.WARNING, __doc__, slo_check(evaluate))
