"""A message as a page of HTML that mail programs show: tables and styles in place, nothing to load."""

from __future__ import annotations

from dq.alerts.channels._colours import colour
from dq.alerts.message import COMMAND, Message, about, headline, repeat_note
from dq.contracts.access.web_address import WEB, web_address
from dq.contracts.escaping.markup import html


def page(message: Message, *, step: bool) -> str:
    """The whole message, or one `step` with the headline above it."""
    shade = colour(message)
    last = [message.budget] if message.state.closed or not step else []
    small = [*([message.note] if step else message.steps), *last, *repeat_note(message)]
    facts = [] if step else about(message)
    return "\n".join(
        [
            '<div style="font-family:sans-serif;font-size:14px">',
            f'<p style="border-left:6px solid {shade};padding-left:8px;font-size:17px">'
            f"<b>{html(headline(message))}</b></p>",
            *(['<table style="font-size:14px">', *map(_row, facts), "</table>"] if facts else []),
            *(f"<p>{html(line)}</p>" for line in small if line),
            "</div>",
        ]
    )


def _row(fact: tuple[str, str]) -> str:
    label, value = fact
    said = html(value)
    if web_address(value, WEB):
        said = f'<a href="{said}">{said}</a>'
    if label == COMMAND:
        said = f'<code style="background:#f3f3f3;padding:2px 5px">{said}</code>'
    beside = "padding-right:12px;color:#616061;white-space:nowrap;vertical-align:top"
    return f'<tr><td style="{beside}">{html(label)}</td><td>{said}</td></tr>'
