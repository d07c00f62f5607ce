"""Unknown metric in a quality rule.

Why: No tool can compute it, so the rule is never checked.

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

How to fix: Use a metric of the library, or a rule of `type: sql`.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, suggestion, violation

METRICS = ("nullValues", "missingValues", "invalidValues", "duplicateValues", "rowCount")


def check(_contract: Contract, context: Context) -> Violations:
    for quality in context.walk.qualities:
        metric = quality.metric
        if metric is not None and metric not in METRICS:
            hint = suggestion(metric, METRICS, f"Write one of {', '.join(METRICS)}.")
            yield violation(quality, "metric", f"unknown metric {metric!r}.", hint)


RULE = Rule("metric-unknown", Severity.ERROR, __doc__, check)
