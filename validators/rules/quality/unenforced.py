"""Clause that is not evaluated when the data is checked.

Why: Readers expect the clauses of a contract to be enforced. A clause that no check can run, because its
metric is unknown, its column has the wrong type or its engine is not installed, is silently ignored.

Bad:
    schema:
      - name: orders
        properties:
          - name: order_id
            logicalType: string
            quality:
              - {type: custom, engine: soda, implementation: "type: duplicate_percent"}

Good:
    schema:
      - name: orders
        properties:
          - name: order_id
            logicalType: string
            quality:
              - {metric: duplicateValues, mustBe: 0}

How to fix: Change what the reason names. Use `type: text` for rules that are only meant for readers. A policy
can make this an error with `unenforced: error`, or turn it off.
"""

from dq.contracts.slo import is_arrival_schedule
from dq.validators.rule import Context, Contract, Rule, Severity, Violation, Violations, unmatched_terms


def check(contract: Contract, context: Context) -> Violations:
    # Report one mistake once: delivery terms with a misspelt id leave their service level without terms, and
    # other rules report schedules that are not watched.
    similar_ids = {hint for _, _, hint in unmatched_terms(contract) if hint}
    without = tuple(
        sla.path() for sla in contract.sla_properties if sla.id in similar_ids or is_arrival_schedule(sla)
    )
    for finding in context.unenforced(contract):
        if without and finding.path.startswith(without):
            continue
        yield Violation(finding.at, finding.message, finding.hint, finding.path, kind=finding.message)


RULE = Rule("unenforced", Severity.WARNING, __doc__, check, consequences=True)
