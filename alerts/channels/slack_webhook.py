"""Alerts in Slack through an incoming webhook, where nobody may install a bot: each step is a message.

At least once: Slack gives no ts, so a message can be neither changed nor found again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dq.alerts import channel
from dq.alerts.channels import _http
from dq.alerts.channels.slack import PLAIN, plain, rich
from dq.alerts.message import Message, headline, news
from dq.contracts.escaping import slack
from dq.contracts.outcome import UsageError

# docs.slack.dev/messaging/sending-messages-using-incoming-webhooks, "Handling errors": a status and a word.
_OUR_FAULT = frozenset(
    {"invalid_payload", "no_text", "too_many_attachments", "invalid_blocks", "invalid_attachments"}
)


@dataclass(frozen=True, slots=True)
class SlackWebhook:
    """Posts to the webhook that the operator named; a step is said with the headline above it."""

    urls: Mapping[str, str] = field(repr=False)

    def create(
        self, target: str, message: Message, key: str, below: channel.MessagePlace | None = None
    ) -> channel.Answer:
        answer = self._post(target, rich(message), key)
        if not isinstance(answer, channel.Rejected) or answer.scope is not channel.Blockage.MESSAGE:
            return answer
        again = self._post(target, plain(message), key)
        note = f"sent as plain text, because Slack said {answer.reason}"
        return channel.Sent(again.receipt, note) if isinstance(again, channel.Sent) else again

    def reply(self, receipt: channel.MessagePlace, message: Message, key: str) -> channel.Answer:
        text = "\n".join([headline(message), *news(message)])
        return self._post(receipt.place, {"text": slack(text, PLAIN)}, key)

    def _post(self, target: str, said: Mapping[str, object], key: str) -> channel.Answer:
        url = _http.address(_URL, self.urls, target)
        body = json.dumps({**said, "unfurl_links": False, "unfurl_media": False}).encode()
        return _http.send(url, body, channel.MessagePlace(target, key), _failure)


def _failure(response: _http.Response) -> channel.NotSent | channel.Ambiguous | channel.Rejected | None:
    word = response.body[:80].decode(errors="replace").strip()
    if response.status == 200:
        # Something between us and Slack may answer for it.
        return None if word == "ok" else channel.Ambiguous("HTTP 200 and no answer of Slack's")
    if response.status == 400 and word in _OUR_FAULT:
        return channel.Rejected(word, channel.Blockage.MESSAGE)
    return _http.refusal(response)


def open_slack_webhook(settings: Mapping[str, str], write: Callable[[str], object]) -> channel.Sender:
    """A sender for all incoming webhooks. `write` is not used."""
    urls = _http.values(_URL, settings)
    if not urls:
        raise UsageError(
            "Alerts through Slack's incoming webhooks need the URL of one.",
            "Set DQ_SLACK_WEBHOOK_URL_SALES_DATA for the target 'sales-data'.",
        )
    return SlackWebhook(urls)


_URL = _http.named_secret("url", "DQ_SLACK_WEBHOOK_URL_", "An incoming webhook of Slack's")

CHANNEL = channel.Channel(
    id="slack-webhook",
    summary="Messages through an incoming webhook of Slack's. At least once, and none is changed.",
    can=channel.Capabilities(thread=False, update=False, reconcile=False, folds=True, pace_seconds=1.0),
    make=open_slack_webhook,
    settings=(_URL,),
    inspect=_http.inspecting("slack-webhook", open_slack_webhook, _URL),
)
