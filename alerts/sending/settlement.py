"""What becomes of an operation after an answer or a search: one table for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from dq.alerts import ledger, outbox
from dq.alerts.channel import (
    Ambiguous,
    Blockage,
    Capabilities,
    Frozen,
    Gone,
    MessagePlace,
    NotHeld,
    NotSent,
    Rejected,
    Sent,
)
from dq.alerts.incident import CREATE, UPDATE
from dq.alerts.lane import Lane
from dq.alerts.route import AlertRoute
from dq.alerts.sending import claims, due, transitions
from dq.alerts.sending.claims import ClaimedRow

MAX_BACKOFF = timedelta(minutes=5)
GIVE_UP_AFTER = timedelta(hours=24)
"""How long after its resolve an incident's message is still tried."""

REFUSED_AGAIN_AFTER = timedelta(hours=1)
"""What was refused is tried again, because somebody may have mended the place."""

LOOK_AGAIN_AFTER = timedelta(seconds=10)
LOOKS = 2
"""So many searches in vain prove that a message is not there: Slack's history may lag behind."""

STOP_LOOKING_AFTER = timedelta(minutes=15)
"""If history cannot be read for so long, it is sent again with a word of warning."""

LIMITED_TARGETS = 3
"""So many targets that are limited at once, and the limit is taken for the whole channel's."""


@dataclass(slots=True)
class Desk:
    """One channel's answers in one pass, and what they came to.

    `fallbacks` are told, the first that can be, of an incident when the place that should have been told
    refuses. `copies` are messages that another sender has sent too, to be taken away again.
    """

    name: str
    can: Capabilities
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    fallbacks: Sequence[AlertRoute]
    sent: int = 0
    copies: list[MessagePlace] = field(default_factory=list)
    broken: str = ""

    def after_send(self, tx: Connection, claim: ClaimedRow, answer: object) -> None:
        """Write what the answer to a call means."""
        _AFTER_SEND[type(answer)](self, tx, claim, answer)

    def after_look(self, tx: Connection, claim: ClaimedRow, found: object) -> None:
        """Write what a search gave."""
        _AFTER_LOOK[type(found)](self, tx, claim, found)

    def tell_fallback(self, tx: Connection, lane: Lane) -> bool:
        """Let somebody else hear of the incident, unless they have; whether there is a new row for it."""
        incident = ledger.get(tx, lane.incident)
        places = [Lane(lane.incident, one.channel, one.target) for one in self.fallbacks]
        # Behind a fallback that refuses too comes the next one; what is behind the last one is nobody.
        rest = places[places.index(lane) + 1 :] if lane in places else places
        if incident is None or not rest or set(rest) & outbox.told(tx, lane.incident):
            return False
        outbox.enqueue(tx, rest[0], CREATE, incident.revision, self.now())
        ledger.log(tx, incident.id, "rerouted", incident.revision, self.now(), detail=f"{lane} to {rest[0]}")
        return True

    def backoff(self, claim: ClaimedRow) -> timedelta:
        return backoff(claim.attempt, self.jitter())

    def try_later(
        self, tx: Connection, claim: ClaimedRow, wait: timedelta, reason: str, repeat: bool = False
    ) -> None:
        if self._is_long_over(tx, claim):
            self.give_up(tx, claim, reason)
        else:
            transitions.retry(tx, claim, self.now() + wait, reason, repeat)

    def give_up(self, tx: Connection, claim: ClaimedRow, reason: str) -> None:
        again_at = None if self._is_long_over(tx, claim) else self.now() + REFUSED_AGAIN_AFTER
        transitions.bury(tx, claim, reason, self.now(), again_at)

    def wait(self, tx: Connection, claim: ClaimedRow, answer: NotSent, until: datetime) -> None:
        """Let all that the answer concerns wait."""
        if answer.concerns is Blockage.CHANNEL:
            transitions.pause(tx, self.name, until)
        elif answer.concerns is Blockage.ROUTE:
            transitions.pause(tx, self.name, until, claim.lane.target)
            if due.paused_targets(tx, self.name, self.now()) >= LIMITED_TARGETS:
                transitions.pause(tx, self.name, until)

    def _is_long_over(self, tx: Connection, claim: ClaimedRow) -> bool:
        incident = ledger.get(tx, claim.lane.incident)
        resolved_at = incident.resolved_at if incident else None
        return resolved_at is not None and self.now() - resolved_at > GIVE_UP_AFTER


def backoff(attempt: int, jitter: float) -> timedelta:
    """1 s, 2 s, 4 s and so on up to MAX_BACKOFF, and the jitter on top."""
    return min(timedelta(seconds=2 ** min(attempt - 1, 20)), MAX_BACKOFF) + timedelta(seconds=jitter)


