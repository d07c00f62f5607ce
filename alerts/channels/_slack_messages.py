"""Messages in Slack's blocks, and the buttons below them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dq.alerts.channel import PressedButton
from dq.alerts.incident import STORM, IncidentState
from dq.alerts.message import (
    COMMAND,
    OWNER,
    PRODUCT,
    SINCE,
    Message,
    colour,
    cut,
    headline,
    lines,
    promise,
    repeat_note,
)
from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.escaping import slack
from dq.contracts.shared.outcome import UsageError

# A message in Slack's blocks, within Slack's limits (docs.slack.dev/reference/block-kit/blocks).

HEADER, SECTION, PLAIN = 150, 3000, 3900
# Beyond some 13,200 characters in all Slack says msg_blocks_too_long; it documents that nowhere.
_FACT, _CONTEXT = 600, 1500

# Short facts stand side by side, which Slack does for at most ten.
_SIDE_BY_SIDE = ("promised", SINCE, "delivered", "usually", "last good", "blocks", "still missing", OWNER)
_MENTION = re.compile("[UWS][A-Z0-9]{5,20}")


def rich(message: Message, actions: Sequence[dict[str, object]] = ()) -> dict[str, object]:
    """Header, facts beside a bar in the colour of the state, and a last line of steps and budget.

    A command stands by itself, as it is to be copied. Whom the contract names is called beside the owner.
    `actions` are blocks of buttons.
    """
    small = [*message.steps, message.budget, f"promise {promise(message)}", *repeat_note(message)]
    context = slack("\n".join(line for line in small if line), _CONTEXT)
    blocks = [*_blocks(message), *actions, {"type": "context", "elements": [_text(context)]}]
    title = {"type": "plain_text", "text": cut(headline(message), HEADER), "emoji": False}
    return {
        # What a notification on a phone shows.
        "text": slack(headline(message), PLAIN),
        "blocks": [{"type": "header", "text": title}],
        "attachments": [{"color": colour(message), "blocks": blocks}],
    }


def _blocks(message: Message) -> Iterator[dict[str, object]]:
    facts = dict(message.facts)
    if product := facts.pop(PRODUCT, ""):
        yield from _sections([slack(product, _FACT)])
    called = " ".join(_mention(one) for one in message.mentions if _MENTION.fullmatch(one))
    if called and OWNER not in facts:
        facts[OWNER] = ""
    beside = [(label, facts.pop(label)) for label in _SIDE_BY_SIDE if label in facts]
    if beside:
        said = [
            (label, f"{slack(value, _FACT)} {called if label == OWNER else ''}") for label, value in beside
        ]
        fields = [_text(f"*{label}*\n{value.strip()}") for label, value in said]
        yield {"type": "section", "fields": fields}
    command = facts.pop(COMMAND, "")
    # A sign of its own in the command would end the block.
    boxed = f"```{slack(command, _FACT)}```" if command and "`" not in command else slack(command, _FACT)
    rest = [f"*{slack(label, 100)}*  {_value(value)}" for label, value in facts.items()]
    yield from _sections([*rest, *([boxed] if boxed else [])])


def _mention(ident: str) -> str:
    return f"<!subteam^{ident}>" if ident.startswith("S") else f"<@{ident}>"


def plain(message: Message) -> dict[str, object]:
    """The same without blocks, for when Slack does not take them."""
    said = "\n".join([headline(message), *lines(message)])
    return {"text": slack(said, PLAIN), "blocks": [], "attachments": []}


def reply(message: Message) -> dict[str, object]:
    """One step, for the thread."""
    said = [message.note, message.budget if message.state.closed else "", *repeat_note(message)]
    return {"text": slack("\n".join(line for line in said if line), PLAIN)}


def _sections(said: list[str]) -> list[dict[str, object]]:
    pages = [""]
    for line in said:
        if len(pages[-1]) + len(line) + 1 > SECTION:
            pages.append("")
        pages[-1] = f"{pages[-1]}\n{line}".strip("\n")
    return [{"type": "section", "text": _text(page)} for page in pages if page]


def _text(text: str) -> dict[str, object]:
    # Without `verbatim` Slack looks for names and addresses in it: @channel would wake everybody.
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _value(value: str) -> str:
    """A fact; one that is an address and nothing else is a link that shows its address."""
    wire = slack(value, _FACT)
    return f"<{wire}>" if web_address(value, WEB) and not wire.endswith("…") else wire


# Buttons below an alert in Slack (docs.slack.dev, block_actions payloads).

_LABELS = {PressedButton.ACK: "I am on it", PressedButton.SILENCE: "Silence for 2 hours"}


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
