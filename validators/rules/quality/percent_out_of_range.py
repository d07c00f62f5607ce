"""Percentage below 0 or above 100.

Why: The rule can never fail, or never pass. Often a fraction, e.g. 0.05, or a number of rows was meant.

Bad:
    schema:
      - name: orders
        properties:
          - name: amount
            quality:
              - {metric: nullValues, unit: percent, mustBeLessThan: 150}

Good:
    schema:
      - name: orders
        properties:
          - name: amount
            quality:
              - {metric: nullValues, unit: percent, mustBeLessThan: 5}

How to fix: Write a number from 0 to 100.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, fits_type, violation


def check(_contract: Contract, context: Context) -> Violations:
    for quality in context.walk.qualities:
        # A row count in percent is compared with its own history, and may well double.
        if (quality.unit or "").lower() != "percent" or quality.metric == "rowCount":
            continue
        for name, value in quality.operators():
            bounds = value if isinstance(value, list) else [value]
            outside = [bound for bound in bounds if fits_type(bound, "number") and not 0 <= bound <= 100]
            if outside:
                message = f"{name} {outside[0]:g} is not a percentage from 0 to 100."
                yield violation(quality, name, message, "Write a number from 0 to 100.")


RULE = Rule("percent-out-of-range", Severity.WARNING, __doc__, check)
