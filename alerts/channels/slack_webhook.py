"""Alerts in Slack through an incoming webhook, for workspaces without a bot: each step is a message.

At-least-once: Slack returns no ts, so messages can be neither updated nor looked up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dq.alerts import channel
from dq.alerts.channels import _http
from dq.alerts.channels.slack import PLAIN, plain, rich
from dq.alerts.message import Message, headline, step_lines
from dq.contracts.escaping import slack
from dq.contracts.outcome import UsageError

# docs.slack.dev/messaging/sending-messages-using-incoming-webhooks, "Handling errors": a status and a code.
_OUR_FAULT = frozenset(
    {"invalid_payload", "no_text", "too_many_attachments", "invalid_blocks", "invalid_attachments"}
)


@dataclass(frozen=True, slots=True)
class SlackWebhook:
    """Posts to webhooks configured by the operator; steps are posted with the headline."""

    urls: Mapping[str, str] = field(repr=False)

    def create(
        self, target: str, message: Message, key: str, parent: channel.MessageRef | None = None
    ) -> channel.SendResult:
        answer = self._post(target, rich(message), key)
        if (
            not isinstance(answer, channel.PermanentFailure)
            or answer.scope is not channel.FailureScope.MESSAGE
        ):
            return answer
        retried = self._post(target, plain(message), key)
        note = f"sent as plain text, because Slack said {answer.reason}"
        return channel.Sent(retried.receipt, note) if isinstance(retried, channel.Sent) else retried

    def reply(self, receipt: channel.MessageRef, message: Message, key: str) -> channel.SendResult:
        text = "\n".join([headline(message), *step_lines(message)])
        return self._post(receipt.place, {"text": slack(text, PLAIN)}, key)

    def _post(self, target: str, content: Mapping[str, object], key: str) -> channel.SendResult:
        url = _http.target_url(_URL, self.urls, target)
        body = json.dumps({**content, "unfurl_links": False, "unfurl_media": False}).encode()
        return _http.send(url, body, channel.MessageRef(target, key), _failure)


def _failure(
    response: _http.Response,
) -> channel.RetryableFailure | channel.UnconfirmedSend | channel.PermanentFailure | None:
    word = response.body[:80].decode(errors="replace").strip()
    if response.status == 200:
        # A proxy may respond instead of Slack.
        return None if word == "ok" else channel.UnconfirmedSend("HTTP 200 without Slack's response")
    if response.status == 400 and word in _OUR_FAULT:
        return channel.PermanentFailure(word, channel.FailureScope.MESSAGE)
    return _http.failure_for_status(response)


def open_slack_webhook(settings: Mapping[str, str], write: Callable[[str], object]) -> channel.Sender:
    """Return a sender for all incoming webhooks. `write` is not used."""
    urls = _http.values_by_target(_URL, settings)
    if not urls:
        raise UsageError(
            "Alerts through a Slack incoming webhook need its URL.",
            "Set DQ_SLACK_WEBHOOK_URL_SALES_DATA for the target 'sales-data'.",
        )
    return SlackWebhook(urls)


_URL = _http.per_target_secret("url", "DQ_SLACK_WEBHOOK_URL_", "The URL of a Slack incoming webhook")

CHANNEL = channel.Channel(
    id="slack-webhook",
    summary="Messages through a Slack incoming webhook. At least once; messages are not updated.",
    can=channel.Capabilities(
        thread=False, update=False, reconcile=False, uses_digests=True, pace_seconds=1.0
    ),
    make=open_slack_webhook,
    settings=(_URL,),
    inspect=_http.settings_inspection("slack-webhook", open_slack_webhook, _URL),
)
