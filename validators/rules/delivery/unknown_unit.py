"""Unknown time unit of a service level.

Why: ODCS allows any unit, and tools ignore a service level whose unit they do not know.

Bad:
    slaProperties:
      - {property: latency, value: 2, unit: parsecs}

Good:
    slaProperties:
      - {property: latency, value: 2, unit: h}

How to fix: Write s, min, h, d, w, mo or y, or the full word.
"""

from dq.contracts import odcs
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, suggestion, violation


def check(contract: Contract, _context: Context) -> Violations:
    for sla in contract.sla_properties:
        _, is_duration = odcs.SERVICE_LEVELS.get(sla.property.lower(), ("", False))
        if not is_duration or sla.unit is None or sla.unit.strip().lower() == "m":
            continue
        if odcs.time_unit(sla.unit) is None:
            hint = suggestion(sla.unit, odcs.TIME_UNITS, "Write one of s, min, h, d, w, mo, y.")
            yield violation(sla, "unit", f"unknown time unit {sla.unit!r}.", hint)


RULE = Rule("unknown-unit", Severity.WARNING, __doc__, check)
