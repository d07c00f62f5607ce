"""The outbox: its rows, the next notification of each stream, and leases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from json import dumps
from typing import Any
from uuid import uuid5

import sqlalchemy as sa

from dq.alerts import incident_store
from dq.alerts.channel import Capabilities, MessageRef
from dq.alerts.incident import (
    CREATE,
    NAMESPACE,
    REMINDER,
    UPDATE,
    Incident,
    IncidentState,
    edit_deferral,
    reply_deferral,
    stabilization_period,
)
from dq.alerts.message import Message, render
from dq.alerts.route import Deferral, DeferralReason, next_reminder
from dq.alerts.tables import IN_FLIGHT, WAITING, OutboxStatus, channel_pause, incident, message, outbox
from dq.contracts.access.alert_target import load_quiet_hours
from dq.store.schema import UtcDateTime

# Selection of the next notification of a stream: a pure decision that preserves the order.


@dataclass(frozen=True, slots=True)
class NotificationStream:
    """One incident at one target. Its notifications are sent in order."""

    incident: str
    channel: str
    target: str

    def __str__(self) -> str:
        return f"{self.channel} {self.target}".strip()


# Replies that are posted for members of a digest, in addition to updates of their own message.
_MEMBER_REPLIES = ("reply:worse", "reply:breached", "reply:reopened")


@dataclass(frozen=True, slots=True)
class QueuedNotification:
    """A ready outbox row, with the fields that matter for the order."""

    id: int
    operation: str
    revision: int
    not_before: datetime
    repeat: bool = False
    deferral: str = ""


@dataclass(frozen=True, slots=True)
class PostedMessage:
    """The message posted at a target, with the revisions it was created with and shows now."""

    receipt: MessageRef
    created_revision: int
    revision: int


@dataclass(frozen=True, slots=True)
class SendDecision:
    """The row to send, if any, and the rows to drop, each with its reason."""

    head: QueuedNotification | None
    drop: tuple[tuple[QueuedNotification, str], ...] = ()
    suppressed: bool = False


def select_next(
    ready: Sequence[QueuedNotification], incident: Incident, posted: PostedMessage | None, can: Capabilities
) -> SendDecision:
    """Select the row to send: first the message, then its newest update, then its newest reply.

    Each message shows the current incident, so all older rows of the same kind are obsolete. An incident that
    was resolved before its first message is not announced.
    """
    creates = [entry for entry in ready if entry.operation == CREATE]
    if posted is not None:
        updates = [entry for entry in ready if entry.operation == UPDATE]
        replies = [entry for entry in ready if entry.operation not in (CREATE, UPDATE)]
        return _select_for_posted(creates, updates, replies, incident, posted, can)
    if not creates:
        return SendDecision(None, _with_reason(ready, "no message to update"))
    # A message that may have been delivered must be updated.
    if incident.state is IncidentState.RESOLVED and not creates[-1].repeat:
        return SendDecision(None, _with_reason(ready, "resolved before it was sent"), suppressed=True)
    return SendDecision(creates[-1], _with_reason(creates[:-1], "superseded"))


def _select_for_posted(
    creates: Sequence[QueuedNotification],
    updates: Sequence[QueuedNotification],
    replies: Sequence[QueuedNotification],
    incident: Incident,
    posted: PostedMessage,
    can: Capabilities,
) -> SendDecision:
    dropped: list[tuple[QueuedNotification, str]] = [*_with_reason(creates, "already sent")]
    if not can.update:
        dropped += _with_reason(updates, "the channel cannot update messages")
        updates = ()
    elif posted.revision >= incident.revision:
        dropped += _with_reason(updates, "already shown by the message")
        updates = ()
    # Reminders are sent although they contain nothing new.
    covered = [
        entry
        for entry in replies
        if entry.revision <= posted.created_revision and entry.deferral != DeferralReason.REMINDER
    ]
    dropped += _with_reason(covered, "already in the first message")
    replies = [entry for entry in replies if entry not in covered]
    if not can.thread:
        reminders = [entry for entry in replies if entry.deferral == DeferralReason.REMINDER]
        dropped += _with_reason(reminders, "no thread for reminders")
        replies = [entry for entry in replies if entry not in reminders]
    if posted.receipt.thread and can.update:
        # The message is in the thread of a digest, and shows most steps there.
        redundant = [entry for entry in replies if entry.operation not in _MEMBER_REPLIES]
        dropped += _with_reason(redundant, "shown by the message in the digest's thread")
        replies = [entry for entry in replies if entry not in redundant]
    if can.full_state_replies:
        redundant = [
            entry
            for entry in replies
            if entry.revision <= posted.revision and entry.deferral != DeferralReason.REMINDER
        ]
        dropped += _with_reason(redundant, "already shown by an update")
        replies = [entry for entry in replies if entry not in redundant]
        if replies:
            dropped += _with_reason(updates, "shown by the reply")
            updates = ()
    dropped += _with_reason([*updates[:-1], *replies[:-1]], "superseded")
    head = next(iter([*updates[-1:], *replies[-1:]]), None)
    return SendDecision(head, tuple(dropped))


def _with_reason(
    entries: Sequence[QueuedNotification], reason: str
) -> tuple[tuple[QueuedNotification, str], ...]:
    return tuple((entry, reason) for entry in entries)


# SQL predicate for outbox rows that are not muted by a silence or inhibited by a root cause.

NOW = sa.bindparam("now", type_=UtcDateTime())
"""Parameter for the current instant. Conditions are built once, which saves most of the time of a drain's
queries.
"""

# Aliases, because the enclosing query may contain the incident table.
_incident, _root_incident = incident.alias(), incident.alias()

NEVER_MUTED = (UPDATE, "reply:resolved", "reply:acked")
"""Operations that update or end a posted message are never muted."""


def _not_muted() -> sa.ColumnElement[bool]:
    # A silenced root cause does not inhibit.
    not_silenced = _root_incident.c.silenced_until.is_(None) | (_root_incident.c.silenced_until <= NOW)
    is_open = _root_incident.c.resolved_at.is_(None)
    inhibited = (
        sa.select(_root_incident.c.id)
        .where(_root_incident.c.id == _incident.c.root_id, is_open, not_silenced)
        .exists()
    )
    muted = sa.select(_incident.c.id).where(
        _incident.c.id == outbox.c.incident_id, (_incident.c.silenced_until > NOW) | inhibited
    )
    # A message that is or may be posted must be kept up to date.
    may_be_posted = sa.or_(outbox.c.repeat, outbox.c.again)
    return sa.or_(outbox.c.operation.in_(NEVER_MUTED), may_be_posted, ~muted.exists())


NOT_MUTED = _not_muted()
"""Condition: the outbox row is not muted at NOW."""


# Rows of the outbox.


UNSENT = (OutboxStatus.READY, OutboxStatus.DEAD)

_ADD = sa.insert(outbox)
_NOTIFIED = sa.select(outbox.c.channel, outbox.c.target).where(
    outbox.c.incident_id == sa.bindparam("incident"),
    outbox.c.operation == CREATE,
    # Without threads, the digest itself has notified of the incident.
    (outbox.c.state.not_in((OutboxStatus.DROPPED, OutboxStatus.DEAD)) | outbox.c.digest.is_not(None)),
)


def enqueue(
    tx: sa.Connection,
    stream: NotificationStream,
    operation: str,
    revision: int,
    now: datetime,
    *,
    recreated: bool = False,
    deferral: Deferral | None = None,
) -> None:
    """Insert an operation into the outbox, to be sent immediately or after `deferral`.

    `recreated`: it replaces a message that a user deleted.
    """
    row: dict[str, object] = {
        "incident_id": stream.incident,
        "channel": stream.channel,
        "target": stream.target,
        "operation": operation,
        "state": OutboxStatus.READY,
        "reason": "",
    }
    schedule = {"revision": revision, "attempt": 0, "not_before": now, "looks": 0}
    row |= {"repeat": False, "again": recreated, "wait": "", "quiet": ""}
    if deferral is not None:
        schedule["not_before"] = deferral.not_before
        row |= {"wait": deferral.reason, "quiet": str(deferral.quiet or "")}
    tx.execute(_ADD, {**row, **schedule})


def requeue(tx: sa.Connection, stream: NotificationStream, now: datetime) -> None:
    """Requeue the message of a stream, because it was deleted."""
    incident = incident_store.get(tx, stream.incident)
    if incident is None:
        return
    creates = in_stream(outbox, stream) & (outbox.c.operation == CREATE)
    same_revision = outbox.c.revision == incident.revision
    values = {"state": OutboxStatus.READY, "not_before": now, "again": True, "reason": ""}
    if not tx.execute(sa.update(outbox).where(creates, same_revision).values(values)).rowcount:
        digest = tx.execute(sa.select(sa.func.max(outbox.c.digest)).where(creates)).scalar_one()
        enqueue(tx, stream, CREATE, incident.revision, now, recreated=True)
        tx.execute(sa.update(outbox).where(creates, same_revision).values(digest=digest))


def notified_streams(tx: sa.Connection, incident_id: str) -> set[NotificationStream]:
    """Return the streams that have or will have a message of the incident."""
    rows = tx.execute(_NOTIFIED, {"incident": incident_id})
    return {NotificationStream(incident_id, row.channel, row.target) for row in rows}


def same_target(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the condition that a row of a table has the same target as the outbox row."""
    return (table.c.channel == outbox.c.channel) & (table.c.target == outbox.c.target)