def _sent(desk: Desk, tx: Connection, claim: ClaimedRow, answer: Sent) -> None:
    if transitions.sent(tx, claim, answer.receipt, answer.note, desk.now()):
        desk.sent += 1
    elif claim.operation != UPDATE and claims.said_elsewhere(tx, claim, answer.receipt):
        desk.copies.append(answer.receipt)


def _not_sent(desk: Desk, tx: Connection, claim: ClaimedRow, answer: NotSent) -> None:
    asked = answer.retry_after_seconds
    wait = desk.backoff(claim) if asked is None else timedelta(seconds=asked)
    desk.try_later(tx, claim, wait, answer.reason)
    desk.wait(tx, claim, answer, desk.now() + wait)


def _ambiguous(desk: Desk, tx: Connection, claim: ClaimedRow, answer: Ambiguous) -> None:
    if claim.operation == UPDATE:
        desk.try_later(tx, claim, desk.backoff(claim), answer.reason)
    elif desk.can.reconcile:
        transitions.unsure(tx, claim, desk.now(), answer.reason, looks=0)
    else:
        desk.try_later(tx, claim, desk.backoff(claim), answer.reason, repeat=True)


def _refused(desk: Desk, tx: Connection, claim: ClaimedRow, answer: Rejected) -> None:
    if answer.scope is Blockage.CHANNEL:
        # Somebody will mend it, and then it is to be said if it still holds.
        desk.broken = answer.reason
        desk.try_later(tx, claim, desk.backoff(claim), answer.reason)
        transitions.pause(tx, desk.name, desk.now() + desk.backoff(claim))
        for lane in due.waiting_lanes(tx, desk.name):
            desk.tell_fallback(tx, lane)
    else:
        desk.give_up(tx, claim, answer.reason)
        desk.tell_fallback(tx, claim.lane)


def _gone(desk: Desk, tx: Connection, claim: ClaimedRow, answer: Gone) -> None:
    if claim.operation == CREATE:
        # The digest below which it belongs was taken away: first that one again, and then this.
        if transitions.retry(tx, claim, desk.now(), answer.reason) and claim.digest:
            transitions.forget(tx, claim.digest)
            outbox.say_again(tx, claim.digest, desk.now())
    elif transitions.drop(tx, claim, answer.reason):
        transitions.forget(tx, claim.lane)
        outbox.say_again(tx, claim.lane, desk.now())


def _frozen(desk: Desk, tx: Connection, claim: ClaimedRow, answer: Frozen) -> None:  # noqa: ARG001  # as the others
    # Every step that matters has a reply of its own.
    transitions.drop(tx, claim, answer.reason)


def _absent(desk: Desk, tx: Connection, claim: ClaimedRow, answer: NotHeld) -> None:  # noqa: ARG001  # as the others
    if claim.looks + 1 >= LOOKS:
        desk.try_later(tx, claim, timedelta(0), "it was not there")
    else:
        transitions.unsure(tx, claim, desk.now() + LOOK_AGAIN_AFTER, "it is not there yet", claim.looks + 1)


def _look_later(desk: Desk, tx: Connection, claim: ClaimedRow, answer: NotSent | Ambiguous) -> None:
    if desk.now() - claim.tried_at > STOP_LOOKING_AFTER:
        desk.try_later(tx, claim, timedelta(0), answer.reason, repeat=True)
        return
    asked = answer.retry_after_seconds if isinstance(answer, NotSent) else None
    until = desk.now() + (LOOK_AGAIN_AFTER if asked is None else timedelta(seconds=asked))
    transitions.unsure(tx, claim, until, answer.reason, claim.looks)
    if isinstance(answer, NotSent):
        desk.wait(tx, claim, answer, until)


def _cannot_look(desk: Desk, tx: Connection, claim: ClaimedRow, answer: Rejected) -> None:
    desk.try_later(tx, claim, timedelta(0), answer.reason, repeat=True)


_Handler = Callable[[Desk, Connection, ClaimedRow, Any], None]

_AFTER_SEND: Mapping[type, _Handler] = {
    Sent: _sent,
    NotSent: _not_sent,
    Ambiguous: _ambiguous,
    Rejected: _refused,
    Gone: _gone,
    Frozen: _frozen,
}
_AFTER_LOOK: Mapping[type, _Handler] = {
    Sent: _sent,
    NotHeld: _absent,
    NotSent: _look_later,
    Ambiguous: _look_later,
    Rejected: _cannot_look,
}
