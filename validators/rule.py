"""What a rule is: one file on the shelf `rules/`, named after the fault that it finds.

A rule's module docstring is the user's page: a summary sentence, then the sections `Why:`, `Bad:`, `Good:`
and `Mend:`. Bad and Good are YAML of the top level, laid over a small contract (see `rule_page`), and they
are the rule's own test. All that most rules need is imported from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dq.contracts.access.files import FileRefused
from dq.contracts.model import Contract, Node
from dq.contracts.odcs import Version
from dq.contracts.shared.outcome import Location, Severity
from dq.contracts.subscriptions import Subscription
from dq.validators.context import Argument, Context, Entry, Registry, Subscribed

__all__ = [
    "Argument",
    "Check",
    "Context",
    "Contract",
    "Entry",
    "Fault",
    "Faults",
    "Registry",
    "Rule",
    "RuleScope",
    "Severity",
    "Subscribed",
    "Subscription",
    "absence",
    "among_others",
    "fault",
    "form",
    "item_fault",
    "of_change",
    "of_policy",
    "of_subscription",
]


@dataclass(frozen=True, slots=True)
class Fault:
    """What a rule found: where, what, and how to mend it.

    `path` is the place inside the document. `needs` are further paths that the statement relies on: where
    one of them had to be left out because its form is wrong, the fault is only a consequence of that, and
    nobody is told of it. A `doubt` is about what the standard allows, in the contract's own version: at most
    a warning, whatever the rule's severity, unless the policy names another one. Columns of one object with
    the same fault of one `kind` are one finding.
    """

    at: Location
    message: str
    mend: str
    path: str = ""
    needs: tuple[str, ...] = ()
    doubt: bool = False
    kind: str = ""


Faults = Iterator[Fault]
"""What the check of a rule gives."""


def fault(
    node: Node,
    key: str,
    message: str,
    mend: str,
    *,
    needs: tuple[str, ...] = (),
    doubt: bool = False,
    kind: str = "",
) -> Fault:
    """A fault of the value that a node has under this key."""
    return Fault(node.at(key), message, mend, node.path(key), needs, doubt, kind)


def item_fault(node: Node, key: str, index: int, message: str, mend: str) -> Fault:
    """A fault of one item of a list that a node has under this key."""
    return Fault(node.at(key, index), message, mend, f"{node.path(key)}[{index}]")


def absence(node: Node, message: str, mend: str, *keys: str) -> Fault:
    """A fault of a node that has none of these keys, or nothing under them.

    It stands at the first key, or where the node begins.
    """
    return Fault(node.at(keys[0]), message, mend, node.path(keys[0]), tuple(node.path(key) for key in keys))


class RuleScope(StrEnum):
    """What a rule looks at.

    `form`: the text; such a fault is found by the loader, is always an error and has no check here.
    `contract`: one contract. `registry`: one contract among all that were read. `policy`: the policy
    itself; such a fault is found while it is applied. `change`: what a branch makes of the policy.
    `subscription`: one subscription among all, with the contract that it names.
    """

    FORM = "form"
    CONTRACT = "contract"
    REGISTRY = "registry"
    POLICY = "policy"
    CHANGE = "change"
    SUBSCRIPTION = "subscription"


Check = Callable[[Contract, Context], Faults]
AmongOthers = Callable[[Entry, Registry], Faults]
OfSubscription = Callable[[Subscription, Subscribed], Faults]


def _nothing(*_: object) -> Faults:
    yield from ()


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its id, how much its fault matters by default, its page, and its check.

    `check` judges one contract, `among` one among all that were read, `subscribed` one subscription,
    whichever the scope names.
    Of a rule of `consequences`, a fault is told only where no other rule found anything in the same element.
    A `wish` is one of our own, which the standard does not have: only a policy turns it on.
    `first` and `last` are the versions of ODCS, both included, to whose contracts it applies. `after` names
    rules whose fault at the same place explains this rule's. `bad` is a document that shows the fault and
    cannot be written into a page, or why there is none. `policies`: the fragments of its page are policies,
    and not contracts.
    """

    id: str
    severity: Severity
    page: str | None
    check: Check = _nothing
    scope: RuleScope = RuleScope.CONTRACT
    among: AmongOthers = _nothing
    subscribed: OfSubscription = _nothing
    first: Version = (3, 0, 0)
    last: Version | None = None
    arguments: tuple[Argument[Any], ...] = ()
    after: tuple[str, ...] = ()
    bad: bytes | FileRefused | None = None
    policies: bool = False
    consequences: bool = False
    wish: bool = False

    def applies(self, odcs: Version) -> bool:
        """Whether it speaks about contracts of this version of the standard."""
        return self.first <= odcs and (self.last is None or odcs <= self.last)


def form(id_: str, page: str | None, bad: bytes | FileRefused | None = None) -> Rule:
    """A rule whose check is the loader."""
    return Rule(id_, Severity.ERROR, page, scope=RuleScope.FORM, bad=bad)


def among_others(id_: str, severity: Severity, page: str | None, among: AmongOthers) -> Rule:
    """A rule that needs the other contracts of the registry."""
    return Rule(id_, severity, page, scope=RuleScope.REGISTRY, among=among)


def of_policy(id_: str, severity: Severity, page: str | None) -> Rule:
    """A rule about the policy itself."""
    return Rule(id_, severity, page, scope=RuleScope.POLICY, policies=True)


def of_change(id_: str, severity: Severity, page: str | None) -> Rule:
    """A rule about what a branch makes of the policy."""
    return Rule(id_, severity, page, scope=RuleScope.CHANGE, policies=True)


def of_subscription(
    id_: str,
    severity: Severity,
    page: str | None,
    subscribed: OfSubscription,
    arguments: tuple[Argument[Any], ...] = (),
) -> Rule:
    """A rule about a subscription."""
    return Rule(id_, severity, page, scope=RuleScope.SUBSCRIPTION, subscribed=subscribed, arguments=arguments)
