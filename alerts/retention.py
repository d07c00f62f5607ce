"""What is over for long is forgotten: incidents that have ended, with all that was said of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, select, update

from dq.alerts.tables import WAITING, incident_event, incident_subject, message, outbox, silence
from dq.alerts.tables import incident as incidents
from dq.store.engine import Store

# Databases bound how many values a statement may have.
_BATCH = 500
_PARTS = (message, incident_event, incident_subject)


@dataclass(frozen=True, slots=True)
class ForgottenAlerts:
    """How many rows are gone; `messages` are those of the outbox."""

    incidents: int
    messages: int
    silences: int


def forget(store: Store, before: datetime) -> ForgottenAlerts:
    """Removes the incidents that ended before an instant, with their messages and events, and silences that
    were over by then.

    What is open stays, and so does what has something to say yet. A transaction holds some hundred incidents,
    each with all of its rows: whenever it is stopped, no incident is left in part.
    """
    ended = messages = 0
    # Those that are looked at and stay are passed by.
    last = ""
    while True:
        with store.write() as tx:
            some = _ended(tx, before, last)
            if not some:
                break
            last = some[-1]
            gone = sorted(set(some) - _needed(tx, some))
            ended += len(gone)
            messages += _remove(tx, gone)
    with store.write() as tx:
        silences = tx.execute(delete(silence).where(silence.c.until < before)).rowcount
    return ForgottenAlerts(ended, messages, silences)


def _ended(tx: Connection, before: datetime, after: str) -> list[str]:
    old = incidents.c.resolved_at < before
    asked = select(incidents.c.id).where(old, incidents.c.id > after).order_by(incidents.c.id)
    return list(tx.scalars(asked.limit(_BATCH)))


def _needed(tx: Connection, some: Collection[str]) -> set[str]:
    """Those with something to say yet, themselves or for a member."""
    waiting = outbox.c.state.in_(WAITING)
    own = select(outbox.c.incident_id).where(outbox.c.incident_id.in_(some), waiting)
    digests = select(outbox.c.digest).where(outbox.c.digest.in_(some), waiting)
    return {str(one) for asked in (own, digests) for one in tx.scalars(asked)}


def _remove(tx: Connection, gone: Collection[str]) -> int:
    if not gone:
        return 0
    # A member that is younger than its digest keeps what was said of it.
    tx.execute(update(outbox).where(outbox.c.digest.in_(gone)).values(digest=None))
    said = tx.execute(delete(outbox).where(outbox.c.incident_id.in_(gone))).rowcount
    for table in _PARTS:
        tx.execute(delete(table).where(table.c.incident_id.in_(gone)))
    tx.execute(delete(incidents).where(incidents.c.id.in_(gone)))
    return said
