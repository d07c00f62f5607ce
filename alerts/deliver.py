"""Empties the outbox: claim, send, settle, so that a crash between any two of them loses nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from dq.alerts import ledger, outbox, outbox_transitions
from dq.alerts.channel import (
    Ambiguous,
    Answer,
    Blockage,
    Frozen,
    Gone,
    Look,
    NotHeld,
    NotSent,
    Open,
    Rejected,
    Sender,
    Sent,
)
from dq.alerts.incident import CREATE, UPDATE
from dq.alerts.lane import Lane
from dq.alerts.outbox import ClaimedRow
from dq.alerts.route import CONSOLE, AlertRoute
from dq.store import Store

MAX_BACKOFF = timedelta(minutes=5)
GIVE_UP_AFTER = timedelta(hours=24)
"""How long after its resolve an incident's message is still tried."""

LOOK_AGAIN_AFTER = timedelta(seconds=10)
LOOK_BACK = timedelta(seconds=60)
LOOKS = 2
"""So many searches in vain prove that a message is not there: Slack's history may lag behind."""

STOP_LOOKING_AFTER = timedelta(minutes=15)
"""If history cannot be read for so long, it is sent again with a word of warning."""

TIRED_AFTER, REST = 3, timedelta(seconds=30)
"""So many unclear answers in a row, and a channel is left alone for a while: each costs a timeout."""


@dataclass(frozen=True, slots=True)
class Dead:
    """Something that was given up."""

    lane: Lane
    operation: str
    reason: str


@dataclass(frozen=True, slots=True)
class Drained:
    """What a drain did: `sent` and `dead` in this run, `waiting` of all that is left, and from when on.

    `broken` are the channels through which nothing can be sent, each with its reason. Somebody should look
    when `dead` or `broken` hold anything.
    """

    sent: int = 0
    waiting: int = 0
    next_at: datetime | None = None
    dead: tuple[Dead, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)


def drain(
    store: Store,
    channels: Mapping[str, Open],
    now: Callable[[], datetime],
    *,
    jitter: Callable[[], float] = lambda: 0.0,
    fallback: AlertRoute = CONSOLE,
) -> Drained:
    """Send all that is due now; what has to wait is left for the next drain.

    Any number of drains may run at once, in any number of processes. `jitter` gives seconds to add to a
    backoff. `fallback` is told of an incident when the place that should have been told refuses.
    """
    run = _Run(store, channels, now, jitter, fallback)
    while run.look() + run.send():
        pass
    with store.read() as tx:
        count, next_at = outbox.waiting(tx)
    return Drained(run.sent, count, next_at, tuple(run.dead), dict(run.broken))


def backoff(attempt: int, jitter: float) -> timedelta:
    """1 s, 2 s, 4 s and so on up to MAX_BACKOFF, and the jitter on top."""
    return min(timedelta(seconds=2 ** min(attempt - 1, 20)), MAX_BACKOFF) + timedelta(seconds=jitter)


@dataclass(slots=True)
class _Run:
    store: Store
    channels: Mapping[str, Open]
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    fallback: AlertRoute
    sent: int = 0
    dead: list[Dead] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)
    unclear: Counter[str] = field(default_factory=Counter)

    def send(self) -> int:
        """One operation in each lane that has something due; how many were tried."""
        with self.store.read() as tx:
            lanes = outbox.due(tx, self.now())
        return sum(self._send_in(lane) for lane in lanes)

    def look(self) -> int:
        """Search for all messages of which nobody knows whether they arrived; how many were searched for."""
        with self.store.write() as tx:
            outbox_transitions.expire(tx, self.now())
            lost = [
                claim for claim in outbox.ambiguous(tx, self.now()) if claim.lane.channel in self.channels
            ]
        busy: set[str] = set()
        for claim in lost:
            if claim.lane.channel in busy:
                continue
            found = _find(self.channels[claim.lane.channel], claim)
            if isinstance(found, NotSent | Ambiguous):
                busy.add(claim.lane.channel)
            with self.store.write() as tx:
                _AFTER_LOOK[type(found)](self, tx, claim, found)
        return len(lost)

    def _send_in(self, lane: Lane) -> bool:
        channel = self.channels.get(lane.channel)
        if channel is None:
            return self._no_sender(lane)
        with self.store.write() as tx:
            claim = outbox.claim(tx, lane, channel.can, self.now())
        # A process that slept through its lease must leave the rest to others.
        if claim is None or self.now() >= claim.lease_until:
            return False
        answer = _say(channel.sender, claim)
        self.unclear[lane.channel] = self.unclear[lane.channel] + 1 if isinstance(answer, Ambiguous) else 0
        with self.store.write() as tx:
            _AFTER_SEND[type(answer)](self, tx, claim, answer)
            if self.unclear[lane.channel] >= TIRED_AFTER:
                outbox_transitions.pause(tx, lane.channel, self.now() + REST)
        return True

    def _no_sender(self, lane: Lane) -> bool:
        self.broken[lane.channel] = "it is not set up here"
        with self.store.write() as tx:
            return self.tell_fallback(tx, lane)

    def tell_fallback(self, tx: Connection, lane: Lane) -> bool:
        """Let somebody else hear of the incident, unless they have; whether there is a new row for it."""
        other = Lane(lane.incident, self.fallback.channel, self.fallback.target)
        incident = ledger.get(tx, lane.incident)
        if incident is None or other == lane or other in outbox.told(tx, lane.incident):
            return False
        outbox.enqueue(tx, other, CREATE, incident.revision, self.now())
        ledger.log(tx, incident.id, "rerouted", incident.revision, self.now(), detail=f"{lane} to {other}")
        return True

    def try_later(
        self, tx: Connection, claim: ClaimedRow, wait: timedelta, reason: str, repeat: bool = False
    ) -> None:
        incident = ledger.get(tx, claim.lane.incident)
        resolved_at = incident.resolved_at if incident else None
        if resolved_at is not None and self.now() - resolved_at > GIVE_UP_AFTER:
            self.give_up(tx, claim, reason)
        else:
            outbox_transitions.retry(tx, claim, self.now() + wait, reason, repeat)

    def give_up(self, tx: Connection, claim: ClaimedRow, reason: str) -> None:
        if outbox_transitions.bury(tx, claim, reason, self.now()):
            self.dead.append(Dead(claim.lane, claim.operation, reason))

    def backoff(self, claim: ClaimedRow) -> timedelta:
        return backoff(claim.attempt, self.jitter())


