"""The unit `m` means minutes to some tools and months to others.

Why: The same contract would promise data within two minutes here and within two months there.

Bad:
    slaProperties:
      - {property: latency, value: 30, unit: m}

Good:
    slaProperties:
      - {property: latency, value: 30, unit: min}

Mend: Write `min` for minutes, or `mo` for months.
"""

from dq.contracts import odcs
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault


def check(contract: Contract, _context: Context) -> Faults:
    for sla in contract.sla_properties:
        _, timed = odcs.SERVICE_LEVELS.get(sla.property.lower(), ("", True))
        if timed and sla.unit is not None and sla.unit.strip().lower() == "m":
            readings = f"{sla.value} minutes to some tools and {sla.value} months to others"
            message = f"{sla.value} {sla.unit} is {readings}."
            yield fault(sla, "unit", message, "Write 'min' for minutes or 'mo' for months.")


RULE = Rule("ambiguous-unit", Severity.WARNING, __doc__, check)