def in_stream(table: sa.FromClause, stream: NotificationStream) -> sa.ColumnElement[bool]:
    """Return the condition that a row of `outbox` or `message` belongs to a stream."""
    columns = table.c
    return (
        (columns.incident_id == stream.incident)
        & (columns.channel == stream.channel)
        & (columns.target == stream.target)
    )


# Deferred notifications and reminders.

_NEVER_DEFERRED = ("reply:acked", "reply:worse", "reply:breached")


def advance(tx: sa.Connection, stream: NotificationStream, deferral: Deferral) -> None:
    """Move the deferred first notification of a stream forward, if `deferral` is earlier."""
    tx.execute(
        sa.update(outbox)
        .where(
            in_stream(outbox, stream),
            outbox.c.operation == CREATE,
            outbox.c.state == OutboxStatus.READY,
            outbox.c.attempt == 0,
            outbox.c.wait != "",
            outbox.c.not_before > deferral.not_before,
        )
        .values(not_before=deferral.not_before, wait=deferral.reason, quiet=str(deferral.quiet or ""))
    )


def remind(
    tx: sa.Connection, stream: NotificationStream, incident: Incident, now: datetime, *, restart: bool = False
) -> None:
    """Enqueue the next reminder for a stream of an open incident, if none is enqueued.

    `restart`: the incident was reopened, so an enqueued reminder is too early and is dropped.
    """
    # Messages in the thread of a digest are covered by the digest's reminder.
    unthreaded = sa.select(message).where(in_stream(message, stream), message.c.thread == "")
    if incident.state is not IncidentState.OPEN or not tx.execute(unthreaded).first():
        return
    of_stream = in_stream(outbox, stream)
    if restart:
        is_planned = (outbox.c.wait == DeferralReason.REMINDER) & (outbox.c.state == OutboxStatus.READY)
        dropped = {"state": OutboxStatus.DROPPED, "reason": "broken again"}
        tx.execute(sa.update(outbox).where(of_stream, is_planned, outbox.c.attempt == 0).values(dropped))
    rows = tx.execute(
        sa.select(outbox.c.wait, outbox.c.state, outbox.c.quiet, outbox.c.operation)
        .where(of_stream)
        .order_by(outbox.c.id.desc())
    ).all()
    if any(row.wait == DeferralReason.REMINDER and row.state in WAITING for row in rows):
        return
    quiet = next((row.quiet for row in rows if row.quiet), "")
    deferral = next_reminder(incident.open_since or incident.opened_at, load_quiet_hours(quiet), now)
    # The unique operation name ensures that each reminder is sent only once.
    operation = f"{REMINDER}:{deferral.not_before:%Y%m%dT%H%M}"
    if not any(row.operation == operation for row in rows):
        enqueue(tx, stream, operation, incident.revision, now, deferral=deferral)