def _say(sender: Sender, claim: ClaimedRow) -> Answer:
    try:
        if claim.operation == CREATE:
            return sender.create(claim.lane.target, claim.message, claim.key)
        if claim.receipt is None:
            return Gone("there is no message to change")
        if claim.operation == UPDATE:
            return sender.update(claim.receipt, claim.message)
        return sender.reply(claim.receipt, claim.message, claim.key)
    except Exception as error:  # noqa: BLE001  # one guard per channel: its fault must not silence the others
        return Ambiguous(f"the channel failed with {type(error).__name__}")


def _find(channel: Open, claim: ClaimedRow) -> Look:
    if not channel.can.reconcile:
        return Rejected("the channel cannot be searched", Blockage.CHANNEL)
    root = None if claim.operation == CREATE else claim.receipt
    try:
        return channel.sender.find(claim.lane.target, claim.key, claim.tried_at - LOOK_BACK, root)
    except Exception as error:  # noqa: BLE001  # as above
        return Ambiguous(f"the channel failed with {type(error).__name__}")


def _sent(run: _Run, tx: Connection, claim: ClaimedRow, answer: Sent) -> None:
    run.sent += outbox_transitions.sent(tx, claim, answer.receipt, answer.note, run.now())


def _not_sent(run: _Run, tx: Connection, claim: ClaimedRow, answer: NotSent) -> None:
    asked = answer.retry_after_seconds
    wait = run.backoff(claim) if asked is None else timedelta(seconds=asked)
    run.try_later(tx, claim, wait, answer.reason)
    # It concerns all that goes through the channel: a limit, or a network that is down.
    outbox_transitions.pause(tx, claim.lane.channel, run.now() + wait)


def _ambiguous(run: _Run, tx: Connection, claim: ClaimedRow, answer: Ambiguous) -> None:
    if claim.operation == UPDATE:
        run.try_later(tx, claim, run.backoff(claim), answer.reason)
    elif run.channels[claim.lane.channel].can.reconcile:
        outbox_transitions.unsure(tx, claim, run.now(), answer.reason, looks=0)
    else:
        run.try_later(tx, claim, run.backoff(claim), answer.reason, repeat=True)


def _refused(run: _Run, tx: Connection, claim: ClaimedRow, answer: Rejected) -> None:
    if answer.scope is Blockage.CHANNEL:
        # Somebody will mend it, and then it is to be said if it still holds.
        run.broken[claim.lane.channel] = answer.reason
        run.try_later(tx, claim, run.backoff(claim), answer.reason)
        outbox_transitions.pause(tx, claim.lane.channel, run.now() + run.backoff(claim))
        for lane in outbox.waiting_lanes(tx, claim.lane.channel):
            run.tell_fallback(tx, lane)
    else:
        run.give_up(tx, claim, answer.reason)
        run.tell_fallback(tx, claim.lane)


def _gone(run: _Run, tx: Connection, claim: ClaimedRow, answer: Gone) -> None:
    if outbox_transitions.drop(tx, claim, answer.reason):
        outbox_transitions.forget(tx, claim.lane)
        outbox.enqueue(tx, claim.lane, CREATE, claim.message.revision, run.now())


def _frozen(run: _Run, tx: Connection, claim: ClaimedRow, answer: Frozen) -> None:  # noqa: ARG001  # as the others
    # Every step that matters has a reply of its own.
    outbox_transitions.drop(tx, claim, answer.reason)


def _absent(run: _Run, tx: Connection, claim: ClaimedRow, answer: NotHeld) -> None:  # noqa: ARG001  # as the others
    if claim.looks + 1 >= LOOKS:
        run.try_later(tx, claim, timedelta(0), "it was not there")
    else:
        outbox_transitions.unsure(
            tx, claim, run.now() + LOOK_AGAIN_AFTER, "it is not there yet", claim.looks + 1
        )


def _look_later(run: _Run, tx: Connection, claim: ClaimedRow, answer: NotSent | Ambiguous) -> None:
    if run.now() - claim.tried_at > STOP_LOOKING_AFTER:
        run.try_later(tx, claim, timedelta(0), answer.reason, repeat=True)
        return
    asked = answer.retry_after_seconds if isinstance(answer, NotSent) else None
    wait = LOOK_AGAIN_AFTER if asked is None else timedelta(seconds=asked)
    outbox_transitions.unsure(tx, claim, run.now() + wait, answer.reason, claim.looks)
    if isinstance(answer, NotSent):
        outbox_transitions.pause(tx, claim.lane.channel, run.now() + wait)


def _cannot_look(run: _Run, tx: Connection, claim: ClaimedRow, answer: Rejected) -> None:
    run.try_later(tx, claim, timedelta(0), answer.reason, repeat=True)


_Handler = Callable[[_Run, Connection, ClaimedRow, Any], None]

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
