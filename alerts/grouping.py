"""Many new incidents for one place become one digest, which grows, is told, and ends as any incident."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from dq.alerts import incident_store
from dq.alerts.channel import Capabilities
from dq.alerts.incident import CLOSED_AS, CREATE, STORM, UPDATE, Incident, is_digest, step, title
from dq.alerts.outbox import HEARD, NOW, UNPAUSED, Lane, enqueue, later
from dq.alerts.route import Wait
from dq.alerts.tables import OutboxStatus, outbox
from dq.alerts.tables import incident as incidents
from dq.contracts.shared.outcome import Breach, IncidentKey, Recovery, Severity

# A storm: many new incidents for one place become one digest, with each of them in its thread.
#
# A digest is an incident whose subjects are incidents, so that it grows, is told, and ends as any other.

MOST = 5
"""More new incidents than these for one place at once are a storm."""

WINDOW = timedelta(minutes=10)
"""New incidents join a digest for so long; what comes later is news of its own."""


def fold(tx: Connection, channel: str, can: Capabilities, now: datetime) -> int:
    """Put the new incidents of each place that has too many of them into a digest; how many there were.

    A digest that can be changed takes in what comes within the window, and its members stand in its thread.
    Elsewhere its list, as it was sent, is all that is said of them, and nobody can join it.
    """
    grows = can.thread and can.update
    folded = 0
    for target, found in _fresh(tx, channel, now).items():
        digest = _open_digest(tx, channel, target, now) if grows else None
        if digest is None and len(found) <= MOST:
            continue
        # One place may have two digests in one second: what they tell of sets them apart.
        group = f"{now:%Y-%m-%dT%H:%M:%SZ}-{found[0].incident_id[:8]}"
        key = digest.key if digest else IncidentKey(STORM, f"{channel}:{target}", group)
        before = digest
        for row in found:
            digest = _take_in(tx, digest, key, row, now)
        assert digest is not None
        lane = Lane(digest.id, channel, target)
        enqueue(tx, lane, UPDATE if before else CREATE, digest.revision, now)
        incident_store.log(tx, digest.id, "joined" if before else "opened", digest.revision, now)
        said = {} if grows else {"state": OutboxStatus.DROPPED, "reason": "the digest says it"}
        tx.execute(
            update(outbox).where(outbox.c.id.in_([row.id for row in found])).values(digest=digest.id, **said)
        )
        folded += len(found)
    return folded


_OF_INCIDENT = (
    incidents.c.contract,
    incidents.c.object,
    incidents.c.group_id,
    incidents.c.severity,
    incidents.c.title,
)
_FRESH = (
    select(outbox.c.id, outbox.c.target, outbox.c.incident_id, *_OF_INCIDENT)
    .join(incidents, incidents.c.id == outbox.c.incident_id)
    .where(
        outbox.c.channel == bindparam("of"),
        outbox.c.state == OutboxStatus.READY,
        outbox.c.operation == CREATE,
        outbox.c.attempt == 0,
        outbox.c.not_before <= NOW,
        outbox.c.digest.is_(None),
        ~outbox.c.again,
        # Whom it is escalated to has a word of its own.
        outbox.c.wait != Wait.ESCALATION,
        UNPAUSED,
        HEARD,
        incidents.c.contract != STORM,
        incidents.c.resolved_at.is_(None),
    )
    .order_by(outbox.c.id)
)


def _fresh(tx: Connection, channel: str, now: datetime) -> dict[str, list[Any]]:
    """By target, what is to be said of incidents that nobody there has heard of."""
    places: dict[str, list[Any]] = {}
    for row in tx.execute(_FRESH, {"now": now, "of": channel}):
        places.setdefault(row.target, []).append(row)
    return places


def _open_digest(tx: Connection, channel: str, target: str, now: datetime) -> Incident | None:
    found = tx.execute(
        select(incidents.c.id)
        .where(
            incidents.c.contract == STORM,
            incidents.c.object == f"{channel}:{target}",
            incidents.c.resolved_at.is_(None),
            incidents.c.opened_at > now - WINDOW,
        )
        .order_by(incidents.c.opened_at.desc(), incidents.c.id)
        .limit(1)
    ).scalar_one_or_none()
    return incident_store.get(tx, found) if found else None


def _take_in(tx: Connection, digest: Incident | None, key: IncidentKey, row: Any, now: datetime) -> Incident:
    of = IncidentKey(row.contract, row.object, row.group_id)
    members = len(digest.subjects) + 1 if digest else 1
    facts = ((str(of), row.title),)
    event = Breach(key, Severity(row.severity), row.incident_id, title(members), now, facts)
    done = step(digest, event, now)
    assert done is not None, "a row is put into a digest once"
    incident_store.save(tx, done.incident, row.incident_id)
    return done.incident


# A digest is an incident whose subjects are incidents: it grows, is told, and ends as any other.

_ENDS = {state: end for end, state in CLOSED_AS.items()}
_DIGESTS = (
    select(outbox.c.digest, outbox.c.channel, outbox.c.target)
    .where(outbox.c.incident_id == bindparam("incident"), outbox.c.digest.is_not(None))
    .distinct()
)


def follow(tx: Connection, incident: Incident, now: datetime) -> None:
    """Let the digests of an incident know how it stands, in the transaction that changed it."""
    if is_digest(incident):
        return
    for row in tx.execute(_DIGESTS, {"incident": incident.id}).all():
        digest = incident_store.get(tx, row.digest)
        event = _news(incident, digest, now) if digest else None
        done = step(digest, event, now) if event else None
        if done is None:
            continue
        incident_store.save(tx, done.incident, incident.id)
        incident_store.log(
            tx, done.incident.id, done.kind, done.incident.revision, now, incident.id, after=done.incident
        )
        for operation in done.tell:
            lane = Lane(done.incident.id, row.channel, row.target)
            plan = later(done.incident, operation, now)
            enqueue(tx, lane, operation, done.incident.revision, now, plan=plan)


def _news(incident: Incident, digest: Incident, now: datetime) -> Breach | Recovery | None:
    if incident.id not in digest.subjects:
        return None
    facts = ((str(incident.key), incident.title),)
    if incident.state.closed:
        end = _ENDS.get(incident.state)
        return Recovery(digest.key, incident.id, now, facts, end) if end else None
    name = title(len(digest.subjects))
    return Breach(digest.key, incident.severity, incident.id, name, now, facts)
