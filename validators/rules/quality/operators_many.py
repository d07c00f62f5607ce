"""Quality rule with more than one operator.

Why: ODCS allows exactly one. Given two, each tool picks one of them and ignores the other.

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

How to fix: Use `mustBeBetween`, which includes both bounds, or write two rules.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation


def check(contract: Contract, context: Context) -> Violations:
    for quality in context.walk.qualities:
        names = [name for name, _ in quality.operators()]
        if len(names) > 1:
            message = f"the rule has {len(names)} operators: {', '.join(names)}."
            hint = "Keep one; 'mustBeBetween: [low, high]' includes both bounds."
            # The JSON Schema of 3.0 allows several.
            yield violation(quality, names[1], message, hint, doubt=contract.odcs < (3, 1, 0))


RULE = Rule("operators-many", Severity.ERROR, __doc__, check)
