"""Draining of the outbox: lease, send, settle; and undelivered notifications by target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Select, case, delete, func, insert, literal, select, update

from dq.alerts import incident_store, suppression
from dq.alerts.channel import (
    Capabilities,
    FailureScope,
    LookupMiss,
    LookupResult,
    MessageNotEditable,
    MessageNotFound,
    MessageRef,
    OpenChannel,
    PermanentFailure,
    ReconcilingSender,
    RetryableFailure,
    Sender,
    SendResult,
    Sent,
    UnconfirmedSend,
    UpdatingSender,
)
from dq.alerts.incident import CREATE, DIGEST_CONTRACT, UPDATE, IncidentState
from dq.alerts.outbox import (
    IS_OVERDUE,
    NOT_MUTED,
    UNPAUSED,
    DueStream,
    LeasedRow,
    NotificationStream,
    count_overdue,
    count_paused_targets,
    delivered_elsewhere,
    due_streams,
    due_targets,
    enqueue,
    in_stream,
    lease_next,
    lookup_rows,
    next_resume_at,
    notified_streams,
    remind,
    requeue,
    same_target,
    unsettled_streams,
)
from dq.alerts.route import CONSOLE, AlertRoute
from dq.alerts.tables import IN_FLIGHT, WAITING, OutboxStatus, channel_pause, incident, message, outbox
from dq.contracts.incident import IncidentKey
from dq.contracts.outcome import Severity
from dq.store import Store
from dq.store.schema import UtcDateTime

# Transitions of leased rows.

NEVER = datetime(9999, 1, 1, tzinfo=UTC)


def mark_sent(tx: Connection, leased: LeasedRow, receipt: MessageRef, note: str, now: datetime) -> bool:
    """Mark the row as sent. Returns False if another sender has settled it meanwhile."""
    if not _settle(tx, leased, state=OutboxStatus.SENT, reason=note, reference=receipt.reference):
        return False
    revision = leased.message.revision
    if leased.operation == CREATE:
        tx.execute(
            insert(message).values(
                incident_id=leased.stream.incident,
                channel=leased.stream.channel,
                target=leased.stream.target,
                place=receipt.place,
                reference=receipt.reference,
                thread=receipt.thread,
                created_revision=revision,
                revision=revision,
            )
        )
    elif leased.operation == UPDATE:
        tx.execute(update(message).where(in_stream(message, leased.stream)).values(revision=revision))
    detail = f"{leased.operation} to {leased.stream} {note}".strip()
    incident_store.log(tx, leased.stream.incident, "sent", revision, now, detail=detail)
    incident = incident_store.get(tx, leased.stream.incident)
    if incident is not None and leased.operation != UPDATE:
        remind(tx, leased.stream, incident, now)
    return True


def retry(tx: Connection, leased: LeasedRow, not_before: datetime, reason: str, repeat: bool = False) -> bool:
    """Schedule a retry; `repeat` if a copy may have been delivered already."""
    changes = {"state": OutboxStatus.READY, "not_before": not_before, "reason": reason, "looks": 0}
    return _settle(tx, leased, **changes, **({"repeat": True} if repeat else {}))


def mark_unconfirmed(
    tx: Connection, leased: LeasedRow, not_before: datetime, reason: str, lookups: int
) -> bool:
    """Mark the row as unconfirmed, and schedule its lookup."""
    changes = {"state": OutboxStatus.AMBIGUOUS, "not_before": not_before, "reason": reason, "looks": lookups}
    return _settle(tx, leased, **changes)


def dead_letter(
    tx: Connection, leased: LeasedRow, reason: str, now: datetime, retry_at: datetime | None
) -> None:
    """Mark the row as rejected; it is retried at `retry_at`, or never if None."""
    settled = _settle(tx, leased, state=OutboxStatus.DEAD, reason=reason, not_before=retry_at or NEVER)
    if settled and not leased.was_rejected:
        detail = f"{leased.operation} to {leased.stream}: {reason}"
        incident_store.log(tx, leased.stream.incident, "dead", leased.message.revision, now, detail=detail)


def drop(tx: Connection, leased: LeasedRow, reason: str) -> bool:
    """Drop a row that is not needed."""
    return _settle(tx, leased, state=OutboxStatus.DROPPED, reason=reason)


def delete_message(tx: Connection, stream: NotificationStream) -> None:
    """Delete the record of a stream's message, which does not exist at the target any longer."""
    tx.execute(delete(message).where(in_stream(message, stream)))


