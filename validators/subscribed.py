"""What a rule may ask about a subscription: the contract that it names, the other subscriptions, the day."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TypeVar

from dq.contracts.identity import Identity
from dq.contracts.model import Contract
from dq.contracts.subscriptions.subscription import Subscription
from dq.validators.context import Argument

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The surroundings of one subscription. `today` is the date in UTC; `arguments` are the policy's.

    `contracts` has those of the registry that subscriptions name. `unclear` are ids that a contract seems to
    have which cannot be read: nobody can say what is in it. `ids` are further ids of the registry, as far as
    they were read. `every` has all subscriptions whose form is right, in the order of their files, and `told`
    the files whose findings are wanted. `base_contracts` are the named contracts at the base of a branch.
    """

    today: date
    contracts: Mapping[Identity, Contract] = field(default_factory=dict)
    unclear: Collection[str] = ()
    ids: Collection[str] = ()
    every: tuple[Subscription, ...] = ()
    told: frozenset[str] = frozenset()
    arguments: Mapping[str, object] = field(default_factory=dict)
    base_contracts: Mapping[Identity, Contract] = field(default_factory=dict)

    def value(self, argument: Argument[T]) -> T:
        """The policy's value of one of the rule's arguments, or its default."""
        return self.arguments.get(argument.name, argument.default)  # type: ignore[return-value]

    def contract(self, subscription: Subscription) -> Contract | None:
        """The contract of the id and major that the subscription names."""
        return self.contracts.get(subscription.identity)

    def approving_contract(self, subscription: Subscription) -> Contract | None:
        """Return the contract whose owners approve: that of the base, in its newest major for a new one.

        A contract that the base does not have speaks for itself.
        """
        base = self.base_contracts
        majors = [identity for identity in base if identity[0] == subscription.contract]
        newest = max(majors, key=lambda identity: (len(identity[1]), identity[1]), default=None)
        own = base.get(subscription.identity)
        return own or (base[newest] if newest else self.contract(subscription))

    def majors(self, id_: str) -> list[str]:
        """The majors of a contract that there are, in order."""
        majors = (major for each, major in self.contracts if each == id_)
        return sorted(majors, key=lambda one: (len(one), one))
