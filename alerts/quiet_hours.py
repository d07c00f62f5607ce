"""What came and went in quiet hours: one message for each place when they are over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select, update

from dq.alerts import incident_store
from dq.alerts.incident import CREATE, Facts, Incident
from dq.alerts.message import duration
from dq.alerts.outbox.next import over_in_silence
from dq.alerts.record import PAST, record_past
from dq.alerts.route import AlertRoute, Wait
from dq.alerts.tables import OutboxStatus, outbox
from dq.alerts.tables import incident as incidents
from dq.contracts.shared.outcome import IncidentKey
from dq.store import Store

# A message has room for twelve facts.
_MOST_LINES = 10


def tell_mornings(store: Store, now: datetime) -> None:
    """Writes the summary of every place whose quiet hours are over, and takes out what it replaces."""
    with store.read() as tx:
        if not _over(tx, now):
            return
    with store.write() as tx:
        places: dict[tuple[str, str], list[Incident]] = {}
        for row in _over(tx, now):
            incident = incident_store.get(tx, row.incident_id)
            tx.execute(
                update(outbox)
                .where(outbox.c.id == row.id)
                .values(state=OutboxStatus.DROPPED, reason="it was over in quiet hours")
            )
            if incident is not None and not over_in_silence(incident):
                detail = f"{row.channel} {row.target}".strip()
                incident_store.log(tx, incident.id, "summed up", incident.revision, now, detail=detail)
                places.setdefault((row.channel, row.target), []).append(incident)
        for (channel, target), those in places.items():
            key = IncidentKey(PAST, f"{channel}:{target}", "quiet")
            severity = max((one.severity for one in those), key=lambda one: one.rank)
            record_past(tx, key, severity, _title(those), _lines(those), AlertRoute(channel, target), now)


def _over(tx: Connection, now: datetime) -> Sequence[Any]:
    return tx.execute(
        select(outbox.c.id, outbox.c.incident_id, outbox.c.channel, outbox.c.target)
        .join(incidents, incidents.c.id == outbox.c.incident_id)
        .where(
            outbox.c.state == OutboxStatus.READY, outbox.c.operation == CREATE, outbox.c.wait == Wait.QUIET
        )
        .where(outbox.c.not_before <= now, ~outbox.c.repeat, incidents.c.resolved_at.is_not(None))
        .order_by(outbox.c.id)
    ).all()


def _title(those: Sequence[Incident]) -> str:
    count = len(those)
    return f"{count} {'incident' if count == 1 else 'incidents'} came and went in quiet hours"


def _lines(those: Sequence[Incident]) -> Facts:
    # No two lines may have one label.
    lines = [(f"{one.key} {one.opened_at:%m-%d %H:%M}Z", f"{one.title}: {_end(one)}") for one in those]
    left = len(lines) - _MOST_LINES
    more = (("and", f"{left} more; see 'dq incidents --all'"),) if left > 0 else ()
    return (*lines[:_MOST_LINES], *more)


def _end(one: Incident) -> str:
    how = one.state.replace("_", " ")
    return f"{how} after {duration(one.resolved_at - one.opened_at)}" if one.resolved_at else how