def pause(tx: Connection, channel: str, until: datetime, target: str = "") -> None:
    """Pause a target, or with an empty target the whole channel; a longer pause is kept."""
    matching = (channel_pause.c.channel == channel) & (channel_pause.c.target == target)
    longer = case((channel_pause.c.until > until, channel_pause.c.until), else_=literal(until, UtcDateTime))
    if not tx.execute(update(channel_pause).where(matching).values(until=longer)).rowcount:
        tx.execute(insert(channel_pause).values(channel=channel, target=target, until=until))


def mark_stale_unconfirmed(tx: Connection, channel: str, before: datetime, now: datetime) -> None:
    """Mark rows as unconfirmed that should have been sent `before` an instant and were never tried.

    The database may have been restored from a backup that is older than the message. Rows that were silenced
    until after that instant, or until their incident had ended, need not have been sent.
    """
    silenced = select(incident.c.id).where(
        incident.c.id == outbox.c.incident_id,
        (incident.c.silenced_until > before) | (incident.c.silenced_until > incident.c.resolved_at),
    )
    is_stale = (
        (outbox.c.channel == channel)
        & (outbox.c.state == OutboxStatus.READY)
        & (outbox.c.operation == CREATE)
        & (outbox.c.attempt == 0)
        & (outbox.c.wait == "")
        & outbox.c.digest.is_(None)
        & (outbox.c.not_before < before)
        & UNPAUSED
        & NOT_MUTED
        & ~silenced.exists()
    )
    first_lookup = {"attempt": 1, "looks": 1, "tried_at": outbox.c.not_before, "rendered": outbox.c.revision}
    state = {"state": OutboxStatus.AMBIGUOUS, "not_before": now, "reason": "waited too long"}
    tx.execute(update(outbox).where(is_stale).values(**first_lookup, **state), {"now": now})


def expire_leases(tx: Connection, now: datetime) -> None:
    """Mark rows with an expired lease as unconfirmed; updates are simply sent again."""
    is_expired = (outbox.c.state == OutboxStatus.SENDING) & (outbox.c.lease_until <= now)
    state = case((outbox.c.operation == UPDATE, OutboxStatus.READY.value), else_=OutboxStatus.AMBIGUOUS.value)
    tx.execute(
        update(outbox).where(is_expired).values(state=state, not_before=now, looks=0, reason="lease expired")
    )


def _settle(tx: Connection, leased: LeasedRow, **values: object) -> bool:
    """Change the row if this lease is still valid, or if it expired without a lookup since."""
    still_leased = (
        (outbox.c.id == leased.id)
        & (outbox.c.attempt == leased.attempt)
        & (outbox.c.looks == leased.lookups)
        & outbox.c.state.in_(IN_FLIGHT)
    )
    return bool(tx.execute(update(outbox).where(still_leased).values(lease_until=None, **values)).rowcount)


# Handling of send and lookup results: one table for each.

MAX_BACKOFF = timedelta(minutes=5)
GIVE_UP_AFTER = timedelta(hours=24)
"""Time after the end of an incident in which its messages are still retried."""

RETRY_REJECTED_AFTER = timedelta(hours=1)
"""Rejected messages are retried, because the target may have been fixed."""

NEXT_LOOKUP_AFTER = timedelta(seconds=10)
MAX_LOOKUPS = 2
"""Number of lookup misses that prove a message was not delivered; Slack's history may lag behind."""

STOP_LOOKUPS_AFTER = timedelta(minutes=15)
"""If lookups fail for this time, the message is sent again with a repeat note."""

LIMITED_TARGETS = 3
"""With this many rate-limited targets at once, the whole channel is paused."""


