"""Invalid cron expression, or a schedule that never fires.

Why: Cron implementations differ in what they accept; dq accepts only what all of them read the same way. A
schedule that never fires promises nothing.

Bad:
    slaProperties:
      - id: daily
        property: frequency
        value: 1
        unit: d
        element: orders
        schedule: "0 30 * * *"
        customProperties:
          - property: delivery
            vendor: dq
            value: {grace: 1h}

Good:
    slaProperties:
      - id: daily
        property: frequency
        value: 1
        unit: d
        element: orders
        schedule: "0 6 * * *"
        customProperties:
          - property: delivery
            vendor: dq
            value: {timezone: Europe/Berlin, grace: 1h}

How to fix: Correct the field in the message. `dq schedule next` shows when an expression fires.
"""

from dq.contracts import extension
from dq.contracts.model import Quality, SlaProperty
from dq.contracts.outcome import ValueProblem as NotASchedule
from dq.contracts.schedule.clock import parse
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, slo_finding_check, violation


def check(contract: Contract, context: Context) -> Violations:
    yield from _check_deliveries(contract, context)
    plain: list[SlaProperty | Quality] = [
        sla for sla in contract.sla_properties if extension.delivery(contract, sla) == (None, [])
    ]
    plain += context.walk.qualities
    for node in plain:
        if node.schedule is not None and (node.scheduler or "cron").lower() == "cron":
            result = parse(node.schedule)
            if isinstance(result, NotASchedule):
                yield violation(node, "schedule", result.message, result.hint, doubt=True)


_check_deliveries = slo_finding_check("cron-invalid")
RULE = Rule("cron-invalid", Severity.ERROR, __doc__, check)
