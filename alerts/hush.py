"""What is not said now: the rows of the outbox that wait for a silence or a cause to end, in SQL."""

from __future__ import annotations

from sqlalchemy import ColumnElement, bindparam, or_, select

from dq.alerts.incident import UPDATE
from dq.alerts.tables import incident, outbox
from dq.store.schema import UtcDateTime

NOW = bindparam("now", type_=UtcDateTime())
"""The instant that conditions are about. Made once they cost a drain, which asks many times, a quarter."""

# Other names: the query around it may have incidents of its own.
_of, _root = incident.alias(), incident.alias()

ALWAYS = (UPDATE, "reply:resolved", "reply:acked")
"""What changes or ends a message that is there is never held back."""


def _heard() -> ColumnElement[bool]:
    # A cause of which nobody hears holds nobody back.
    told = _root.c.silenced_until.is_(None) | (_root.c.silenced_until <= NOW)
    open_ = _root.c.resolved_at.is_(None)
    waits = select(_root.c.id).where(_root.c.id == _of.c.root_id, open_, told).exists()
    hushed = select(_of.c.id).where(_of.c.id == outbox.c.incident_id, (_of.c.silenced_until > NOW) | waits)
    # A copy that may be there, or was there, must not stand there as it was.
    said_before = or_(outbox.c.repeat, outbox.c.again)
    return or_(outbox.c.operation.in_(ALWAYS), said_before, ~hushed.exists())


HEARD = _heard()
"""Of rows of the outbox: whether they may be said at NOW."""