@dataclass(slots=True)
class ResultHandler:
    """Applies send and lookup results of one channel in one pass.

    `fallbacks` are notified, the first that accepts, if the target of an incident rejects a message. `copies`
    are duplicates of messages that another sender delivered too, to be retracted.
    """

    name: str
    can: Capabilities
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    fallbacks: Sequence[AlertRoute]
    sent: int = 0
    copies: list[MessageRef] = field(default_factory=list)
    broken: str = ""

    def after_send(self, tx: Connection, leased: LeasedRow, answer: object) -> None:
        """Apply the result of a send."""
        _AFTER_SEND[type(answer)](self, tx, leased, answer)

    def after_lookup(self, tx: Connection, leased: LeasedRow, result: object) -> None:
        """Apply the result of a lookup."""
        _AFTER_LOOKUP[type(result)](self, tx, leased, result)

    def notify_fallback(self, tx: Connection, stream: NotificationStream) -> bool:
        """Enqueue the incident for the next fallback, unless one was notified. Returns True if a row was
        added.

        A resolved incident is not announced to a fallback: see `outbox.select_next`.
        """
        incident = incident_store.get(tx, stream.incident)
        if incident is None or incident.state is IncidentState.RESOLVED:
            return False
        streams = [
            NotificationStream(stream.incident, route.channel, route.target) for route in self.fallbacks
        ]
        # If a fallback rejects too, the next one is used.
        remaining = streams[streams.index(stream) + 1 :] if stream in streams else streams
        if not remaining or set(remaining) & notified_streams(tx, stream.incident):
            return False
        enqueue(tx, remaining[0], CREATE, incident.revision, self.now())
        incident_store.log(
            tx, incident.id, "rerouted", incident.revision, self.now(), detail=f"{stream} to {remaining[0]}"
        )
        return True

    def backoff(self, leased: LeasedRow) -> timedelta:
        return backoff(leased.attempt, self.jitter())

    def retry_later(
        self, tx: Connection, leased: LeasedRow, delay: timedelta, reason: str, repeat: bool = False
    ) -> None:
        if self._is_long_resolved(tx, leased):
            self.give_up(tx, leased, reason)
        else:
            retry(tx, leased, self.now() + delay, reason, repeat)

    def give_up(self, tx: Connection, leased: LeasedRow, reason: str) -> None:
        retry_at = None if self._is_long_resolved(tx, leased) else self.now() + RETRY_REJECTED_AFTER
        dead_letter(tx, leased, reason, self.now(), retry_at)

    def pause_affected(
        self, tx: Connection, leased: LeasedRow, answer: RetryableFailure, until: datetime
    ) -> None:
        """Pause the scope of the failure."""
        if answer.scope is FailureScope.CHANNEL:
            pause(tx, self.name, until)
        elif answer.scope is FailureScope.ROUTE:
            pause(tx, self.name, until, leased.stream.target)
            if count_paused_targets(tx, self.name, self.now()) >= LIMITED_TARGETS:
                pause(tx, self.name, until)

    def _is_long_resolved(self, tx: Connection, leased: LeasedRow) -> bool:
        incident = incident_store.get(tx, leased.stream.incident)
        resolved_at = incident.resolved_at if incident else None
        return resolved_at is not None and self.now() - resolved_at > GIVE_UP_AFTER


def backoff(attempt: int, jitter: float) -> timedelta:
    """Return 1 s, 2 s, 4 s and so on up to MAX_BACKOFF, plus the jitter in seconds."""
    return min(timedelta(seconds=2 ** min(attempt - 1, 20)), MAX_BACKOFF) + timedelta(seconds=jitter)


def _on_sent(handler: ResultHandler, tx: Connection, leased: LeasedRow, answer: Sent) -> None:
    if mark_sent(tx, leased, answer.receipt, answer.note, handler.now()):
        handler.sent += 1
    elif leased.operation != UPDATE and delivered_elsewhere(tx, leased, answer.receipt):
        handler.copies.append(answer.receipt)


def _on_retryable_failure(
    handler: ResultHandler, tx: Connection, leased: LeasedRow, answer: RetryableFailure
) -> None:
    retry_after = answer.retry_after_seconds
    delay = handler.backoff(leased) if retry_after is None else timedelta(seconds=retry_after)
    handler.retry_later(tx, leased, delay, answer.reason)
    handler.pause_affected(tx, leased, answer, handler.now() + delay)


