"""A quality rule measures something and compares it with nothing.

Why: Without an operator every answer is good, so that the rule can never fail.

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

Mend: Add exactly one operator, such as `mustBeGreaterThan`.
"""

from dataclasses import replace

from dq.contracts.model import OPERATORS
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, absence


def check(contract: Contract, context: Context) -> Faults:
    for quality in context.walk.qualities:
        measures = quality.metric if quality.type == "library" else quality.query
        if quality.type in ("library", "sql") and measures and not quality.operators():
            message = "the rule compares what it measures with nothing."
            made = absence(quality, message, "Add one operator, such as 'mustBe: 0'.", *OPERATORS)
            # The JSON Schema of 3.0 asks for none.
            yield replace(made, doubt=contract.odcs < (3, 1, 0))


RULE = Rule("operator-missing", Severity.ERROR, __doc__, check)
