"""A quality rule asks for a metric that ODCS does not know.

Why: No tool can measure it, so that the rule is never checked.

Bad:
    schema:
      - name: orders
        quality:
          - {metric: rowcount, mustBeGreaterThan: 0}

Good:
    schema:
      - name: orders
        quality:
          - {metric: rowCount, mustBeGreaterThan: 0}

Mend: Use a metric of the library, or a rule of `type: sql`.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, suggestion

METRICS = ("nullValues", "missingValues", "invalidValues", "duplicateValues", "rowCount")


def check(_contract: Contract, context: Context) -> Faults:
    for quality in context.walk.qualities:
        metric = quality.metric
        if metric is not None and metric not in METRICS:
            mend = suggestion(metric, METRICS, f"Write one of {', '.join(METRICS)}.")
            yield fault(quality, "metric", f"{metric!r} is not a metric of ODCS.", mend)


RULE = Rule("metric-unknown", Severity.ERROR, __doc__, check)
