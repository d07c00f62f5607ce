"""The subscriptions of a registry before the rules, beside its contracts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from dq.contracts.access.files import FileRefused
from dq.contracts.identity import Identity
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Finding
from dq.contracts.subscriptions.subscription import Subscription, read
from dq.validators.lint.judge import MAX_OF_ONE_RULE, Gate
from dq.validators.rule import RuleScope
from dq.validators.subscribed import Subscribed


@dataclass(frozen=True, slots=True)
class SubscriptionFiles:
    """The files of subscriptions, by their names from the registry's root, in order.

    `told` are those whose findings are wanted: the others are there to be compared with. `contracts` are the
    contracts that they name, and `unclear` the ids of those that cannot be read. `base_contracts` are those
    of the base of a branch, which decide who may approve.
    """

    files: Mapping[str, bytes | FileRefused] = field(default_factory=dict)
    told: frozenset[str] = frozenset()
    contracts: Mapping[Identity, Contract] = field(default_factory=dict)
    unclear: Collection[str] = ()
    base_contracts: Mapping[Identity, Contract] = field(default_factory=dict)


Gather = Callable[[Collection[str]], SubscriptionFiles]
"""From the ids of the contracts that were read, the subscriptions to be judged with them."""


def no_subscriptions(_: Collection[str]) -> SubscriptionFiles:
    """Of a registry without any."""
    return SubscriptionFiles()


def judge_subscriptions(gate: Gate, given: SubscriptionFiles, ids: Collection[str]) -> list[Finding]:
    """What is wrong with the subscriptions, their form first. `ids` are those of all contracts read."""
    if not given.told:
        return []
    findings: list[Finding] = []
    every: list[Subscription] = []
    for file, data in given.files.items():
        if isinstance(data, FileRefused):
            made, form = None, [data.finding(file)]
        else:
            made, form = read(data, file)
        if file in given.told:
            contract = made.contract if made is not None else ""
            findings += [replace(one, contract=contract) for one in form]
        if made is not None and not any(one.severity.blocks for one in form):
            every.append(made)
    known = {*ids, *(id_ for id_, _ in given.contracts)}
    among = Subscribed(
        gate.today,
        given.contracts,
        given.unclear,
        known,
        tuple(every),
        given.told,
        base_contracts=given.base_contracts,
    )
    findings += (one for each in every if each.file in given.told for one in _faults(gate, each, among))
    return findings


def _faults(gate: Gate, one: Subscription, among: Subscribed) -> Iterator[Finding]:
    contract = among.contract(one)
    domain = contract.domain if contract is not None else None
    for used in gate.in_use(RuleScope.SUBSCRIPTION, one.file, domain):
        seen = replace(among, arguments=used.arguments) if used.arguments else among
        for number, fault in enumerate(used.rule.subscribed(one, seen), 1):
            # Many subscriptions are of one contract: a waiver names the file too.
            path = f"{one.file}#{fault.path}"
            yield Finding(
                used.rule.id, used.severity, fault.message, fault.mend, fault.at, path, one.contract
            )
            if number == MAX_OF_ONE_RULE:
                break
