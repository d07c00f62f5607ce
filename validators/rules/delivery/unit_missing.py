"""A service level that is a length of time has a number without a unit.

Why: Two hours and two days are not the same promise; each tool takes the unit that it likes.

Bad:
    slaProperties:
      - {property: retention, value: 3}

Good:
    slaProperties:
      - {property: retention, value: 3, unit: y}

Mend: Add `unit`: s, min, h, d, w, mo or y.
"""

from dq.contracts import odcs
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, absence, fits


def check(contract: Contract, _context: Context) -> Faults:
    for sla in contract.sla_properties:
        _, timed = odcs.SERVICE_LEVELS.get(sla.property.lower(), ("", False))
        if timed and not sla.unit and fits(sla.value, "number"):
            message = f"{sla.property} is {sla.value} without a unit."
            yield absence(sla, message, "Add 'unit: h', or another unit of time.", "unit")


RULE = Rule("unit-missing", Severity.WARNING, __doc__, check)
