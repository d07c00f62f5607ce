"""A quality rule has more than one operator.

Why: ODCS allows exactly one. Tools that meet two take the one they like, and the other is void.

Bad:
    schema:
      - name: orders
        quality:
          - {metric: rowCount, mustBeGreaterThan: 100, mustBeLessThan: 900}

Good:
    schema:
      - name: orders
        quality:
          - {metric: rowCount, mustBeBetween: [101, 899]}

Mend: Use `mustBeBetween`, which includes both bounds, or write two rules.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault


def check(contract: Contract, context: Context) -> Faults:
    for quality in context.walk.qualities:
        names = [name for name, _ in quality.operators()]
        if len(names) > 1:
            message = f"the rule has {len(names)} operators: {', '.join(names)}."
            mend = "Keep one; 'mustBeBetween: [low, high]' includes both bounds."
            # The JSON Schema of 3.0 takes several.
            yield fault(quality, names[1], message, mend, doubt=contract.odcs < (3, 1, 0))


RULE = Rule("operators-many", Severity.ERROR, __doc__, check)
