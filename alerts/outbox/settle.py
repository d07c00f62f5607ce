"""What becomes of a row of the outbox after an answer or a search: one table for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, case, delete, insert, literal, update

from dq.alerts import incident_store
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
from dq.alerts.outbox.next import UNPAUSED, ClaimedRow, paused_targets, said_elsewhere, waiting_lanes
from dq.alerts.outbox.rows import HEARD, Lane, enqueue, of_lane, remind, say_again, told
from dq.alerts.route import AlertRoute
from dq.alerts.tables import IN_FLIGHT, OutboxStatus, channel_pause, message, outbox
from dq.store.schema import UtcDateTime

# How saying it ended: writes to the outbox what became of a claim.

NEVER = datetime(9999, 1, 1, tzinfo=UTC)


def sent(tx: Connection, claimed: ClaimedRow, receipt: MessagePlace, note: str, now: datetime) -> bool:
    """Note that it is there; False when another sender has settled the row meanwhile."""
    if not _settle(tx, claimed, state=OutboxStatus.SENT, reason=note, reference=receipt.reference):
        return False
    revision = claimed.message.revision
    if claimed.operation == CREATE:
        tx.execute(
            insert(message).values(
                incident_id=claimed.lane.incident,
                channel=claimed.lane.channel,
                target=claimed.lane.target,
                place=receipt.place,
                reference=receipt.reference,
                thread=receipt.thread,
                created_revision=revision,
                revision=revision,
            )
        )
    elif claimed.operation == UPDATE:
        tx.execute(update(message).where(of_lane(message, claimed.lane)).values(revision=revision))
    detail = f"{claimed.operation} to {claimed.lane} {note}".strip()
    incident_store.log(tx, claimed.lane.incident, "sent", revision, now, detail=detail)
    incident = incident_store.get(tx, claimed.lane.incident)
    if incident is not None and claimed.operation != UPDATE:
        remind(tx, claimed.lane, incident, now)
    return True


def retry(tx: Connection, claimed: ClaimedRow, at: datetime, reason: str, repeat: bool = False) -> bool:
    """Let it be sent again from `at` on; `repeat` when a copy may be there already."""
    changes = {"state": OutboxStatus.READY, "not_before": at, "reason": reason, "looks": 0}
    return _settle(tx, claimed, **changes, **({"repeat": True} if repeat else {}))


def unsure(tx: Connection, claimed: ClaimedRow, at: datetime, reason: str, looks: int) -> bool:
    """Let someone look for it from `at` on."""
    changes = {"state": OutboxStatus.AMBIGUOUS, "not_before": at, "reason": reason, "looks": looks}
    return _settle(tx, claimed, **changes)


def bury(tx: Connection, claimed: ClaimedRow, reason: str, now: datetime, again_at: datetime | None) -> None:
    """Note that it was refused; it is tried again at `again_at`, or never."""
    buried = _settle(tx, claimed, state=OutboxStatus.DEAD, reason=reason, not_before=again_at or NEVER)
    if buried and not claimed.revived:
        detail = f"{claimed.operation} to {claimed.lane}: {reason}"
        incident_store.log(tx, claimed.lane.incident, "dead", claimed.message.revision, now, detail=detail)


def drop(tx: Connection, claimed: ClaimedRow, reason: str) -> bool:
    """Let it go: it is not needed any more."""
    return _settle(tx, claimed, state=OutboxStatus.DROPPED, reason=reason)


def forget(tx: Connection, lane: Lane) -> None:
    """The place does not hold the message any more."""
    tx.execute(delete(message).where(of_lane(message, lane)))


def pause(tx: Connection, channel: str, until: datetime, target: str = "") -> None:
    """Let nobody send to a target before `until`, or through the whole channel; a longer pause stays."""
    mine = (channel_pause.c.channel == channel) & (channel_pause.c.target == target)
    longer = case((channel_pause.c.until > until, channel_pause.c.until), else_=literal(until, UtcDateTime))
    if not tx.execute(update(channel_pause).where(mine).values(until=longer)).rowcount:
        tx.execute(insert(channel_pause).values(channel=channel, target=target, until=until))


def doubt(tx: Connection, channel: str, before: datetime, now: datetime) -> None:
    """Let someone look for what should have been said `before` an instant and was never tried.

    The database may have been restored from a copy that is older than the message.
    """
    forgotten = (
        (outbox.c.channel == channel)
        & (outbox.c.state == OutboxStatus.READY)
        & (outbox.c.operation == CREATE)
        & (outbox.c.attempt == 0)
        & (outbox.c.wait == "")
        & outbox.c.digest.is_(None)
        & (outbox.c.not_before < before)
        & UNPAUSED
        & HEARD
    )
    once = {"attempt": 1, "looks": 1, "tried_at": outbox.c.not_before, "rendered": outbox.c.revision}
    state = {"state": OutboxStatus.AMBIGUOUS, "not_before": now, "reason": "it waited for long"}
    tx.execute(update(outbox).where(forgotten).values(**once, **state), {"now": now})


def expire(tx: Connection, now: datetime) -> None:
    """Turn claims whose lease ran out into ambiguous ones; an update may simply be sent again."""
    over = (outbox.c.state == OutboxStatus.SENDING) & (outbox.c.lease_until <= now)
    state = case((outbox.c.operation == UPDATE, OutboxStatus.READY.value), else_=OutboxStatus.AMBIGUOUS.value)
    tx.execute(
        update(outbox).where(over).values(state=state, not_before=now, looks=0, reason="lease ran out")
    )


def _settle(tx: Connection, claimed: ClaimedRow, **values: object) -> bool:
    """Change the row if this claim still holds it, or nobody has looked for it since its lease ran out."""
    mine = (
        (outbox.c.id == claimed.id)
        & (outbox.c.attempt == claimed.attempt)
        & (outbox.c.looks == claimed.looks)
        & outbox.c.state.in_(IN_FLIGHT)
    )
    return bool(tx.execute(update(outbox).where(mine).values(lease_until=None, **values)).rowcount)


# What becomes of an operation after an answer or a search: one table for each.

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
        incident = incident_store.get(tx, lane.incident)
        places = [Lane(lane.incident, one.channel, one.target) for one in self.fallbacks]
        # Behind a fallback that refuses too comes the next one; what is behind the last one is nobody.
        rest = places[places.index(lane) + 1 :] if lane in places else places
        if incident is None or not rest or set(rest) & told(tx, lane.incident):
            return False
        enqueue(tx, rest[0], CREATE, incident.revision, self.now())
        incident_store.log(
            tx, incident.id, "rerouted", incident.revision, self.now(), detail=f"{lane} to {rest[0]}"
        )
        return True

    def backoff(self, claim: ClaimedRow) -> timedelta:
        return backoff(claim.attempt, self.jitter())

    def try_later(
        self, tx: Connection, claim: ClaimedRow, wait: timedelta, reason: str, repeat: bool = False
    ) -> None:
        if self._is_long_over(tx, claim):
            self.give_up(tx, claim, reason)
        else:
            retry(tx, claim, self.now() + wait, reason, repeat)

    def give_up(self, tx: Connection, claim: ClaimedRow, reason: str) -> None:
        again_at = None if self._is_long_over(tx, claim) else self.now() + REFUSED_AGAIN_AFTER
        bury(tx, claim, reason, self.now(), again_at)

    def wait(self, tx: Connection, claim: ClaimedRow, answer: NotSent, until: datetime) -> None:
        """Let all that the answer concerns wait."""
        if answer.concerns is Blockage.CHANNEL:
            pause(tx, self.name, until)
        elif answer.concerns is Blockage.ROUTE:
            pause(tx, self.name, until, claim.lane.target)
            if paused_targets(tx, self.name, self.now()) >= LIMITED_TARGETS:
                pause(tx, self.name, until)

    def _is_long_over(self, tx: Connection, claim: ClaimedRow) -> bool:
        incident = incident_store.get(tx, claim.lane.incident)
        resolved_at = incident.resolved_at if incident else None
        return resolved_at is not None and self.now() - resolved_at > GIVE_UP_AFTER


def backoff(attempt: int, jitter: float) -> timedelta:
    """1 s, 2 s, 4 s and so on up to MAX_BACKOFF, and the jitter on top."""
    return min(timedelta(seconds=2 ** min(attempt - 1, 20)), MAX_BACKOFF) + timedelta(seconds=jitter)


def _sent(desk: Desk, tx: Connection, claim: ClaimedRow, answer: Sent) -> None:
    if sent(tx, claim, answer.receipt, answer.note, desk.now()):
        desk.sent += 1
    elif claim.operation != UPDATE and said_elsewhere(tx, claim, answer.receipt):
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
        unsure(tx, claim, desk.now(), answer.reason, looks=0)
    else:
        desk.try_later(tx, claim, desk.backoff(claim), answer.reason, repeat=True)


def _refused(desk: Desk, tx: Connection, claim: ClaimedRow, answer: Rejected) -> None:
    if answer.scope is Blockage.CHANNEL:
        # Somebody will mend it, and then it is to be said if it still holds.
        desk.broken = answer.reason
        desk.try_later(tx, claim, desk.backoff(claim), answer.reason)
        pause(tx, desk.name, desk.now() + desk.backoff(claim))
        for lane in waiting_lanes(tx, desk.name):
            desk.tell_fallback(tx, lane)
    else:
        desk.give_up(tx, claim, answer.reason)
        desk.tell_fallback(tx, claim.lane)


def _gone(desk: Desk, tx: Connection, claim: ClaimedRow, answer: Gone) -> None:
    if claim.operation == CREATE:
        # The digest below which it belongs was taken away: first that one again, and then this.
        if retry(tx, claim, desk.now(), answer.reason) and claim.digest:
            forget(tx, claim.digest)
            say_again(tx, claim.digest, desk.now())
    elif drop(tx, claim, answer.reason):
        forget(tx, claim.lane)
        say_again(tx, claim.lane, desk.now())


def _frozen(desk: Desk, tx: Connection, claim: ClaimedRow, answer: Frozen) -> None:  # noqa: ARG001  # as the others
    # Every step that matters has a reply of its own.
    drop(tx, claim, answer.reason)


def _absent(desk: Desk, tx: Connection, claim: ClaimedRow, answer: NotHeld) -> None:  # noqa: ARG001  # as the others
    if claim.looks + 1 >= LOOKS:
        desk.try_later(tx, claim, timedelta(0), "it was not there")
    else:
        unsure(tx, claim, desk.now() + LOOK_AGAIN_AFTER, "it is not there yet", claim.looks + 1)


def _look_later(desk: Desk, tx: Connection, claim: ClaimedRow, answer: NotSent | Ambiguous) -> None:
    if desk.now() - claim.tried_at > STOP_LOOKING_AFTER:
        desk.try_later(tx, claim, timedelta(0), answer.reason, repeat=True)
        return
    asked = answer.retry_after_seconds if isinstance(answer, NotSent) else None
    until = desk.now() + (LOOK_AGAIN_AFTER if asked is None else timedelta(seconds=asked))
    unsure(tx, claim, until, answer.reason, claim.looks)
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