def _on_unconfirmed(
    handler: ResultHandler, tx: Connection, leased: LeasedRow, answer: UnconfirmedSend
) -> None:
    if leased.operation == UPDATE:
        handler.retry_later(tx, leased, handler.backoff(leased), answer.reason)
    elif handler.can.reconcile:
        mark_unconfirmed(tx, leased, handler.now(), answer.reason, lookups=0)
    else:
        handler.retry_later(tx, leased, handler.backoff(leased), answer.reason, repeat=True)


def _on_permanent_failure(
    handler: ResultHandler, tx: Connection, leased: LeasedRow, answer: PermanentFailure
) -> None:
    if answer.scope is FailureScope.CHANNEL:
        # Retried, because the channel may be fixed.
        handler.broken = answer.reason
        handler.retry_later(tx, leased, handler.backoff(leased), answer.reason)
        pause(tx, handler.name, handler.now() + handler.backoff(leased))
        for stream in unsettled_streams(tx, handler.name):
            handler.notify_fallback(tx, stream)
    else:
        handler.give_up(tx, leased, answer.reason)
        handler.notify_fallback(tx, leased.stream)


def _on_message_not_found(
    handler: ResultHandler, tx: Connection, leased: LeasedRow, answer: MessageNotFound
) -> None:
    if leased.operation == CREATE:
        # The digest of this message was deleted, and is recreated first.
        if retry(tx, leased, handler.now(), answer.reason) and leased.digest:
            delete_message(tx, leased.digest)
            requeue(tx, leased.digest, handler.now())
    elif drop(tx, leased, answer.reason):
        delete_message(tx, leased.stream)
        requeue(tx, leased.stream, handler.now())


def _on_message_not_editable(
    handler: ResultHandler,  # noqa: ARG001  # the signature of every result function
    tx: Connection,
    leased: LeasedRow,
    answer: MessageNotEditable,
) -> None:
    # Important steps have their own replies.
    drop(tx, leased, answer.reason)


def _on_lookup_miss(handler: ResultHandler, tx: Connection, leased: LeasedRow, answer: LookupMiss) -> None:  # noqa: ARG001
    if leased.lookups + 1 >= MAX_LOOKUPS:
        handler.retry_later(tx, leased, timedelta(0), "not found in the channel")
    else:
        mark_unconfirmed(
            tx, leased, handler.now() + NEXT_LOOKUP_AFTER, "not found in the channel yet", leased.lookups + 1
        )


def _on_lookup_failure(
    handler: ResultHandler, tx: Connection, leased: LeasedRow, answer: RetryableFailure | UnconfirmedSend
) -> None:
    if handler.now() - leased.tried_at > STOP_LOOKUPS_AFTER:
        handler.retry_later(tx, leased, timedelta(0), answer.reason, repeat=True)
        return
    retry_after = answer.retry_after_seconds if isinstance(answer, RetryableFailure) else None
    until = handler.now() + (NEXT_LOOKUP_AFTER if retry_after is None else timedelta(seconds=retry_after))
    mark_unconfirmed(tx, leased, until, answer.reason, leased.lookups)
    if isinstance(answer, RetryableFailure):
        handler.pause_affected(tx, leased, answer, until)


def _on_lookup_rejected(
    handler: ResultHandler, tx: Connection, leased: LeasedRow, answer: PermanentFailure
) -> None:
    handler.retry_later(tx, leased, timedelta(0), answer.reason, repeat=True)


_Handler = Callable[[ResultHandler, Connection, LeasedRow, Any], None]

_AFTER_SEND: Mapping[type, _Handler] = {
    Sent: _on_sent,
    RetryableFailure: _on_retryable_failure,
    UnconfirmedSend: _on_unconfirmed,
    PermanentFailure: _on_permanent_failure,
    MessageNotFound: _on_message_not_found,
    MessageNotEditable: _on_message_not_editable,
}
_AFTER_LOOKUP: Mapping[type, _Handler] = {
    Sent: _on_sent,
    LookupMiss: _on_lookup_miss,
    RetryableFailure: _on_lookup_failure,
    UnconfirmedSend: _on_lookup_failure,
    PermanentFailure: _on_lookup_rejected,
}


# Undelivered notifications by target, with age and last reason.

