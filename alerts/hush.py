"""What is not said now: the rows of the outbox that wait for a silence or a cause to end, in SQL."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, or_, select

from dq.alerts.incident import UPDATE
from dq.alerts.tables import incident, outbox

ALWAYS = (UPDATE, "reply:resolved", "reply:acked")
"""What changes or ends a message that is there is never held back."""


def heard(now: datetime) -> ColumnElement[bool]:
    """Of rows of the outbox: whether they may be said at `now`."""
    # Another name: the query around it may have incidents of its own.
    of = incident.alias()
    root = incident.alias()
    # A cause of which nobody hears holds nobody back.
    told = root.c.silenced_until.is_(None) | (root.c.silenced_until <= now)
    open_ = root.c.resolved_at.is_(None)
    waits = select(root.c.id).where(root.c.id == of.c.root_id, open_, told).exists()
    hushed = select(of.c.id).where(of.c.id == outbox.c.incident_id, (of.c.silenced_until > now) | waits)
    # A copy that may be there, or was there, must not stand there as it was.
    said_before = or_(outbox.c.repeat, outbox.c.again)
    return or_(outbox.c.operation.in_(ALWAYS), said_before, ~hushed.exists())
