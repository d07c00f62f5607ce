"""A schedule is not a cron expression, or one that never comes.

Why: Cron programs disagree about what they accept; what is written here, all of them read alike. A schedule
that never fires would promise nothing.

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

Mend: The message says which field, and what to write. `dq schedule next` shows when an expression fires.
"""

from dq.contracts import extension
from dq.contracts.model import Quality, SlaProperty
from dq.contracts.outcome import TextFault as NotASchedule
from dq.contracts.schedule.clock import parse
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, of_promise


def check(contract: Contract, context: Context) -> Faults:
    yield from _of_deliveries(contract, context)
    plain: list[SlaProperty | Quality] = [
        sla for sla in contract.sla_properties if extension.delivery(contract, sla) == (None, [])
    ]
    plain += context.walk.qualities
    for node in plain:
        if node.schedule is not None and (node.scheduler or "cron").lower() == "cron":
            found = parse(node.schedule)
            if isinstance(found, NotASchedule):
                yield fault(node, "schedule", f"{found.code}: {found.message}", found.mend, doubt=True)


_of_deliveries = of_promise("cron-invalid")
RULE = Rule("cron-invalid", Severity.ERROR, __doc__, check)
