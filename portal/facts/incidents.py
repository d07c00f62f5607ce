"""Incidents with all that was done about them, for pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from dq.alerts import incident_store
from dq.alerts.incident import STORM, Incident
from dq.alerts.incident_store import PastStep, rewound, steps_until
from dq.alerts.record import PAST
from dq.alerts.tables import outbox
from dq.dataquality.delivery import heartbeat
from dq.dataquality.delivery.outages import PLATFORM
from dq.dataquality.delivery.tables import parts


@dataclass(frozen=True, slots=True)
class SentMessage:
    """What one place was told, or is still to be told: `state` is as the outbox has it."""

    channel: str
    target: str
    operation: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class IncidentFacts:
    """An incident, everything that happened to it, oldest first, and the messages about it.

    `messages` is None for a past instant: how messages stood then is not kept.
    """

    incident: Incident
    history: tuple[PastStep, ...] = ()
    messages: tuple[SentMessage, ...] | None = ()

    @property
    def about_the_platform(self) -> bool:
        """Whether it is about what watches, and no product."""
        return self.incident.key.contract == PLATFORM


def incidents(tx: Connection, since: datetime, as_of: datetime | None = None) -> list[IncidentFacts]:
    """The incidents that are open, or were resolved at this instant or later; newest first."""
    found = rewound(tx, incident_store.open_or_since(tx, since, (STORM, PAST)), as_of)
    ids = [one.id for one in found]
    steps = incident_store.histories(tx, ids)
    messages = None if heartbeat.is_past(tx, as_of) else _messages(tx, ids)
    return [
        IncidentFacts(
            incident,
            tuple(steps_until(steps.get(incident.id, ()), as_of)),
            None if messages is None else tuple(messages.get(incident.id, ())),
        )
        for incident in found
    ]


def _messages(tx: Connection, ids: Sequence[str]) -> dict[str, list[SentMessage]]:
    found: dict[str, list[SentMessage]] = defaultdict(list)
    asked = select(outbox).order_by(outbox.c.id)
    for some in parts(ids):
        for row in tx.execute(asked.where(outbox.c.incident_id.in_(some))):
            found[row.incident_id].append(
                SentMessage(row.channel, row.target, row.operation, row.state, row.reason)
            )
    return found