STUCK_AFTER = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class UndeliveredNotifications:
    """Undelivered notifications of one target: number, age, and a reason.

    `rejected`: the target rejects them and must be fixed; they are retried every hour. `stuck`: one was
    rejected, or has been retried for longer than STUCK_AFTER.
    """

    channel: str
    target: str
    count: int
    since: datetime
    reason: str
    rejected: bool
    stuck: bool

    @property
    def place(self) -> str:
        """The target as in routes: `slack:#orders-alerts`."""
        return f"{self.channel}:{self.target}" if self.target else self.channel


def is_empty(tx: Connection) -> bool:
    """True if every message was sent or dropped, so that a drain has nothing to do."""
    unsettled = outbox.c.state.in_((*WAITING, OutboxStatus.DEAD))
    return tx.execute(select(outbox.c.id).where(unsettled).limit(1)).first() is None


def rejected(tx: Connection) -> list[UndeliveredNotifications]:
    """Return rejected notifications by target, until they are accepted or dismissed; oldest first."""
    return _undelivered(tx, _REJECTED, None)


def all_undelivered(tx: Connection, now: datetime) -> list[UndeliveredNotifications]:
    """Return rejected notifications by target, then the overdue ones."""
    return [*rejected(tx), *_undelivered(tx, _WAITING, now)]


def dismiss(tx: Connection, channel: str, target: str, user: str, now: datetime) -> int:
    """Drop the rejected messages of a target and return their number. It is logged in the incidents'
    histories.
    """
    is_rejected = (
        (outbox.c.channel == channel) & (outbox.c.target == target) & (outbox.c.state == OutboxStatus.DEAD)
    )
    rows = tx.execute(
        select(outbox.c.incident_id, outbox.c.operation, incident.c.revision)
        .join(incident, incident.c.id == outbox.c.incident_id)
        .where(is_rejected)
    ).all()
    for row in rows:
        detail = f"{row.operation} to {channel} {target}".strip()
        incident_store.log(tx, row.incident_id, "dismissed", row.revision, now, detail=f"{detail}, by {user}")
    dropped = {"state": OutboxStatus.DROPPED, "reason": f"dismissed by {user}"}
    # Members of a rejected digest would wait forever.
    at_target = (outbox.c.channel == channel) & (outbox.c.target == target)
    tx.execute(update(outbox).where(at_target, _waits_for_rejected_digest()).values(**dropped))
    tx.execute(update(outbox).where(is_rejected).values(**dropped))
    return len(rows)


def reroute(
    tx: Connection,
    routes_for: Callable[[IncidentKey, Severity], Sequence[AlertRoute] | None],
    now: datetime,
) -> int:
    """Reroute rejected messages of open incidents whose routes have changed; return their number.

    `routes_for` returns the current routes of an incident, preferred ones first, or None to leave it
    unchanged.
    """
    rows = tx.execute(
        select(outbox.c.id, outbox.c.incident_id, outbox.c.channel, outbox.c.target)
        .join(incident, incident.c.id == outbox.c.incident_id)
        .where(
            (outbox.c.state == OutboxStatus.DEAD) | _waits_for_rejected_digest(),
            outbox.c.operation == CREATE,
            incident.c.resolved_at.is_(None),
        )
    ).all()
    moved = 0
    for row in rows:
        stored = incident_store.get(tx, row.incident_id)
        routes = routes_for(stored.key, stored.severity) if stored else None
        old_stream = NotificationStream(row.incident_id, row.channel, row.target)
        streams = [NotificationStream(row.incident_id, route.channel, route.target) for route in routes or ()]
        if stored is None or not streams or old_stream in streams:
            continue
        reason = "the contract's route changed"
        tx.execute(
            update(outbox).where(outbox.c.id == row.id).values(state=OutboxStatus.DROPPED, reason=reason)
        )
        if streams[0] not in notified_streams(tx, row.incident_id):
            enqueue(tx, streams[0], CREATE, stored.revision, now)
        incident_store.log(
            tx, stored.id, "rerouted", stored.revision, now, detail=f"{old_stream} to {streams[0]}"
        )
        moved += 1
    if moved:
        # Drop rejected digests without waiting members.
        tx.execute(
            update(outbox)
            .where(_is_rejected_digest(), ~_waiting_members.exists())
            .values(state=OutboxStatus.DROPPED, reason="all its incidents are reported elsewhere")
        )
    return moved


