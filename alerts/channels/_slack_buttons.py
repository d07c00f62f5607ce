"""Buttons below an alert in Slack, and what a press of one says (docs.slack.dev, block_actions payloads)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dq.alerts.channel import Press, PressedButton
from dq.alerts.digest import STORM
from dq.alerts.incident import IncidentState
from dq.alerts.message import Message, cut
from dq.contracts.shared.errors import UsageError
from dq.contracts.shared.printable import one_line

_LABELS = {PressedButton.ACK: "I am on it", PressedButton.SILENCE: "Silence for 2 hours"}
_ACTIONS = {f"dq_{button}": button for button in PressedButton}
_USER = re.compile("[UW][A-Z0-9]{5,20}")
_INCIDENT = re.compile("[0-9a-f-]{36}")
_NAME = 40


@dataclass(frozen=True, slots=True)
class Workspace:
    """Whose presses count: the workspace of the bot, and the app of the connection; both by Slack's ids."""

    team: str
    app: str


def has_app_token(settings: Mapping[str, str]) -> bool:
    """Whether somebody wants buttons, with a token that can be one of an app."""
    return settings.get("app_token", "").strip().startswith("xapp-")


def app_token(settings: Mapping[str, str]) -> str:
    """The token of the app, or '' where nobody wants buttons. Raises UsageError for another kind of token."""
    token = settings.get("app_token", "").strip()
    if token and not has_app_token(settings):
        raise UsageError("SLACK_APP_TOKEN is no token of an app.", "Write one that begins with xapp-.")
    return token


def actions(message: Message) -> list[dict[str, object]]:
    """The blocks of the buttons: below what is open and what nobody has taken yet."""
    if message.state is not IncidentState.OPEN:
        return []
    # Nobody silences a storm by one of its messages: what comes next would be another one.
    shown = [one for one in PressedButton if one is PressedButton.ACK or message.key.contract != STORM]
    elements = [
        {
            "type": "button",
            "action_id": f"dq_{one}",
            "text": {"type": "plain_text", "text": _LABELS[one], "emoji": False},
            "value": message.incident,
        }
        for one in shown
    ]
    return [{"type": "actions", "block_id": "dq", "elements": elements}]


def press_of(payload: Mapping[str, Any], ours: Workspace) -> Press | str:
    """What somebody pressed, or why it is none of ours."""
    user, team = _part(payload, "user"), str(_part(payload, "team").get("id", ""))
    if payload.get("type") != "block_actions":
        return "it is no press of a button"
    if payload.get("api_app_id") != ours.app or not ours.app:
        return "it is of another app"
    # In a channel that two companies share, strangers see the message too.
    if {team, user.get("team_id", team)} != {ours.team}:
        return "it is of another workspace"
    pressed = payload.get("actions")
    if not isinstance(pressed, list) or len(pressed) != 1 or not isinstance(pressed[0], Mapping):
        return "it is no press of one button"
    button, incident = _ACTIONS.get(str(pressed[0].get("action_id"))), str(pressed[0].get("value"))
    ident, at = str(user.get("id", "")), _instant(pressed[0].get("action_ts"))
    if button is None or at is None or not _USER.fullmatch(ident) or not _INCIDENT.fullmatch(incident):
        return "it is no button of dq"
    name = cut(one_line(str(user.get("username") or user.get("name") or "")), _NAME)
    return Press(incident, button, f"{ident} ({name})" if name else ident, at)


def _part(payload: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = payload.get(name)
    return part if isinstance(part, Mapping) else {}


def _instant(text: object) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(str(text)), UTC)
    except (ValueError, OverflowError, OSError):
        return None
