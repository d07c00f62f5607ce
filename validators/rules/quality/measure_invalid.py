"""A metric of dq's own engine is asked for in a way that it cannot be measured.

Why: A misspelt argument, a quantile of 1.5 or a group by a column that is not there can only end in an error
when it runs on the data.

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

Mend: Write the argument, the operator or the unit as the metric takes it; docs/reference/checks.md has a page
for each.
"""

from dq.contracts.metrics import Measurement, measure_named, read
from dq.validators.rule import Context, Contract, Fault, Faults, Rule, Severity


def check(_contract: Contract, context: Context) -> Faults:
    for clause in context.walk.clauses:
        kind = measure_named(clause.quality)
        if kind is None:
            continue
        found = read(kind, clause.object, clause.property, clause.quality)
        for one in () if isinstance(found, Measurement) else found:
            yield Fault(one.at, one.message, one.mend, one.path)


RULE = Rule("measure-invalid", Severity.ERROR, __doc__, check)
