"""A service level that is a length of time has a unit that is none.

Why: ODCS leaves the unit open, and tools ignore a service level whose unit they cannot read.

Bad:
    slaProperties:
      - {property: latency, value: 2, unit: parsecs}

Good:
    slaProperties:
      - {property: latency, value: 2, unit: h}

Mend: Write s, min, h, d, w, mo or y, or the word in full.
"""

from dq.contracts import odcs
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, suggestion


def check(contract: Contract, _context: Context) -> Faults:
    for sla in contract.sla_properties:
        _, timed = odcs.SERVICE_LEVELS.get(sla.property.lower(), ("", False))
        if not timed or sla.unit is None or sla.unit.strip().lower() == "m":
            continue
        if odcs.time_unit(sla.unit) is None:
            mend = suggestion(sla.unit, odcs.TIME_UNITS, "Write one of s, min, h, d, w, mo, y.")
            yield fault(sla, "unit", f"{sla.unit!r} is not a unit of time.", mend)


RULE = Rule("unknown-unit", Severity.WARNING, __doc__, check)
