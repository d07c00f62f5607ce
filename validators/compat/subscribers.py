"""Whom a change hits among those who subscribed, and whom to ask about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from dq.contracts.model import Contract
from dq.contracts.subscriptions.coverage import reaches
from dq.contracts.subscriptions.subscription import Subscription

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class AffectedConsumer:
    """One subscription that a change reaches. `contact` may be empty, and so may `approvers`."""

    team: str
    purpose: str
    contact: str = ""
    approvers: tuple[str, ...] = ()
    file: str = ""

    @property
    def sentence(self) -> str:
        """The consumer in a few words: `billing (The invoices; ask #billing, ana@example.com)`."""
        ask = ", ".join(dict.fromkeys(filter(None, (self.contact, *self.approvers))))
        return f"{self.team} ({self.purpose.strip().rstrip('.')}{f'; ask {ask}' if ask else ''})"

    def as_dict(self) -> dict[str, object]:
        """The consumer as plain values."""
        return {
            "team": self.team,
            "purpose": self.purpose,
            "contact": self.contact or None,
            "approvers": list(self.approvers),
            "subscription": self.file,
        }


def affected_consumers(
    subscriptions: Iterable[Subscription], contract: Contract, path: str, today: date
) -> tuple[AffectedConsumer, ...]:
    """The consumers that a change at this path of the contract reaches, by team and purpose.

    Only subscriptions to the contract's major that hold on the day count.
    """
    found = {
        AffectedConsumer(
            one.consumer.team, one.purpose, one.consumer.contact or "", tuple(one.approvers), one.file
        )
        for one in subscriptions
        if one.identity == contract.identity and one.active(today) and reaches(one, contract, path)
    }
    return tuple(sorted(found, key=lambda one: (one.team, one.purpose, one.file)))


def subscribers_sentence(consumers: tuple[AffectedConsumer, ...], *, asked: bool) -> str:
    """Who subscribed, as a sentence with a space before it.

    That nobody did is only said where it can be known: `asked`.
    """
    if not consumers:
        return " No subscription names it." if asked else ""
    named = "; ".join(one.sentence for one in consumers[:_SHOWN])
    more = f"; and {len(consumers) - _SHOWN} more" if len(consumers) > _SHOWN else ""
    return f" Subscribed: {named}{more}."
