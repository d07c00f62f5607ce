"""A service level that is a length of time has a value that is none.

Why: Without a length there is nothing to compare the data with, and the service level is never checked.

Bad:
    slaProperties:
      - {property: latency, value: two hours, unit: h}

Good:
    slaProperties:
      - {property: latency, value: 2, unit: h}

Mend: Write the number under `value` and the unit of time under `unit`, or both as one text: `25h`, `P1Y`.
"""

from dq.contracts import odcs
from dq.contracts.model import SlaProperty
from dq.contracts.outcome import TextFault as NoDuration
from dq.contracts.outcome import parse_duration
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, fits, shown


def check(contract: Contract, _context: Context) -> Faults:
    for sla in contract.sla_properties:
        _, timed = odcs.SERVICE_LEVELS.get(sla.property.lower(), ("", False))
        if timed and not _length(sla):
            message = f"{sla.property} is {shown(sla.value)}, which is no length of time."
            yield fault(sla, "value", message, "Write a number, and its unit under 'unit'.")


def _length(sla: SlaProperty) -> bool:
    if isinstance(sla.value, str) and not sla.unit:
        return not isinstance(parse_duration(sla.value), NoDuration)
    return fits(sla.value, "number") and sla.value > 0


RULE = Rule("sla-value-not-number", Severity.WARNING, __doc__, check)