def flapping_deferral(incident: Incident, operation: str, now: datetime) -> Deferral | None:
    """Return the deferral of an operation while the incident flaps, or None if it does not flap."""
    since = incident.flapping_since
    if since is None or since == now or operation in _NEVER_DEFERRED:
        return None
    return edit_deferral(since, now) if operation == UPDATE else reply_deferral(incident.period, now)


def release_inhibited(tx: sa.Connection, root_cause: Incident, now: datetime) -> None:
    """Schedule the notifications that were inhibited by an ended root cause, after their grace."""
    inhibited = sa.select(incident.c.id, incident.c.grace_seconds).where(
        incident.c.root_id == root_cause.id, incident.c.resolved_at.is_(None)
    )
    for row in tx.execute(inhibited).all():
        not_before = now + timedelta(seconds=row.grace_seconds or 0)
        creates = (outbox.c.incident_id == row.id) & (outbox.c.operation == CREATE)
        unsent = (outbox.c.state == OutboxStatus.READY) & (outbox.c.attempt == 0)
        tx.execute(
            sa.update(outbox)
            .where(creates, unsent, outbox.c.not_before < not_before)
            .values(not_before=not_before)
        )


# Relevance of queued rows, decided from the incident's state at the time of the lease; pure.
#
# Deferred rows may become obsolete. They are not removed when an incident changes, but when they would be
# sent.


