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

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, absence


def check(_contract: Contract, context: Context) -> Faults:
    for quality in context.walk.qualities:
        if quality.type != "library" or quality.metric or quality.rule:
            continue
        meant = "sql" if quality.query else "custom" if quality.engine else "text"
        mend = f"Add 'metric: …', or 'type: {meant}' if that is what it is."
        yield absence(quality, "the rule names no metric, so it checks nothing.", mend, "metric", "type")


RULE = Rule("library-without-metric", Severity.ERROR, __doc__, check)
