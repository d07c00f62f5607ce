"""A quality rule counts in a unit that the library does not have.

Why: A tool that cannot read the unit counts rows, and two percent becomes two rows.

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

Mend: Write `rows` or `percent`.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, nearest


def check(_contract: Contract, context: Context) -> Faults:
    for quality in context.walk.qualities:
        unit = quality.unit
        if quality.metric and unit is not None and unit.lower() not in ("rows", "percent"):
            meant = (
                "percent"
                if unit.strip().lower() in ("%", "pct", "percentage")
                else nearest(unit, ("rows", "percent"))
            )
            mend = f"Did you mean {meant!r}?" if meant else "Write 'rows' or 'percent'."
            yield fault(quality, "unit", f"{unit!r} is not a unit of the library.", mend)


RULE = Rule("quality-unit-unknown", Severity.WARNING, __doc__, check)