@dataclass(frozen=True, slots=True)
class RelevantRows:
    """The relevant rows, and the rows to drop, each with its reason."""

    rows: tuple[QueuedNotification, ...]
    drop: tuple[tuple[QueuedNotification, str], ...] = ()


def filter_relevant(
    rows: Sequence[QueuedNotification], incident: Incident, posted: PostedMessage | None, now: datetime
) -> RelevantRows:
    """Return the rows that may be sent now, and the obsolete rows; deferred rows are in neither."""
    obsolete = [(row, reason) for row in rows if (reason := _obsolete_reason(row, incident, posted, now))]
    obsolete_ids = {row.id for row, _ in obsolete}
    return RelevantRows(
        tuple(row for row in rows if row.id not in obsolete_ids and not _is_deferred(row, incident, now)),
        tuple(obsolete),
    )


def _obsolete_reason(
    row: QueuedNotification, incident: Incident, posted: PostedMessage | None, now: datetime
) -> str:
    # A message that may be posted must be updated.
    if row.repeat:
        return ""
    if row.operation == CREATE and resolved_while_silenced(incident):
        return "resolved while silenced"
    if row.operation == CREATE and incident.root_id is not None and incident.state.is_closed:
        return "resolved with its root cause"
    if (
        row.deferral in (DeferralReason.ESCALATION, DeferralReason.REMINDER)
        and incident.state is not IncidentState.OPEN
    ):
        return "acknowledged" if incident.state is IncidentState.ACKED else "closed"
    if row.deferral == DeferralReason.CALM and row.not_before <= now and row.operation != UPDATE:
        is_recovery = row.operation == "reply:resolved"
        if is_recovery is not incident.state.is_closed or now - incident.changes[-1] < stabilization_period(
            incident.period
        ):
            return "changed again"
    if row.deferral == DeferralReason.REMINDER and posted is not None and posted.receipt.thread:
        return "part of a digest"
    return ""


def _is_deferred(row: QueuedNotification, incident: Incident, now: datetime) -> bool:
    if row.deferral and row.not_before > now:
        return True
    # Incidents that came and went in quiet hours are part of the summary.
    return (
        row.deferral == DeferralReason.QUIET
        and row.operation == CREATE
        and incident.state.is_closed
        and not row.repeat
    )


def resolved_while_silenced(incident: Incident) -> bool:
    """True if the incident ended while it was silenced."""
    resolved_at, until = incident.resolved_at, incident.silenced_until
    return resolved_at is not None and until is not None and resolved_at < until


# Due rows, and the instants when other rows become due.
#
# Conditions and queries are built once, with the parameter NOW: building them takes longer than running them.

_digest, _other = incident.alias(), outbox.alias()
_channel_pause, _target_pause = channel_pause.alias(), channel_pause.alias()


def _unpaused() -> sa.ColumnElement[bool]:
    matching = (channel_pause.c.channel == outbox.c.channel) & channel_pause.c.target.in_(
        ("", outbox.c.target)
    )
    return ~sa.select(channel_pause.c.until).where(matching, channel_pause.c.until > NOW).exists()


def _digest_is_posted() -> sa.ColumnElement[bool]:
    # Members wait for the message of their digest, unless the digest ended before it was sent.
    posted = sa.select(message.c.revision).where(
        message.c.incident_id == outbox.c.digest,
        same_target(message),
    )
    resolved = sa.select(_digest.c.id).where(
        _digest.c.id == outbox.c.digest, _digest.c.resolved_at.is_not(None)
    )
    queued = sa.select(_other.c.id).where(
        _other.c.incident_id == outbox.c.digest,
        same_target(_other),
        _other.c.operation == CREATE,
        _other.c.state.in_(WAITING),
    )
    return outbox.c.digest.is_(None) | posted.exists() | (resolved.exists() & ~queued.exists())


