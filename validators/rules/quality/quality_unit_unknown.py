"""Unknown unit in a quality rule.

Why: A tool that does not know the unit counts rows, and two percent becomes two rows.

Bad:
    schema:
      - name: orders
        properties:
          - name: amount
            quality:
              - {metric: nullValues, unit: pct, mustBeLessThan: 5}

Good:
    schema:
      - name: orders
        properties:
          - name: amount
            quality:
              - {metric: nullValues, unit: percent, mustBeLessThan: 5}

How to fix: Write `rows` or `percent`.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, nearest, violation


def check(_contract: Contract, context: Context) -> Violations:
    for quality in context.walk.qualities:
        unit = quality.unit
        if quality.metric and unit is not None and unit.lower() not in ("rows", "percent"):
            similar = (
                "percent"
                if unit.strip().lower() in ("%", "pct", "percentage")
                else nearest(unit, ("rows", "percent"))
            )
            hint = f"Did you mean {similar!r}?" if similar else "Write 'rows' or 'percent'."
            yield violation(quality, "unit", f"unknown unit {unit!r}.", hint)


RULE = Rule("quality-unit-unknown", Severity.WARNING, __doc__, check)
