"""Invalid use of a metric of the `dq` engine.

Why: A misspelt argument, a quantile of 1.5 or a group-by on a missing column can only fail when it runs on
the data.

Bad:
    schema:
      - name: flights
        properties:
          - name: air_time
            logicalType: integer
            quality:
              - type: custom
                engine: dq
                implementation: {check: quantile, arguments: {q: 1.5}, mustBeLessThan: 600}

Good:
    schema:
      - name: flights
        properties:
          - name: air_time
            logicalType: integer
            quality:
              - type: custom
                engine: dq
                implementation: {check: quantile, arguments: {q: 0.95}, mustBeLessThan: 600}

How to fix: Use the arguments, operators and units that the metric supports; docs/reference/checks.md
describes each metric.
"""

from dq.contracts.agreement import Agreement, SumAgreement, is_agreement, read_agreement
from dq.contracts.metrics import (
    Measurement,
    UnusualRule,
    is_unusual_rule,
    named_metric,
    read_metric_rule,
    read_unusual_rule,
)
from dq.contracts.outcome import Finding
from dq.validators.rule import Context, Contract, Rule, Severity, Violation, Violations


def check(contract: Contract, context: Context) -> Violations:
    for clause in context.walk.clauses:
        result: Measurement | UnusualRule | Agreement | SumAgreement | tuple[Finding, ...] = ()
        if is_agreement(clause.quality):
            result = read_agreement(clause.object, clause.property, clause.quality, contract)
        elif is_unusual_rule(clause.quality):
            result = read_unusual_rule(clause.object, clause.property, clause.quality)
        elif (kind := named_metric(clause.quality)) is not None:
            result = read_metric_rule(kind, clause.object, clause.property, clause.quality)
        for finding in result if isinstance(result, tuple) else ():
            yield Violation(finding.at, finding.message, finding.hint, finding.path)


RULE = Rule("measure-invalid", Severity.ERROR, __doc__, check)
