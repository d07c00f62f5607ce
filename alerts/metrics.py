"""What machines watch of alerts: open incidents, what is still to be said, and how long saying it took."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, case, func, select

from dq.alerts.incident import CREATE, STORM
from dq.alerts.outbox import SHOULD_BE_THERE
from dq.alerts.tables import WAITING, OutboxStatus, incident, incident_event, outbox
from dq.contracts.outcome import Severity
from dq.store.schema import UtcDateTime

STATES = ("open", "acked", "silenced")


@dataclass(frozen=True, slots=True)
class Backlog:
    """Of one channel: how many messages are owed, how old the oldest is, and how many were given up."""

    owed: int = 0
    oldest: timedelta = timedelta(0)
    dead: int = 0


def open_incidents(tx: Connection, now: datetime) -> dict[tuple[Severity, str], int]:
    """How many incidents are open, for each severity and each of STATES; a silenced one is that alone."""
    state = case((incident.c.silenced_until > now, "silenced"), else_=incident.c.state)
    rows = tx.execute(
        select(incident.c.severity, state, func.count())
        # A digest is a message about others.
        .where(incident.c.resolved_at.is_(None), incident.c.contract != STORM)
        .group_by(incident.c.severity, state)
    )
    counted = {(Severity(severity), name): count for severity, name, count in rows}
    return {(one, name): counted.get((one, name), 0) for one in Severity for name in STATES}


def owed(tx: Connection, now: datetime) -> int:
    """How many messages should be there by now and are not, over all channels."""
    return sum(one.owed for one in backlog(tx, now).values())


def backlog(tx: Connection, now: datetime) -> dict[str, Backlog]:
    """What is owed and what was given up, by channel; a message is as old as the fact that it tells.

    A message that is for later (a reminder), or that a silence holds back, is not owed.
    """
    told = and_(
        incident_event.c.incident_id == outbox.c.incident_id, incident_event.c.revision == outbox.c.revision
    )
    since = select(func.min(incident_event.c.at, type_=UtcDateTime)).where(told).scalar_subquery()
    owed = select(outbox.c.channel, since).where(outbox.c.state.in_(WAITING), SHOULD_BE_THERE)
    rows = tx.execute(owed, {"now": now}).all()
    waiting = Counter(channel for channel, _ in rows)
    oldest: dict[str, datetime] = {}
    for channel, at in rows:
        oldest[channel] = min(oldest.get(channel, now), at or now)
    buried = select(outbox.c.channel).where(outbox.c.state == OutboxStatus.DEAD)
    dead = Counter(tx.scalars(buried))
    # A channel that has spoken once is shown with zeros, so that what falls to zero is seen.
    names = sorted({*tx.scalars(select(outbox.c.channel).distinct())})
    return {name: Backlog(waiting[name], now - oldest.get(name, now), dead[name]) for name in names}


def latencies(tx: Connection) -> dict[str, list[float]]:
    """By channel, the seconds from the record of a breach to the channel's answer that its message is there.

    One for each place that was told of an incident; what was pruned is not there any more.
    """
    first = func.min(incident_event.c.at, type_=UtcDateTime)
    recorded = {
        (row.incident_id, row.revision): row.at
        for row in tx.execute(
            select(incident_event.c.incident_id, incident_event.c.revision, first.label("at"))
            .where(incident_event.c.kind != "sent")
            .group_by(incident_event.c.incident_id, incident_event.c.revision)
        )
    }
    sent = {
        (row.incident_id, row.detail): row.at
        for row in tx.execute(
            select(incident_event.c.incident_id, incident_event.c.detail, first.label("at"))
            .where(incident_event.c.kind == "sent", incident_event.c.detail.startswith(f"{CREATE} to "))
            .group_by(incident_event.c.incident_id, incident_event.c.detail)
        )
    }
    spoken: dict[str, list[tuple[str, datetime]]] = {}
    for (whose, detail), at in sent.items():
        spoken.setdefault(whose, []).append((f"{detail} ", at))
    found: dict[str, list[float]] = {}
    for row in tx.execute(
        select(*(outbox.c[name] for name in ("incident_id", "channel", "target", "revision", "digest")))
        .join(incident, incident.c.id == outbox.c.incident_id)
        # Who is called later, on purpose, is not told late; a digest is told of others.
        .where(
            outbox.c.operation == CREATE, outbox.c.wait == "", ~outbox.c.again, incident.c.contract != STORM
        )
        .order_by(outbox.c.id)
    ):
        place = f"{CREATE} to {row.channel} {row.target}".strip()
        # Where a channel has no threads, the digest has told of it; behind the place stands a note.
        told = [*spoken.get(row.incident_id, ()), *spoken.get(row.digest or "", ())]
        at = next((at for detail, at in told if detail.startswith(f"{place} ")), None)
        began = recorded.get((row.incident_id, row.revision))
        if at is not None and began is not None:
            found.setdefault(row.channel, []).append(max(0.0, (at - began).total_seconds()))
    return found
