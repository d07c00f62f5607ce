"""Incidents by their short ids, and alerts that could not be sent."""

from __future__ import annotations

from dq.alerts.incident import Incident
from dq.alerts.outbox.drain import Drained
from dq.cli.context import note
from dq.operations.alerting import send
from dq.operations.incidents import SHOWN


def report(drained: Drained) -> int:
    """Says what could not be sent; the exit code that follows: 4 when somebody has to mend it, else 0."""
    for text in send.undelivered(drained):
        note(text)
    return send.exit_code(drained)


def short(incident: Incident) -> str:
    """The beginning of an incident's id, as commands take it."""
    return incident.id[:SHOWN]
