"""A quality rule compares a percentage with a number below 0 or above 100.

Why: The rule can never fail, or never pass. Often a share such as 0.05 or a number of rows was meant.

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

Mend: Write a number from 0 to 100.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, fits


def check(_contract: Contract, context: Context) -> Faults:
    for quality in context.walk.qualities:
        # A count of rows in percent is compared with its own history, and may well double.
        if (quality.unit or "").lower() != "percent" or quality.metric == "rowCount":
            continue
        for name, value in quality.operators():
            bounds = value if isinstance(value, list) else [value]
            outside = [one for one in bounds if fits(one, "number") and not 0 <= one <= 100]
            if outside:
                message = f"{name} compares a percentage with {outside[0]:g}."
                yield fault(quality, name, message, "Write a number from 0 to 100.")


RULE = Rule("percent-out-of-range", Severity.WARNING, __doc__, check)