UNPAUSED = _unpaused()
"""Condition: neither the row's target nor its channel is paused."""

DIGEST_IS_POSTED = _digest_is_posted()
"""Condition: the row has no digest, or its digest is posted."""

IS_OVERDUE = ((outbox.c.not_before <= NOW) & (outbox.c.wait == "") & NOT_MUTED) | (outbox.c.attempt > 0)
"""Condition: the row should have been sent by now; it is neither deferred nor muted."""

LOOKUP_DUE = (outbox.c.state == OutboxStatus.AMBIGUOUS) & (outbox.c.not_before <= NOW) & UNPAUSED
"""Condition: the row is unconfirmed, and its lookup is due."""

_in_flight = sa.select(_other.c.id).where(
    _other.c.incident_id == outbox.c.incident_id,
    same_target(_other),
    _other.c.state.in_(IN_FLIGHT),
)
_SENDABLE = sa.and_(
    outbox.c.state.in_(UNSENT),
    outbox.c.not_before <= NOW,
    ~_in_flight.exists(),
    UNPAUSED,
    NOT_MUTED,
    DIGEST_IS_POSTED,
)
_lease_expired = (outbox.c.state == OutboxStatus.SENDING) & (outbox.c.lease_until <= NOW)
_DUE_TARGETS = (
    sa.select(outbox.c.channel, outbox.c.target).where(_SENDABLE | LOOKUP_DUE | _lease_expired).distinct()
)

_is_opening = (outbox.c.operation == CREATE) & outbox.c.digest.is_(None)
_rank = sa.case((_is_opening | incident.c.resolved_at.is_not(None), 0), else_=1)
_DUE_STREAMS = (
    sa.select(outbox.c.incident_id, outbox.c.target, sa.func.min(_rank).label("rank"))
    .join(incident, incident.c.id == outbox.c.incident_id)
    .where(outbox.c.channel == sa.bindparam("of"), _SENDABLE)
    .group_by(outbox.c.incident_id, outbox.c.target)
    .order_by(sa.func.min(outbox.c.id))
)


def _resume_query(condition: sa.ColumnElement[bool]) -> sa.Select[int, datetime, datetime, datetime]:
    """Return the query for the number of rows by target, and the instants after which the first can
    proceed.
    """
    # A leased row proceeds when its lease ends, a ready one not before the pause of its target ends.
    resume_at = sa.case(
        (outbox.c.state == OutboxStatus.SENDING, outbox.c.lease_until), else_=outbox.c.not_before
    )
    return (
        sa.select(
            sa.func.count(),
            sa.func.min(resume_at, type_=UtcDateTime),
            _channel_pause.c.until,
            _target_pause.c.until,
        )
        .select_from(
            outbox.outerjoin(
                _channel_pause,
                (_channel_pause.c.channel == outbox.c.channel) & (_channel_pause.c.target == ""),
            ).outerjoin(_target_pause, same_target(_target_pause))
        )
        .where(outbox.c.state.in_(WAITING), condition)
        .group_by(outbox.c.channel, outbox.c.target, _channel_pause.c.until, _target_pause.c.until)
    )


_OVERDUE = _resume_query(IS_OVERDUE)
_RESUMING_LATER = _resume_query((outbox.c.not_before > NOW) | (outbox.c.lease_until > NOW) | ~UNPAUSED)


@dataclass(frozen=True, slots=True)
class DueStream:
    """A stream with a due notification; rank 0 opens or ends an incident, rank 1 is any other."""

    stream: NotificationStream
    rank: int


def due_streams(tx: sa.Connection, now: datetime, channel: str) -> list[DueStream]:
    """Return the streams of a channel with due notifications, longest waiting first."""
    rows = tx.execute(_DUE_STREAMS, {"now": now, "of": channel})
    return [DueStream(NotificationStream(row.incident_id, channel, row.target), row.rank) for row in rows]


def due_targets(tx: sa.Connection, now: datetime) -> list[tuple[str, str]]:
    """Return the channels and targets with due notifications or lookups."""
    return [(row.channel, row.target) for row in tx.execute(_DUE_TARGETS, {"now": now})]


