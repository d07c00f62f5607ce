"""A service level has a name that is almost one of ODCS.

Why: ODCS allows names of one's own, so that a misspelt one is accepted everywhere and measured nowhere.

Bad:
    slaProperties:
      - {property: latancy, value: 2, unit: h}

Good:
    slaProperties:
      - {property: latency, value: 2, unit: h}

Mend: Correct the spelling, or choose a name that cannot be taken for one of ODCS.
"""

from dq.contracts import odcs
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, nearest


def check(contract: Contract, _context: Context) -> Faults:
    for sla in contract.sla_properties:
        if sla.property.lower() in odcs.SERVICE_LEVELS:
            continue
        near = nearest(sla.property, odcs.SERVICE_LEVELS)
        if near is not None:
            message = f"service level {sla.property!r} is not one of ODCS."
            yield fault(sla, "property", message, f"Did you mean {odcs.SERVICE_LEVELS[near][0]!r}?")


RULE = Rule("sla-property-misspelt", Severity.WARNING, __doc__, check)
