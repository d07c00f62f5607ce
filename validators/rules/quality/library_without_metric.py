"""A quality rule of the library names no metric.

Why: `library` is the type of a rule that says none, and without a metric such a rule checks nothing.

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

Mend: Add `metric`, or say with `type` that the rule is sql, custom or text.
"""

from dq.contracts.odcs import EARLIER_METRICS
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, absence, fault


def check(contract: Contract, context: Context) -> Faults:
    key = "metric" if contract.odcs >= (3, 1, 0) else "rule"
    for quality in context.walk.qualities:
        if quality.type != "library" or quality.metric:
            continue
        if quality.rule:
            if key == "metric":
                # The text of the standard still has the key, its schema asks for the other one.
                message = "'rule' is deprecated since ODCS v3.1.0, whose schema asks for 'metric'."
                metric = EARLIER_METRICS.get(quality.rule, quality.rule)
                yield fault(quality, "rule", message, f"Write 'metric: {metric}'.", doubt=True)
            continue
        meant = "sql" if quality.query else "custom" if quality.engine else "text"
        mend = f"Add '{key}: …', or 'type: {meant}' if that is what it is."
        missing = "metric" if quality.has("metric") else key
        yield absence(quality, "the rule names no metric, so it checks nothing.", mend, missing, "type")


RULE = Rule("library-without-metric", Severity.ERROR, __doc__, check)
