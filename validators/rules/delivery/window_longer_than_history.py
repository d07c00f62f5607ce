"""The window of a delivery's objective is longer than history is kept.

Why: Each delivery is kept for 400 days, as long as `dq store prune` runs at its least. Of a longer window the
budget counts a part only, and no longer the part that was promised.

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

Mend: Shorten the window to 400 days or less.
"""

from datetime import datetime

from dq.contracts.slo import HISTORY_KEPT, Slo
from dq.validators.rule import Faults, Rule, Severity, fault, of_each


def judge(slo: Slo, _: datetime) -> Faults:
    if slo.window > HISTORY_KEPT:
        message = f"window {slo.delivery.window} is longer than the {HISTORY_KEPT.days} days that are kept."
        yield fault(slo.delivery, "window", message, f"Write window: {HISTORY_KEPT.days}d, or less.")


RULE = Rule("window-longer-than-history", Severity.WARNING, __doc__, of_each(judge))
