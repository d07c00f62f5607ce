"""A button that somebody pressed below an alert: done once, however often it arrives."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from dq.alerts import incident_store, silences
from dq.alerts.channel import Press, PressedButton
from dq.alerts.incident import Incident, is_digest
from dq.alerts.record import acknowledge
from dq.alerts.silences import KeyPattern

SILENCE = timedelta(hours=2)
_CLOCKS = timedelta(minutes=1)
"""So far the channel's clock and ours may be apart."""


def press(tx: Connection, one: Press, now: datetime) -> str:
    """Do what was pressed; what whoever pressed is told, and '' where the message shows it.

    `tx` is a transaction of `Store.write()`; nothing is sent before `drain`.
    """
    incident = incident_store.get(tx, one.incident)
    if incident is None:
        return "dq knows this incident no more."
    if incident.state.closed:
        return f"It is over: {incident.state.replace('_', ' ')}."
    if incident.open_since is not None and one.at + _CLOCKS < incident.open_since:
        return "It ended and broke again since. Press again if you mean this one."
    return (_ack if one.button is PressedButton.ACK else _silence)(tx, incident, one.who, now)


def _ack(tx: Connection, incident: Incident, who: str, now: datetime) -> str:
    if acknowledge(tx, incident.id, who, now) is None and incident.acked_by != who:
        return f"{incident.acked_by} is on it already."
    return ""


def _silence(tx: Connection, incident: Incident, who: str, now: datetime) -> str:
    if is_digest(incident):
        return "A digest cannot be silenced. Silence its incidents: dq silence PATTERN --for 2h --reason …"
    until = incident.silenced_until
    if until is not None and until > now:
        return f"It is silenced already, until {until:%Y-%m-%d %H:%M} UTC."
    silences.begin(tx, KeyPattern.only(incident.key), "a button in the channel", who, now, now + SILENCE)
    return ""
