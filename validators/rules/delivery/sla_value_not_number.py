"""Value of a service level that is not a duration.

Why: Without a duration there is nothing to compare the data with, so the service level is never checked.

Bad:
    slaProperties:
      - {property: latency, value: two hours, unit: h}

Good:
    slaProperties:
      - {property: latency, value: 2, unit: h}

How to fix: Write the number under `value` and the time unit under `unit`, or both as one string: `25h`,
`P1Y`.
"""

from dq.contracts import odcs
from dq.contracts.model import SlaProperty
from dq.contracts.outcome import ValueProblem as NoDuration
from dq.contracts.outcome import parse_duration
from dq.validators.rule import (
    Context,
    Contract,
    Rule,
    Severity,
    Violations,
    fits_type,
    quote_value,
    violation,
)


def check(contract: Contract, _context: Context) -> Violations:
    for sla in contract.sla_properties:
        _, is_duration = odcs.SERVICE_LEVELS.get(sla.property.lower(), ("", False))
        if is_duration and not _is_duration(sla):
            message = f"{sla.property} {quote_value(sla.value)} is not a duration."
            yield violation(sla, "value", message, "Write a number, and the unit under 'unit'.")


def _is_duration(sla: SlaProperty) -> bool:
    if isinstance(sla.value, str) and not sla.unit:
        return not isinstance(parse_duration(sla.value), NoDuration)
    return fits_type(sla.value, "number") and sla.value > 0


RULE = Rule("sla-value-not-number", Severity.WARNING, __doc__, check)
