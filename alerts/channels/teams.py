"""Alerts in Microsoft Teams through a workflow's webhook, as Adaptive Cards: each step is a card.

Sources: learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using (the form
of the request, 28 KB, at most 60 requests in 30 s) and adaptivecards.io/explorer (RichTextBlock).
At-least-once: a workflow accepts a card with 202 and returns no reference to look it up or update it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from dq.alerts import channel
from dq.alerts.channels import _http
from dq.alerts.message import (
    COMMAND,
    TEAMS_COLOURS,
    Message,
    colour,
    facts_with_promise,
    footer_lines,
    headline,
    step_lines,
)
from dq.contracts.access.access_policy import web_address
from dq.contracts.outcome import UsageError

MAX_BYTES = 28 * 1024
_LINKS = 3
_FORM: Mapping[str, Mapping[str, object]] = {COMMAND: {"fontType": "monospace"}}
# Older connectors report failures with status 200.
_TEAMS_REFUSED = re.compile(rb"endpoint returned HTTP error (\d{3})")


@dataclass(frozen=True, slots=True)
class Teams:
    """Posts cards to workflows configured by the operator."""

    urls: Mapping[str, str] = field(repr=False)

    def create(
        self, target: str, message: Message, key: str, parent: channel.MessageRef | None = None
    ) -> channel.SendResult:
        return self._post(target, _within_limit(message), key)

    def reply(self, receipt: channel.MessageRef, message: Message, key: str) -> channel.SendResult:
        return self._post(
            receipt.place, _card_message([_title(message), *map(_line, step_lines(message))]), key
        )

    def _post(self, target: str, body: bytes, key: str) -> channel.SendResult:
        url = _http.target_url(_URL, self.urls, target)
        return _http.send(url, body, channel.MessageRef(target, key), _failure)


def _failure(
    response: _http.Response,
) -> channel.RetryableFailure | channel.UnconfirmedSend | channel.PermanentFailure | None:
    failure, rejected = _http.status_failure(response), _TEAMS_REFUSED.search(response.body)
    return failure or (
        _http.failure_for_status(replace(response, status=int(rejected[1]))) if rejected else None
    )


def _within_limit(message: Message) -> bytes:
    """Return the card, without its last facts if it would be too large."""
    body = _card_message(_elements(message), _links(message))
    while len(body) > MAX_BYTES and message.facts:
        message = replace(message, facts=message.facts[:-1])
        body = _card_message([*_elements(message), _line("…")], _links(message))
    return body


def _card_message(elements: list[dict[str, object]], actions: list[dict[str, object]] | None = None) -> bytes:
    """Return the JSON of a Teams message with one adaptive card."""
    content = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": elements,
        **({"actions": actions} if actions else {}),
    }
    card = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": content}
    return json.dumps({"type": "message", "attachments": [card]}, ensure_ascii=False).encode()


def _elements(message: Message) -> list[dict[str, object]]:
    return [
        _title(message),
        *(
            _text([_run(f"{label}  ", weight="bolder"), _run(value, **_FORM.get(label, {}))])
            for label, value in facts_with_promise(message)
            if label or value
        ),
        *(_text([_run(line, size="small", isSubtle=True)]) for line in footer_lines(message)),
    ]


def _title(message: Message) -> dict[str, object]:
    text_colour = TEAMS_COLOURS[colour(message)]
    return _text([_run(headline(message), size="large", weight="bolder", color=text_colour)])


def _line(text: str) -> dict[str, object]:
    return _text([_run(text)])


def _text(runs: list[dict[str, object]]) -> dict[str, object]:
    # Not a TextBlock, which parses Markdown: untrusted text could create links.
    return {"type": "RichTextBlock", "inlines": runs}


def _run(text: str, **style: object) -> dict[str, object]:
    return {"type": "TextRun", "text": text or " ", **style}


def _links(message: Message) -> list[dict[str, object]]:
    """Return a button for each fact that is a URL."""
    links = [(label, value) for label, value in message.facts if web_address(value)]
    return [
        {"type": "Action.OpenUrl", "title": label or "open", "url": value} for label, value in links[:_LINKS]
    ]


def open_teams(settings: Mapping[str, str], write: Callable[[str], object]) -> channel.Sender:
    """Return a sender for all workflows. `write` is not used."""
    urls = _http.values_by_target(_URL, settings)
    if not urls:
        raise UsageError(
            "Alerts in Teams need the URL of a workflow.",
            "Set DQ_TEAMS_URL_SALES_DATA for the target 'sales-data'.",
        )
    return Teams(urls)


_URL = _http.per_target_secret("url", "DQ_TEAMS_URL_", "The URL of a Teams workflow")

CHANNEL = channel.Channel(
    id="teams",
    summary="Adaptive Cards in Microsoft Teams through a workflow. At least once; messages are not updated.",
    can=channel.Capabilities(
        thread=False, update=False, reconcile=False, uses_digests=True, pace_seconds=0.5
    ),
    make=open_teams,
    settings=(_URL,),
    inspect=_http.settings_inspection("teams", open_teams, _URL),
)
