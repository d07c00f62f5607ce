"""Library quality rule without a metric.

Why: `library` is the default type, and without a metric such a rule checks nothing.

Bad:
    schema:
      - name: orders
        quality:
          - {description: No order is lost., mustBeGreaterThan: 0}

Good:
    schema:
      - name: orders
        quality:
          - {description: No order is lost., metric: rowCount, mustBeGreaterThan: 0}

How to fix: Add `metric`, or set `type` to sql, custom or text.
"""

from dq.contracts.odcs import EARLIER_METRICS
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, missing_key, violation


def check(contract: Contract, context: Context) -> Violations:
    key = "metric" if contract.odcs >= (3, 1, 0) else "rule"
    for quality in context.walk.qualities:
        if quality.type != "library" or quality.metric:
            continue
        if quality.rule:
            if key == "metric":
                # The text of the standard still has 'rule'; its JSON Schema requires 'metric'.
                message = "'rule' is deprecated since ODCS v3.1.0, whose schema requires 'metric'."
                metric = EARLIER_METRICS.get(quality.rule, quality.rule)
                yield violation(quality, "rule", message, f"Write 'metric: {metric}'.", doubt=True)
            continue
        likely_type = "sql" if quality.query else "custom" if quality.engine else "text"
        hint = f"Add '{key}: …', or 'type: {likely_type}' if the rule is of that type."
        missing = "metric" if quality.has("metric") else key
        yield missing_key(quality, "the rule has no metric, so it checks nothing.", hint, missing, "type")


RULE = Rule("library-without-metric", Severity.ERROR, __doc__, check)
