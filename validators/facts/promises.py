"""What the rules about deliveries share: the promises of a contract, read through the watcher's own door."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time

from dq.contracts import extension
from dq.contracts.model import Contract
from dq.contracts.shared.spelling import nearest
from dq.contracts.shared_nodes import CustomProperty
from dq.contracts.slo import Slo
from dq.validators.context import Context
from dq.validators.rule import Check, Fault, Faults


def unmatched_terms(contract: Contract) -> list[tuple[CustomProperty, str, str | None]]:
    """Delivery terms at the top whose id no service level has: (terms, that id, the id that is like it)."""
    ids = [sla.id for sla in contract.sla_properties if sla.id is not None]
    terms = [
        (custom, custom.property.removeprefix("delivery:"))
        for custom in contract.custom_properties
        if custom.property.startswith("delivery:") and custom.vendor in (None, extension.VENDOR)
    ]
    return [(custom, id_, nearest(id_, ids)) for custom, id_ in terms if id_ not in ids]


def of_promise(rule: str) -> Check:
    """The check of a rule whose fault is found while a promise is read: what cannot be watched."""

    def check(_contract: Contract, context: Context) -> Faults:
        for finding in context.promises.wrong:
            if finding.rule == rule:
                yield Fault(finding.at, finding.message, finding.mend, finding.path, (finding.path,))

    return check


def of_each(judge: Callable[[Slo, datetime], Faults]) -> Check:
    """The check of a rule that asks every promise that can be read, as of the beginning of the day."""

    def check(_contract: Contract, context: Context) -> Faults:
        now = datetime.combine(context.today, time(), UTC)
        for slo in context.promises.slos:
            yield from judge(slo, now)

    return check
