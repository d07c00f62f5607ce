"""Service level name that is probably misspelt.

Why: ODCS allows custom names, so a misspelt one is accepted everywhere and measured nowhere.

Bad:
    slaProperties:
      - {property: latancy, value: 2, unit: h}

Good:
    slaProperties:
      - {property: latency, value: 2, unit: h}

How to fix: Correct the spelling, or choose a name that does not resemble one of ODCS.
"""

from dq.contracts import odcs
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, nearest, violation


def check(contract: Contract, _context: Context) -> Violations:
    for sla in contract.sla_properties:
        if sla.property.lower() in odcs.SERVICE_LEVELS:
            continue
        similar = nearest(sla.property, odcs.SERVICE_LEVELS)
        if similar is not None:
            message = f"unknown service level {sla.property!r}."
            yield violation(sla, "property", message, f"Did you mean {odcs.SERVICE_LEVELS[similar][0]!r}?")


RULE = Rule("sla-property-misspelt", Severity.WARNING, __doc__, check)
