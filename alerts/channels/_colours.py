"""The colour beside a message: that of its state once somebody has it, else of its severity."""

from __future__ import annotations

from collections.abc import Mapping

from dq.alerts.incident import IncidentState
from dq.alerts.message import Message
from dq.contracts.shared.outcome import Severity

# Green says that all is well, so no other end has it.
_GREY = "#868686"
_STATES: Mapping[IncidentState, str] = {
    IncidentState.ACKED: "#ecb22e",
    IncidentState.RESOLVED: "#2eb67d",
    IncidentState.EXCUSED: _GREY,
    IncidentState.WITHDRAWN: _GREY,
    IncidentState.GIVEN_UP: _GREY,
    IncidentState.HANDED_OVER: _GREY,
    IncidentState.PAST: _GREY,
}
_SEVERITIES: Mapping[Severity, str] = {
    Severity.INFO: "#36c5f0",
    Severity.WARNING: "#ecb22e",
    Severity.ERROR: "#e01e5a",
    Severity.CRITICAL: "#7c0f2c",
}
# Cards of Teams name colours, and each theme draws them its way.
NAMED: Mapping[str, str] = {
    _GREY: "default",
    "#ecb22e": "warning",
    "#2eb67d": "good",
    "#36c5f0": "accent",
    "#e01e5a": "attention",
    "#7c0f2c": "attention",
}


def colour(message: Message) -> str:
    """Red, green and blue, as in `#2eb67d`."""
    return _STATES.get(message.state, _SEVERITIES[message.severity])
