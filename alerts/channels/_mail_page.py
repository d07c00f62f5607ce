"""A message as a page of HTML that mail programs show: tables and styles in place, nothing to load."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

from dq.alerts.incident import IncidentState
from dq.alerts.message import COMMAND, Message, about, headline, repeat_note
from dq.contracts.shared.outcome import Severity

_LINK = re.compile(r"https?://[A-Za-z0-9.-]+(:\d+)?(/[!#-;=?-{}~]*)?")
_GREY = "#868686"
_CALM: Mapping[IncidentState, str] = {
    IncidentState.ACKED: "#ecb22e",
    IncidentState.RESOLVED: "#2eb67d",
    IncidentState.EXCUSED: _GREY,
    IncidentState.WITHDRAWN: _GREY,
    IncidentState.GIVEN_UP: _GREY,
    IncidentState.PAST: _GREY,
}
_COLOURS: Mapping[Severity, str] = {
    Severity.INFO: "#36c5f0",
    Severity.WARNING: "#ecb22e",
    Severity.ERROR: "#e01e5a",
    Severity.CRITICAL: "#7c0f2c",
}


def page(message: Message, *, step: bool) -> str:
    """The whole message, or one `step` with the headline above it."""
    colour = _CALM.get(message.state, _COLOURS[message.severity])
    last = [message.budget] if message.state.closed or not step else []
    small = [*([message.note] if step else message.steps), *last, *repeat_note(message)]
    facts = [] if step else about(message)
    return "\n".join(
        [
            '<div style="font-family:sans-serif;font-size:14px">',
            f'<p style="border-left:6px solid {colour};padding-left:8px;font-size:17px">'
            f"<b>{escape(headline(message))}</b></p>",
            *(['<table style="font-size:14px">', *map(_row, facts), "</table>"] if facts else []),
            *(f"<p>{escape(line)}</p>" for line in small if line),
            "</div>",
        ]
    )


def _row(fact: tuple[str, str]) -> str:
    label, value = fact
    said = escape(value)
    if _LINK.fullmatch(value):
        said = f'<a href="{said}">{said}</a>'
    if label == COMMAND:
        said = f'<code style="background:#f3f3f3;padding:2px 5px">{said}</code>'
    beside = "padding-right:12px;color:#616061;white-space:nowrap;vertical-align:top"
    return f'<tr><td style="{beside}">{escape(label)}</td><td>{said}</td></tr>'
