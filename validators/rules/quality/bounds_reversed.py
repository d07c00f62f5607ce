"""The bounds of mustBeBetween are not a lower and an upper one.

Why: Between 900 and 100 lies nothing, so that the rule always fails, which is a warning. One or three bounds
mean nothing.

Bad:
    schema:
      - name: orders
        quality:
          - {metric: rowCount, mustBeBetween: [100, 500, 900]}

Good:
    schema:
      - name: orders
        quality:
          - {metric: rowCount, mustBeBetween: [100, 900]}

Mend: Write `[low, high]`. Both are included.
"""

from dq.contracts.model import OPERATORS
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault


def check(_contract: Contract, context: Context) -> Faults:
    for quality in context.walk.qualities:
        for key in ("mustBeBetween", "mustNotBeBetween"):
            bounds = getattr(quality, OPERATORS[key])
            if bounds is None:
                continue
            if len(bounds) != 2:
                message = f"{key} takes two bounds, not {len(bounds)}."
                yield fault(quality, key, message, f"Write '{key}: [low, high]'.")
            elif bounds[0] > bounds[1]:
                low, high = (f"{bound:g}" for bound in bounds)
                message = f"{key} has the lower bound {low} above the upper bound {high}."
                mend = f"Write '{key}: [{high}, {low}]'."
                yield fault(quality, key, message, mend, doubt=True)


RULE = Rule("bounds-reversed", Severity.ERROR, __doc__, check)
