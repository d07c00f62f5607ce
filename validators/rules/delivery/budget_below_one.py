"""The objective of a delivery allows not a single miss in its window.

Why: Every incident then exhausts the budget, and the budget stops telling anything.

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

Mend: Lower the objective, or lengthen the window until one cycle may be missed.
"""

from datetime import datetime
from itertools import islice
from math import ceil

from dq.validators.rule import Faults, Rule, Severity, Slo, fault, of_each

# Nobody counts further by hand either: beyond it the objective is taken to be meant.
MOST = 10_000


def judge(slo: Slo, now: datetime) -> Faults:
    # The defaults are nobody's promise yet, and 100% allows no miss on purpose.
    if slo.objective == 1 or not (slo.delivery.has("objective") or slo.delivery.has("window")):
        return
    needed = ceil(1 / (1 - slo.objective))
    count = sum(1 for _ in islice(slo.schedule.between(now, now + slo.window), min(needed, MOST)))
    if 0 < count < needed and count < MOST:
        message = (
            f"{slo.delivery.objective} of the {count} cycles in {slo.delivery.window} allows no miss: "
            f"that takes {needed} cycles."
        )
        share = 100 * (count - 1) // count
        mend = f"Write objective: {share}%, or a window of {needed} cycles."
        yield fault(slo.delivery, "objective" if slo.delivery.has("objective") else "window", message, mend)


RULE = Rule("budget-below-one", Severity.WARNING, __doc__, of_each(judge))
