"""A clause of the contract is not evaluated when the data is checked.

Why: Readers take what stands in a contract for a promise that somebody keeps. What no check can run, because
its metric is unknown, its column has the wrong type or its engine is not here, is a promise that dies unseen.

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

Mend: Write what the reason asks for. What is only meant for readers is `type: text`. A policy makes it an
error with `unenforced: error`, or turns it off.
"""

from dq.validators.rule import Context, Contract, Fault, Faults, Rule, Severity, unmatched_terms


def check(contract: Contract, context: Context) -> Faults:
    # One mistake, one finding: terms whose id is misspelt leave their service level without any.
    meant = {hint for _, _, hint in unmatched_terms(contract) if hint}
    without = tuple(sla.path() for sla in contract.sla_properties if sla.id in meant)
    for one in context.unenforced(contract):
        if without and one.path.startswith(without):
            continue
        yield Fault(one.at, one.message, one.mend, one.path, kind=one.message)


RULE = Rule("unenforced", Severity.WARNING, __doc__, check, consequences=True)
