"""A service level that is a length of time has a value that is not a positive number.

Why: Without a number there is nothing to compare the data with, and the service level is never checked.

Bad:
    slaProperties:
      - {property: latency, value: two hours, unit: h}

Good:
    slaProperties:
      - {property: latency, value: 2, unit: h}

Mend: Write the number under `value` and the unit of time under `unit`.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts import service_levels
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Severity
from dq.validators.context import Context
from dq.validators.facts.values import fits, shown
from dq.validators.rule import Fault, Rule, fault


def check(contract: Contract, _context: Context) -> Iterator[Fault]:
    for sla in contract.sla_properties:
        _, timed = service_levels.SERVICE_LEVELS.get(sla.property.lower(), ("", False))
        if timed and not (fits(sla.value, "number") and sla.value > 0):
            message = f"{sla.property} is {shown(sla.value)}, which is not a positive number."
            yield fault(sla, "value", message, "Write a number, and its unit under 'unit'.")


RULE = Rule("sla-value-not-number", Severity.ERROR, __doc__, check)
