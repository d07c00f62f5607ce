"""A digest is an incident whose subjects are incidents: it grows, is told, and ends as any other."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, bindparam, select

from dq.alerts import ledger, plans
from dq.alerts.digest import is_digest, title
from dq.alerts.incident import CLOSED_AS, Incident, step
from dq.alerts.lane import Lane
from dq.alerts.outbox import enqueue
from dq.alerts.tables import outbox
from dq.contracts.shared.outcome import Breach, Recovery

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
        digest = ledger.get(tx, row.digest)
        event = _news(incident, digest, now) if digest else None
        done = step(digest, event, now) if event else None
        if done is None:
            continue
        ledger.save(tx, done.incident, incident.id)
        ledger.log(
            tx, done.incident.id, done.kind, done.incident.revision, now, incident.id, after=done.incident
        )
        for operation in done.tell:
            lane = Lane(done.incident.id, row.channel, row.target)
            later = plans.later(done.incident, operation, now)
            enqueue(tx, lane, operation, done.incident.revision, now, plan=later)


def _news(incident: Incident, digest: Incident, now: datetime) -> Breach | Recovery | None:
    if incident.id not in digest.subjects:
        return None
    facts = ((str(incident.key), incident.title),)
    if incident.state.closed:
        end = _ENDS.get(incident.state)
        return Recovery(digest.key, incident.id, now, facts, end) if end else None
    name = title(len(digest.subjects))
    return Breach(digest.key, incident.severity, incident.id, name, now, facts)