def count_overdue(tx: sa.Connection, now: datetime) -> tuple[int, datetime | None]:
    """Return the number of overdue rows, and when the first of them can proceed.

    Deferred rows, e.g. reminders, are not overdue.
    """
    rows = tx.execute(_OVERDUE, {"now": now}).all()
    return sum(count for count, *_ in rows), min((_latest(instants) for _, *instants in rows), default=None)


def next_resume_at(tx: sa.Connection, now: datetime) -> datetime | None:
    """Return the first instant after `now` at which a waiting row can proceed."""
    resume_instants = (_latest(instants) for _, *instants in tx.execute(_RESUMING_LATER, {"now": now}))
    return min((instant for instant in resume_instants if instant > now), default=None)


def _latest(instants: Iterable[datetime | None]) -> datetime:
    return max(instant for instant in instants if instant)


def count_paused_targets(tx: sa.Connection, channel: str, now: datetime) -> int:
    """Return the number of paused targets of a channel."""
    matching = (channel_pause.c.channel == channel) & (channel_pause.c.target != "")
    result = tx.execute(
        sa.select(sa.func.count()).select_from(channel_pause).where(matching, channel_pause.c.until > now)
    )
    return result.scalar_one()


def unsettled_streams(tx: sa.Connection, channel: str) -> list[NotificationStream]:
    """Return the streams of a channel with unsettled rows."""
    rows = tx.execute(
        sa.select(outbox.c.incident_id, outbox.c.target)
        .where(outbox.c.channel == channel, outbox.c.state.in_(WAITING))
        .distinct()
    )
    return [NotificationStream(row.incident_id, channel, row.target) for row in rows]


# Leases: each row is sent by one sender at a time.

LEASE_DURATION = timedelta(seconds=60)
"""Time a sender may take; after that it is unknown if the message was sent."""

# Rejected rows are skipped until their retry is due.
_rejected_due = (outbox.c.state == OutboxStatus.DEAD) & (outbox.c.not_before <= NOW)
_STREAM_ROWS = (
    sa.select(outbox)
    .where(
        outbox.c.incident_id == sa.bindparam("incident"),
        outbox.c.channel == sa.bindparam("of"),
        outbox.c.target == sa.bindparam("to"),
    )
    .where(outbox.c.state.in_(WAITING) | _rejected_due, UNPAUSED, outbox.c.state.in_(IN_FLIGHT) | NOT_MUTED)
    .order_by(outbox.c.id)
)
_DIGEST_POSTED = sa.select(outbox.c.id).where(outbox.c.id == sa.bindparam("row"), DIGEST_IS_POSTED)
_LOOKUPS = sa.select(outbox).where(outbox.c.channel == sa.bindparam("of"), LOOKUP_DUE).order_by(outbox.c.id)


@dataclass(frozen=True, slots=True)
class LeasedRow:
    """A row leased by this sender. `attempt` is its fencing token: a later lease has a higher one.

    `parent` is the message of the `digest` in whose thread it is posted, if any.
    `was_rejected`: the row was rejected before.
    """

    id: int
    stream: NotificationStream
    operation: str
    attempt: int
    key: str
    message: Message
    receipt: MessageRef | None
    tried_at: datetime
    lease_until: datetime
    lookups: int = 0
    parent: MessageRef | None = None
    digest: NotificationStream | None = None
    was_rejected: bool = False


def lease_next(
    tx: sa.Connection, stream: NotificationStream, can: Capabilities, now: datetime
) -> LeasedRow | None:
    """Lease the next row of a stream, rendered from the current incident, or None if nothing is due.

    Obsolete rows are dropped. Commit before sending.
    """
    parameters = {"incident": stream.incident, "of": stream.channel, "to": stream.target}
    rows = tx.execute(_STREAM_ROWS, {"now": now, **parameters}).all()
    incident = incident_store.get(tx, stream.incident)
    if incident is None or any(row.state in IN_FLIGHT for row in rows):
        return None
    posted = _posted_message(tx, stream)
    entries = [
        QueuedNotification(
            row.id, row.operation, row.revision, row.not_before, row.repeat or row.again, row.wait
        )
        for row in rows
    ]
    relevant = filter_relevant(entries, incident, posted, now)
    decision = select_next(relevant.rows, incident, posted, can)
    for entry, reason in (*relevant.drop, *decision.drop):
        tx.execute(
            sa.update(outbox).where(outbox.c.id == entry.id).values(state=OutboxStatus.DROPPED, reason=reason)
        )
    if decision.suppressed:
        incident_store.log(tx, incident.id, "suppressed", incident.revision, now, detail=str(stream))
    if decision.head is None or decision.head.not_before > now:
        return None
    if not tx.execute(_DIGEST_POSTED, {"row": decision.head.id}).first():
        return None
    row = next(row for row in rows if row.id == decision.head.id)
    return _lease(tx, row, stream, incident, posted, now)


