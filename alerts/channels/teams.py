"""Alerts in Microsoft Teams through a workflow's webhook, as Adaptive Cards: each step is a card.

Sources: learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using (the form
of the request, 28 KB, at most 60 requests in 30 s) and adaptivecards.io/explorer (RichTextBlock).
At least once: a workflow takes a card with 202, and gives nothing by which to find or change it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from dq.alerts import channel
from dq.alerts.channels import _http
from dq.alerts.message import COMMAND, NAMED, Message, about, colour, ending, headline, news
from dq.contracts.access.access_policy import web_address
from dq.contracts.outcome import UsageError

MOST_BYTES = 28 * 1024
_LINKS = 3
_FORM: Mapping[str, Mapping[str, object]] = {COMMAND: {"fontType": "monospace"}}
# An older connector says so behind a 200.
_TEAMS_REFUSED = re.compile(rb"endpoint returned HTTP error (\d{3})")


@dataclass(frozen=True, slots=True)
class Teams:
    """Posts cards to the workflow that the operator named."""

    urls: Mapping[str, str] = field(repr=False)

    def create(
        self, target: str, message: Message, key: str, below: channel.MessagePlace | None = None
    ) -> channel.Answer:
        return self._post(target, _within_limit(message), key)

    def reply(self, receipt: channel.MessagePlace, message: Message, key: str) -> channel.Answer:
        return self._post(receipt.place, _card([_title(message), *map(_line, news(message))]), key)

    def _post(self, target: str, body: bytes, key: str) -> channel.Answer:
        url = _http.address(_URL, self.urls, target)
        return _http.send(url, body, channel.MessagePlace(target, key), _failure)


def _failure(response: _http.Response) -> channel.NotSent | channel.Ambiguous | channel.Rejected | None:
    failure, refused = _http.unless_taken(response), _TEAMS_REFUSED.search(response.body)
    return failure or (_http.refusal(replace(response, status=int(refused[1]))) if refused else None)


def _within_limit(message: Message) -> bytes:
    """The card; without its last facts, where it would be too large with them."""
    body = _card(_whole(message), _links(message))
    while len(body) > MOST_BYTES and message.facts:
        message = replace(message, facts=message.facts[:-1])
        body = _card([*_whole(message), _line("…")], _links(message))
    return body


def _card(elements: list[dict[str, object]], actions: list[dict[str, object]] | None = None) -> bytes:
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


def _whole(message: Message) -> list[dict[str, object]]:
    return [
        _title(message),
        *(
            _text([_run(f"{label}  ", weight="bolder"), _run(value, **_FORM.get(label, {}))])
            for label, value in about(message)
            if label or value
        ),
        *(_text([_run(line, size="small", isSubtle=True)]) for line in ending(message)),
    ]


def _title(message: Message) -> dict[str, object]:
    shade = NAMED[colour(message)]
    return _text([_run(headline(message), size="large", weight="bolder", color=shade)])


def _line(text: str) -> dict[str, object]:
    return _text([_run(text)])


def _text(runs: list[dict[str, object]]) -> dict[str, object]:
    # Not a TextBlock, which reads Markdown: a stranger's text would make links.
    return {"type": "RichTextBlock", "inlines": runs}


def _run(text: str, **style: object) -> dict[str, object]:
    return {"type": "TextRun", "text": text or " ", **style}


def _links(message: Message) -> list[dict[str, object]]:
    """A button for each fact that is an address and nothing else."""
    found = [(label, value) for label, value in message.facts if web_address(value)]
    return [
        {"type": "Action.OpenUrl", "title": label or "open", "url": value} for label, value in found[:_LINKS]
    ]


def open_teams(settings: Mapping[str, str], write: Callable[[str], object]) -> channel.Sender:
    """A sender for all workflows. `write` is not used."""
    urls = _http.values(_URL, settings)
    if not urls:
        raise UsageError(
            "Alerts in Teams need the URL of a workflow.",
            "Set DQ_TEAMS_URL_SALES_DATA for the target 'sales-data'.",
        )
    return Teams(urls)


_URL = _http.named_secret("url", "DQ_TEAMS_URL_", "The URL of a Teams workflow")

CHANNEL = channel.Channel(
    id="teams",
    summary="Adaptive Cards in Microsoft Teams through a workflow. At least once, and none is changed.",
    can=channel.Capabilities(thread=False, update=False, reconcile=False, folds=True, pace_seconds=0.5),
    make=open_teams,
    settings=(_URL,),
    inspect=_http.inspecting("teams", open_teams, _URL),
)
