"""Consumer that needs more than the contract promises.

Why: The consumer relies on a time or a rule that nobody has promised, and is only notified when the promise
is broken.

Bad:
    needs: {quality: [orders.amount.required]}

Good:
    needs: {quality: [orders.amount.logicalType]}

How to fix: Agree with the owners on an earlier delivery or another rule, and change the contract; or write
what it promises. Grace counts: a delivery due at 07:00 with 45 minutes of grace is promised by 07:45.
"""

from collections.abc import Iterator
from datetime import datetime

from dq.contracts.model import Contract
from dq.contracts.needs import first_late_promise, needed_clauses, needs_problem, similar_clause
from dq.contracts.schedule.calendar import load_zone
from dq.contracts.slo import Slo, read_slos
from dq.contracts.subscriptions import Needs, covered_objects
from dq.validators.rule import (
    Rule,
    Severity,
    Subscription,
    SubscriptionContext,
    Violation,
    Violations,
    item_violation,
    subscription_rule,
    violation,
)


def check(subscription: Subscription, context: SubscriptionContext) -> Violations:
    contract, needs = context.contract(subscription), subscription.needs
    if contract is None or needs is None:
        return
    for entry in needed_clauses(subscription, contract):
        if not entry.clauses:
            similar = similar_clause(entry.text, contract)
            hint = (
                f"Did you mean {similar!r}?"
                if similar
                else "Write object.column.rule, e.g. orders.id.required."
            )
            message = f"{contract.id!r} has no clause {entry.text!r}."
            yield item_violation(needs, "quality", entry.index, message, hint)
    if needs.by is not None and needs_problem(needs) is None:
        yield from _late_promises(subscription, contract, needs, context)


def _late_promises(
    subscription: Subscription, contract: Contract, needs: Needs, context: SubscriptionContext
) -> Iterator[Violation]:
    slos, _ = read_slos(contract)
    for part in covered_objects(subscription, contract):
        own_slos = [slo for slo in slos if slo.object.name == part.object.name]
        late = [
            (slo, due_at) for slo in own_slos if (due_at := first_late_promise(needs, slo, context.today))
        ]
        if own_slos and len(late) < len(own_slos):
            continue
        need = f"{subscription.consumer.team} needs {part.object.name} by {needs.by} {needs.timezone}"
        hint = "Agree on an earlier delivery with the owners, or write the time that is promised."
        if not late:
            message = f"{need}, but {contract.id!r} has no delivery SLO for it."
        else:
            message = f"{need}, but {_promise(*late[0], needs)}."
        yield violation(needs, "by", message, hint)


def _promise(slo: Slo, due_at: datetime, needs: Needs) -> str:
    local = due_at.astimezone(load_zone(needs.timezone))
    grace = f" with {slo.delivery.grace} grace" if slo.grace else ""
    return f"{slo.id!r} promises {local:%Y-%m-%d %H:%M %Z}{grace}"


RULE: Rule = subscription_rule("subscription-need-unmet", Severity.WARNING, __doc__, check)
