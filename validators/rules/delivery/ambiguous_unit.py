"""Ambiguous unit `m`: minutes or months.

Why: One tool would expect the data within minutes, another within months.

Bad:
    slaProperties:
      - {property: latency, value: 30, unit: m}

Good:
    slaProperties:
      - {property: latency, value: 30, unit: min}

How to fix: Write `min` for minutes, or `mo` for months.
"""

from dq.contracts import odcs
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation


def check(contract: Contract, _context: Context) -> Violations:
    for sla in contract.sla_properties:
        _, is_duration = odcs.SERVICE_LEVELS.get(sla.property.lower(), ("", True))
        if is_duration and sla.unit is not None and sla.unit.strip().lower() == "m":
            readings = f"{sla.value} minutes in some tools and {sla.value} months in others"
            message = f"{sla.value} {sla.unit} means {readings}."
            yield violation(sla, "unit", message, "Write 'min' for minutes or 'mo' for months.")


RULE = Rule("ambiguous-unit", Severity.WARNING, __doc__, check)