_digest = outbox.alias()
_waiting_members = select(_digest.c.id).where(
    _digest.c.digest == outbox.c.incident_id,
    same_target(_digest),
    _digest.c.state.in_(WAITING),
)


def _is_rejected_digest() -> ColumnElement[bool]:
    """Return the condition that a row is the rejected message of a digest."""
    digests = select(incident.c.id).where(incident.c.contract == DIGEST_CONTRACT)
    is_dead = (outbox.c.state == OutboxStatus.DEAD) & (outbox.c.operation == CREATE)
    return is_dead & outbox.c.incident_id.in_(digests)


def _waits_for_rejected_digest() -> ColumnElement[bool]:
    """Return the condition that an unsent row waits for a rejected digest."""
    rejected_digest = select(_digest.c.id).where(
        _digest.c.incident_id == outbox.c.digest,
        same_target(_digest),
        _digest.c.operation == CREATE,
        _digest.c.state == OutboxStatus.DEAD,
    )
    is_waiting = (outbox.c.state == OutboxStatus.READY) & (outbox.c.operation == CREATE)
    return is_waiting & (outbox.c.attempt == 0) & rejected_digest.exists()


def _by_target(condition: ColumnElement[bool]) -> Select[Any]:
    # The reason of any row of a target; targets rarely have several reasons.
    return (
        select(
            outbox.c.channel,
            outbox.c.target,
            func.count().label("number"),
            func.min(incident.c.opened_at, type_=UtcDateTime).label("since"),
            func.max(outbox.c.reason).label("reason"),
            func.min(outbox.c.tried_at, type_=UtcDateTime).label("tried_at"),
        )
        .join(incident, incident.c.id == outbox.c.incident_id)
        .where(condition)
        .group_by(outbox.c.channel, outbox.c.target)
        .order_by(func.min(incident.c.opened_at))
    )


_REJECTED = _by_target(outbox.c.state == OutboxStatus.DEAD)
_WAITING = _by_target(outbox.c.state.in_(WAITING) & IS_OVERDUE)


def _undelivered(tx: Connection, query: Select[Any], now: datetime | None) -> list[UndeliveredNotifications]:
    """Return undelivered notifications by target; `now` is None for rejected ones."""
    return [
        UndeliveredNotifications(
            row.channel,
            row.target,
            row.number,
            row.since,
            row.reason,
            rejected=now is None,
            stuck=now is None or (row.tried_at is not None and now - row.tried_at > STUCK_AFTER),
        )
        for row in tx.execute(query, {"now": now} if now else {})
    ]


# Draining: lease, send, settle. A crash between any two steps loses nothing.
#
# Channels are drained concurrently, so that a hanging channel does not delay the others. Within a channel,
# targets take turns, and messages that open or end an incident go first.

LOOK_BACK = timedelta(seconds=60)

STALE_AFTER = timedelta(minutes=10)
"""Rows that were not tried for this time are looked up first: the store may be a restored backup."""

MAX_UNCLEAR, UNCLEAR_PAUSE = 3, timedelta(seconds=30)
"""After this many consecutive unconfirmed sends a channel is paused for a while: each costs a timeout."""


@dataclass(frozen=True, slots=True)
class DrainResult:
    """Result of a drain: messages `sent` in this run, `overdue` ones left, and when the next can be
    sent.

    `broken` are the unusable channels, each with its reason. `undelivered` are all rejected and overdue
    notifications, also of earlier runs.
    """

    sent: int = 0
    overdue: int = 0
    next_at: datetime | None = None
    broken: Mapping[str, str] = field(default_factory=dict)
    undelivered: tuple[UndeliveredNotifications, ...] = ()


