"""Duration of a service level without a unit.

Why: Two hours and two days are not the same promise, and each tool assumes a different unit.

Bad:
    slaProperties:
      - {property: retention, value: 3}

Good:
    slaProperties:
      - {property: retention, value: 3, unit: y}

How to fix: Add `unit`: s, min, h, d, w, mo or y.
"""

from dq.contracts import odcs
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, fits_type, missing_key


def check(contract: Contract, _context: Context) -> Violations:
    for sla in contract.sla_properties:
        _, is_duration = odcs.SERVICE_LEVELS.get(sla.property.lower(), ("", False))
        if is_duration and not sla.unit and fits_type(sla.value, "number"):
            message = f"{sla.property} {sla.value} has no unit."
            yield missing_key(sla, message, "Add 'unit: h', or another time unit.", "unit")


RULE = Rule("unit-missing", Severity.WARNING, __doc__, check)
