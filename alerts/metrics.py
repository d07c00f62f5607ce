"""Alert metrics: open incidents, backlog and delivery latency."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, case, func, select

from dq.alerts.incident import CREATE, DIGEST_CONTRACT, NOTICE_CONTRACT
from dq.alerts.outbox import IS_OVERDUE
from dq.alerts.tables import WAITING, OutboxStatus, incident, incident_event, outbox
from dq.contracts.outcome import Severity
from dq.store.schema import UtcDateTime

STATES = ("open", "acked", "silenced")


@dataclass(frozen=True, slots=True)
class Backlog:
    """Backlog of one channel: overdue messages, age of the oldest, and rejected messages."""

    overdue: int = 0
    oldest: timedelta = timedelta(0)
    dead: int = 0


def open_incidents(tx: Connection, now: datetime) -> dict[tuple[Severity, str], int]:
    """Return the numbers of open incidents by severity and STATES.

    Silenced incidents count as silenced only.
    """
    state = case((incident.c.silenced_until > now, "silenced"), else_=incident.c.state)
    rows = tx.execute(
        select(incident.c.severity, state, func.count())
        # Digests and notices are not incidents of their own.
        .where(
            incident.c.resolved_at.is_(None), incident.c.contract.not_in((DIGEST_CONTRACT, NOTICE_CONTRACT))
        )
        .group_by(incident.c.severity, state)
    )
    counted = {(Severity(severity), name): count for severity, name, count in rows}
    return {(level, name): counted.get((level, name), 0) for level in Severity for name in STATES}


def count_overdue(tx: Connection, now: datetime) -> int:
    """Return the number of overdue messages of all channels."""
    return sum(channel_backlog.overdue for channel_backlog in backlog(tx, now).values())


def backlog(tx: Connection, now: datetime) -> dict[str, Backlog]:
    """Return the backlog by channel. The age of a message counts from the event it reports.

    Deferred (e.g. reminders) and muted messages are not overdue.
    """
    same_revision = and_(
        incident_event.c.incident_id == outbox.c.incident_id, incident_event.c.revision == outbox.c.revision
    )
    since = select(func.min(incident_event.c.at, type_=UtcDateTime)).where(same_revision).scalar_subquery()
    overdue = select(outbox.c.channel, since).where(outbox.c.state.in_(WAITING), IS_OVERDUE)
    rows = tx.execute(overdue, {"now": now}).all()
    overdue_counts = Counter(channel for channel, _ in rows)
    oldest: dict[str, datetime] = {}
    for channel, recorded_at in rows:
        oldest[channel] = min(oldest.get(channel, now), recorded_at or now)
    dead_rows = select(outbox.c.channel).where(outbox.c.state == OutboxStatus.DEAD)
    dead = Counter(tx.scalars(dead_rows))
    # Includes channels without backlog, so that their metrics fall to zero instead of disappearing.
    names = sorted({*tx.scalars(select(outbox.c.channel).distinct())})
    return {name: Backlog(overdue_counts[name], now - oldest.get(name, now), dead[name]) for name in names}


def latencies(tx: Connection) -> dict[str, list[float]]:
    """Return the seconds from the record of a breach to the confirmed delivery of its message, by channel.

    One value for each notified target of an incident, except for pruned incidents.
    """
    first_at = func.min(incident_event.c.at, type_=UtcDateTime)
    recorded = {
        (row.incident_id, row.revision): row.at
        for row in tx.execute(
            select(incident_event.c.incident_id, incident_event.c.revision, first_at.label("at"))
            .where(incident_event.c.kind != "sent")
            .group_by(incident_event.c.incident_id, incident_event.c.revision)
        )
    }
    sent = {
        (row.incident_id, row.detail): row.at
        for row in tx.execute(
            select(incident_event.c.incident_id, incident_event.c.detail, first_at.label("at"))
            .where(incident_event.c.kind == "sent", incident_event.c.detail.startswith(f"{CREATE} to "))
            .group_by(incident_event.c.incident_id, incident_event.c.detail)
        )
    }
    sent_by_incident: dict[str, list[tuple[str, datetime]]] = {}
    for (incident_id, detail), sent_at in sent.items():
        sent_by_incident.setdefault(incident_id, []).append((f"{detail} ", sent_at))
    result: dict[str, list[float]] = {}
    for row in tx.execute(
        select(*(outbox.c[name] for name in ("incident_id", "channel", "target", "revision", "digest")))
        .join(incident, incident.c.id == outbox.c.incident_id)
        # Intentionally deferred messages and digests are excluded.
        .where(
            outbox.c.operation == CREATE,
            outbox.c.wait == "",
            ~outbox.c.again,
            incident.c.contract != DIGEST_CONTRACT,
        )
        .order_by(outbox.c.id)
    ):
        prefix = f"{CREATE} to {row.channel} {row.target}".strip()
        # Without threads, the digest's message counts. A note may follow the target.
        sent_messages = [
            *sent_by_incident.get(row.incident_id, ()),
            *sent_by_incident.get(row.digest or "", ()),
        ]
        sent_at = next(
            (instant for detail, instant in sent_messages if detail.startswith(f"{prefix} ")), None
        )
        recorded_at = recorded.get((row.incident_id, row.revision))
        if sent_at is not None and recorded_at is not None:
            result.setdefault(row.channel, []).append(max(0.0, (sent_at - recorded_at).total_seconds()))
    return result