def drain(
    store: Store,
    channels: Mapping[str, OpenChannel],
    now: Callable[[], datetime],
    *,
    sleep: Callable[[float], object] = lambda _: None,
    patience: timedelta = timedelta(0),
    jitter: Callable[[], float] = lambda: 0.0,
    fallbacks: Sequence[AlertRoute] = (CONSOLE,),
) -> DrainResult:
    """Send everything that is due, or becomes due within `patience`.

    Any number of drains may run concurrently, in any number of processes. `sleep` waits for seconds of the
    clock `now`. `jitter` returns seconds to add to a backoff. `fallbacks` are notified, the first that
    accepts, if the target of an incident rejects a message.
    """
    run = _DrainRun(store, channels, now, jitter, fallbacks)
    run.run_until(now() + patience, sleep)
    with store.read() as tx:
        count, next_at = count_overdue(tx, now())
        undelivered = all_undelivered(tx, now())
    return DrainResult(run.sent, count, next_at, dict(run.broken), tuple(undelivered))


@dataclass(slots=True)
class _DrainRun:
    store: Store
    channels: Mapping[str, OpenChannel]
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    fallbacks: Sequence[AlertRoute]
    sent: int = 0
    broken: dict[str, str] = field(default_factory=dict)
    # Each key is accessed only by the pass of its channel.
    unclear: Counter[str] = field(default_factory=Counter)
    paced_until: dict[tuple[str, str], datetime] = field(default_factory=dict)

    def run_until(self, until: datetime, sleep: Callable[[float], object]) -> None:
        """Run passes of the channels with due rows until none is due before `until`."""
        busy: dict[Future[tuple[ResultHandler, int, datetime]], str] = {}
        # Channels without progress, each with the instant of its last pass.
        idle_since: dict[str, datetime] = {}
        with ThreadPoolExecutor(max_workers=max(len(self.channels), 1)) as pool:
            while True:
                checked_at = self.now()
                due_channels = self._due_channels() - {*busy.values()} - {*idle_since}
                for name in due_channels:
                    if name in self.channels:
                        busy[pool.submit(self._run_channel, name, checked_at)] = name
                    elif name not in self.broken and self._notify_fallbacks(name):
                        # Progress in one channel may enqueue rows for others.
                        idle_since = {name: checked_at}
                    else:
                        idle_since[name] = checked_at
                if due_channels and not busy and self._due_channels() - {*idle_since}:
                    continue
                wake_at = self._wake_at(min([checked_at, *idle_since.values()]), until)
                seconds = None if wake_at is None else max((wake_at - self.now()).total_seconds(), 0.001)
                if busy:
                    done = wait(busy, seconds, FIRST_COMPLETED).done
                    for future in done:
                        name, (handler, attempts, idle_at) = busy.pop(future), future.result()
                        self._add(handler)
                        idle_since = {} if attempts else {**idle_since, name: idle_at}
                    if not done:
                        idle_since.clear()
                elif seconds is None:
                    return
                else:
                    sleep(seconds)
                    idle_since.clear()

    def _add(self, handler: ResultHandler) -> None:
        self.sent += handler.sent
        if handler.broken:
            self.broken[handler.name] = handler.broken

    def _due_channels(self) -> set[str]:
        """Return the channels with due rows."""
        with self.store.read() as tx:
            targets = due_targets(tx, self.now())
        return {name for name, target in targets if not self._paced(name, target)}

    def _wake_at(self, since: datetime, until: datetime) -> datetime | None:
        """Return the first instant in (`since`, `until`] at which a row becomes due, or None; it may be
        past.
        """
        with self.store.read() as tx:
            paced = due_targets(tx, self.now()) if self.paced_until else []
            instants = [next_resume_at(tx, since), *map(self.paced_until.get, paced)]
        return min(
            (instant for instant in instants if instant is not None and since < instant <= until),
            default=None,
        )

    def _paced(self, name: str, target: str) -> bool:
        return self.paced_until.get((name, target), self.now()) > self.now()

    def _notify_fallbacks(self, name: str) -> bool:
        """Notify fallbacks of everything that waits for an unconfigured channel. Returns True if a row was
        added.
        """
        self.broken[name] = "channel is not configured"
        handler = ResultHandler(
            name, Capabilities(False, False, False), self.now, self.jitter, self.fallbacks
        )
        with self.store.write() as tx:
            notified = [handler.notify_fallback(tx, stream) for stream in unsettled_streams(tx, name)]
        return any(notified)

    def _run_channel(self, name: str, started_at: datetime) -> tuple[ResultHandler, int, datetime]:
        """Look up all unconfirmed rows, then send one row of each stream with a due row.

        Returns the handler, the number of attempts, and `started_at`.
        """
        channel = self.channels[name]
        handler = ResultHandler(name, channel.can, self.now, self.jitter, self.fallbacks)
        # Grouped before the lookups, so that many stale rows are not looked up one by one.
        if channel.can.uses_digests:
            with self.store.write() as tx:
                suppression.group_into_digest(tx, name, channel.can, self.now())
        attempts = self._look_up(handler, channel)
        with self.store.read() as tx:
            streams = due_streams(tx, self.now(), name)
        attempts += sum(
            self._send_next(handler, channel, due_stream.stream) for due_stream in in_send_order(streams)
        )
        for copy in handler.copies if channel.can.reconcile else ():
            with suppress(Exception):  # a remaining duplicate is harmless
                cast(ReconcilingSender, channel.sender).retract(copy)
        return handler, attempts, started_at

    def _look_up(self, handler: ResultHandler, channel: OpenChannel) -> int:
        """Look up all unconfirmed messages and return the number of lookups."""
        with self.store.write() as tx:
            expire_leases(tx, self.now())
            if channel.can.reconcile:
                mark_stale_unconfirmed(tx, handler.name, self.now() - STALE_AFTER, self.now())
            lookups = lookup_rows(tx, self.now(), handler.name)
        for index, leased in enumerate(lookups):
            result = _find_message(channel, leased)
            with self.store.write() as tx:
                handler.after_lookup(tx, leased, result)
            if isinstance(result, RetryableFailure | UnconfirmedSend):
                return index + 1
        return len(lookups)

    def _send_next(self, handler: ResultHandler, channel: OpenChannel, stream: NotificationStream) -> bool:
        if self._paced(handler.name, stream.target):
            return False
        with self.store.write() as tx:
            leased = lease_next(tx, stream, channel.can, self.now())
        # A suspended process may have lost its lease.
        if leased is None or self.now() >= leased.lease_until:
            return False
        answer = _send(channel.sender, leased)
        if channel.can.pace_seconds:
            free_at = self.now() + timedelta(seconds=channel.can.pace_seconds)
            self.paced_until[handler.name, stream.target] = free_at
        self.unclear[handler.name] = (
            self.unclear[handler.name] + 1 if isinstance(answer, UnconfirmedSend) else 0
        )
        with self.store.write() as tx:
            handler.after_send(tx, leased, answer)
            if self.unclear[handler.name] >= MAX_UNCLEAR:
                pause(tx, handler.name, self.now() + UNCLEAR_PAUSE)
        return True


