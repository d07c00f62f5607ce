"""Quality rule without a comparison operator.

Why: Without an operator every value is accepted, so the rule can never fail.

Bad:
    schema:
      - name: orders
        quality:
          - {metric: rowCount, unit: rows}

Good:
    schema:
      - name: orders
        quality:
          - {metric: rowCount, unit: rows, mustBeGreaterThan: 0}

How to fix: Add exactly one operator, e.g. `mustBeGreaterThan`.
"""

from dataclasses import replace

from dq.contracts.model import OPERATORS
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, missing_key


def check(contract: Contract, context: Context) -> Violations:
    for quality in context.walk.qualities:
        measures = quality.metric if quality.type == "library" else quality.query
        if quality.type in ("library", "sql") and measures and not quality.operators():
            message = "the rule has no comparison operator."
            missing = missing_key(quality, message, "Add one operator, e.g. 'mustBe: 0'.", *OPERATORS)
            # The JSON Schema of 3.0 does not require one.
            yield replace(missing, doubt=contract.odcs < (3, 1, 0))


RULE = Rule("operator-missing", Severity.ERROR, __doc__, check)
