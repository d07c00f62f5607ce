"""Objective window longer than the kept history.

Why: Deliveries are kept for 400 days, the minimum of `dq store prune`. With a longer window, the budget
counts only part of it.

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
            value: {objective: 99%, window: 730d}

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
            value: {objective: 99%, window: 365d}

How to fix: Shorten the window to 400 days or less.
"""

from datetime import datetime

from dq.contracts.slo import CYCLE_RETENTION, Slo
from dq.validators.rule import Rule, Severity, Violations, slo_check, violation


def evaluate(slo: Slo, _: datetime) -> Violations:
    if slo.window > CYCLE_RETENTION:
        message = (
            f"window {slo.delivery.window} is longer than the {CYCLE_RETENTION.days} days of kept history."
        )
        yield violation(slo.delivery, "window", message, f"Write window: {CYCLE_RETENTION.days}d, or less.")


RULE = Rule("window-longer-than-history", Severity.WARNING, __doc__, slo_check(evaluate))