def in_send_order(ready: Iterable[DueStream]) -> list[DueStream]:
    """Return streams in the order of sending: by rank, then targets in turn."""
    counts: Counter[tuple[int, str]] = Counter()
    ranked = []
    for due_stream in ready:
        key = (due_stream.rank, due_stream.stream.target)
        ranked.append((due_stream.rank, counts[key], due_stream))
        counts[key] += 1
    return [due_stream for _, _, due_stream in sorted(ranked, key=lambda entry: entry[:2])]


def _send(sender: Sender, leased: LeasedRow) -> SendResult:
    try:
        if leased.operation == CREATE:
            return sender.create(leased.stream.target, leased.message, leased.key, leased.parent)
        if leased.receipt is None:
            return MessageNotFound("no message to update")
        if leased.operation == UPDATE:
            # Updates are only leased for updating senders.
            return cast(UpdatingSender, sender).update(leased.receipt, leased.message)
        return sender.reply(leased.receipt, leased.message, leased.key)
    except Exception as error:  # noqa: BLE001  # one guard per channel: its fault must not silence the others
        return UnconfirmedSend(f"the channel failed with {type(error).__name__}")


def _find_message(channel: OpenChannel, leased: LeasedRow) -> LookupResult:
    if not channel.can.reconcile:
        return PermanentFailure("the channel cannot be searched", FailureScope.CHANNEL)
    root = leased.parent if leased.operation == CREATE else leased.receipt
    try:
        return cast(ReconcilingSender, channel.sender).find(
            leased.stream.target, leased.key, leased.tried_at - LOOK_BACK, root
        )
    except Exception as error:  # noqa: BLE001  # as above
        return UnconfirmedSend(f"the channel failed with {type(error).__name__}")
