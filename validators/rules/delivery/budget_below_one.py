"""The error budget is zero: the objective allows no miss in its window.

Why: Every incident then exhausts the budget, so the budget carries no information.

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
            value: {objective: 99%, window: 30d}

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
            value: {objective: 95%, window: 30d}

How to fix: Lower the objective, or extend the window until one miss is allowed.
"""

from datetime import datetime
from itertools import islice
from math import ceil

from dq.validators.rule import Rule, Severity, Slo, Violations, slo_check, violation

# Stop counting here: an objective that needs more cycles is assumed to be intentional.
MAX_CYCLES = 10_000


def evaluate(slo: Slo, now: datetime) -> Violations:
    # The defaults are not the author's choice, and 100% allows no miss on purpose.
    if slo.objective == 1 or not (slo.delivery.has("objective") or slo.delivery.has("window")):
        return
    needed = ceil(1 / (1 - slo.objective))
    count = sum(1 for _ in islice(slo.schedule.between(now, now + slo.window), min(needed, MAX_CYCLES)))
    if 0 < count < needed and count < MAX_CYCLES:
        message = (
            f"{slo.delivery.objective} of the {count} cycles in {slo.delivery.window} allows no miss; "
            f"one miss needs {needed} cycles."
        )
        share = 100 * (count - 1) // count
        hint = f"Write objective: {share}%, or a window of {needed} cycles."
        yield violation(
            slo.delivery, "objective" if slo.delivery.has("objective") else "window", message, hint
        )


RULE = Rule("budget-below-one", Severity.WARNING, __doc__, slo_check(evaluate))
