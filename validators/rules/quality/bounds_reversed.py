"""Bounds of mustBeBetween that are not one lower and one upper bound.

Why: No value is between 900 and 100, so the rule always fails, which is a warning. One or three bounds have
no meaning.

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

How to fix: Write `[low, high]`. Both are included.
"""

from dq.contracts.model import OPERATORS
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation


def check(_contract: Contract, context: Context) -> Violations:
    for quality in context.walk.qualities:
        for key in ("mustBeBetween", "mustNotBeBetween"):
            bounds = getattr(quality, OPERATORS[key])
            if bounds is None:
                continue
            if len(bounds) != 2:
                message = f"{key} takes two bounds, not {len(bounds)}."
                yield violation(quality, key, message, f"Write '{key}: [low, high]'.")
            elif bounds[0] > bounds[1]:
                low, high = (f"{bound:g}" for bound in bounds)
                message = f"{key} has the lower bound {low} above the upper bound {high}."
                hint = f"Write '{key}: [{high}, {low}]'."
                # A warning, because the standard allows it.
                yield violation(quality, key, message, hint, doubt=True)


RULE = Rule("bounds-reversed", Severity.ERROR, __doc__, check)