def lookup_rows(tx: sa.Connection, now: datetime, channel: str) -> list[LeasedRow]:
    """Return the unconfirmed rows of a channel whose lookup is due."""
    return [_lookup_row(tx, row) for row in tx.execute(_LOOKUPS, {"now": now, "of": channel}).all()]


def delivered_elsewhere(tx: sa.Connection, leased: LeasedRow, receipt: MessageRef) -> bool:
    """True if another sender delivered the same row in a different message."""
    row = tx.execute(sa.select(outbox.c.state, outbox.c.reference).where(outbox.c.id == leased.id)).one()
    return row.state == OutboxStatus.SENT and bool(row.reference) and row.reference != receipt.reference


def _lookup_row(tx: sa.Connection, row: sa.Row[Any]) -> LeasedRow:
    stream = NotificationStream(row.incident_id, row.channel, row.target)
    incident = incident_store.get(tx, row.incident_id)
    if incident is None:
        raise LookupError(f"outbox row {row.id} has no incident")
    # The message, if it was delivered, shows the revision of that time.
    rendered = replace(render(incident, row.operation), revision=row.rendered)
    return _leased_row(tx, row, stream, rendered, row.attempt, row.tried_at, row.tried_at)


def _lease(
    tx: sa.Connection,
    row: sa.Row[Any],
    stream: NotificationStream,
    incident: Incident,
    posted: PostedMessage | None,
    now: datetime,
) -> LeasedRow | None:
    tried_at = row.tried_at or now
    updated = tx.execute(
        sa.update(outbox)
        .where(outbox.c.id == row.id, outbox.c.state.in_(UNSENT), outbox.c.attempt == row.attempt)
        .values(
            state=OutboxStatus.SENDING,
            attempt=row.attempt + 1,
            lease_until=now + LEASE_DURATION,
            tried_at=tried_at,
            rendered=incident.revision,
        )
    )
    if not updated.rowcount:
        return None
    rendered = render(incident, row.operation, row.repeat)
    if posted and posted.receipt.thread and rendered.note:
        # Other incidents post in the same thread.
        rendered = replace(rendered, note=f"{rendered.title}: {rendered.note}")
    return _leased_row(tx, row, stream, rendered, row.attempt + 1, tried_at, now + LEASE_DURATION)


def _leased_row(
    tx: sa.Connection,
    row: sa.Row[Any],
    stream: NotificationStream,
    rendered: Message,
    attempt: int,
    tried_at: datetime,
    lease_until: datetime,
) -> LeasedRow:
    posted = _posted_message(tx, stream)
    digest = replace(stream, incident=row.digest) if row.digest else None
    posted_digest = _posted_message(tx, digest) if digest and row.operation == CREATE else None
    return LeasedRow(
        row.id,
        stream,
        row.operation,
        attempt,
        _message_key(stream, row),
        rendered,
        posted.receipt if posted else None,
        tried_at,
        lease_until,
        row.looks,
        posted_digest.receipt if posted_digest else None,
        digest,
        was_rejected=row.state == OutboxStatus.DEAD,
    )


def _message_key(stream: NotificationStream, row: sa.Row[Any]) -> str:
    """Return the permanent idempotency key (UUID) of a message, the same on every machine."""
    return str(
        uuid5(NAMESPACE, dumps([stream.incident, stream.channel, stream.target, row.operation, row.revision]))
    )


def _posted_message(tx: sa.Connection, stream: NotificationStream) -> PostedMessage | None:
    row = tx.execute(sa.select(message).where(in_stream(message, stream))).one_or_none()
    if row is None:
        return None
    return PostedMessage(MessageRef(row.place, row.reference, row.thread), row.created_revision, row.revision)
