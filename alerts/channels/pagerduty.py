"""Alerts in PagerDuty over its Events API v2: one alert per incident, resolved with it.

Source: developer.pagerduty.com/docs/events-api-v2-overview and its OpenAPI document (202 accepted, 400
    invalid,
429 rate limited, 5xx retryable; a summary of 1,024 characters). The dedup_key is the incident's id, so
repeated events are one alert, and unconfirmed sends are retried.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dq.alerts import channel
from dq.alerts.channels import _http
from dq.alerts.incident import IncidentState
from dq.alerts.message import MAX_VALUE, Message, cut, headline, promise_fact
from dq.contracts.outcome import UsageError

_ENQUEUE = "https://events.pagerduty.com/v2/enqueue"
_SUMMARY = 1024
_ACTIONS: Mapping[IncidentState, str] = {IncidentState.OPEN: "trigger", IncidentState.ACKED: "acknowledge"}


@dataclass(frozen=True, slots=True)
class PagerDuty:
    """Sends events to the services whose routing keys the operator named."""

    keys: Mapping[str, str] = field(repr=False)
    url: str = field(repr=False)

    def create(
        self, target: str, message: Message, key: str, parent: channel.MessageRef | None = None
    ) -> channel.SendResult:
        return self._send(target, message)

    def update(self, receipt: channel.MessageRef, message: Message) -> channel.SendResult:
        return self._send(receipt.place, message)

    def reply(self, receipt: channel.MessageRef, message: Message, key: str) -> channel.SendResult:
        return self._send(receipt.place, message)

    def _send(self, target: str, message: Message) -> channel.SendResult:
        routing_key = self.keys.get(target)
        if routing_key is None:
            reason = f"no routing key for {target!r}. Set {_KEY.variable_for(target)}"
            return channel.PermanentFailure(reason, channel.FailureScope.ROUTE)
        body = json.dumps({"routing_key": routing_key, **_event(message)}).encode()
        answer = _http.send(self.url, body, channel.MessageRef(target, message.incident), _failure)
        # An unconfirmed send can be retried, because events with the same dedup_key are deduplicated.
        return (
            channel.RetryableFailure(answer.reason) if isinstance(answer, channel.UnconfirmedSend) else answer
        )


def _failure(
    response: _http.Response,
) -> channel.RetryableFailure | channel.UnconfirmedSend | channel.PermanentFailure | None:
    if response.status == 202:
        return None
    # A proxy may respond instead of PagerDuty.
    return (
        channel.UnconfirmedSend(f"HTTP {response.status}")
        if response.status < 300
        else _http.failure_for_status(response)
    )


def _event(message: Message) -> dict[str, object]:
    details = {**dict(promise_fact(message)), **dict(message.facts), "budget": message.budget}
    return {
        "event_action": _ACTIONS.get(message.state, "resolve"),
        "dedup_key": message.incident,
        "client": "dq",
        "payload": {
            "summary": cut(headline(message), _SUMMARY),
            "source": cut(message.key.contract, MAX_VALUE),
            "component": cut(message.key.object, MAX_VALUE),
            "group": cut(message.key.group, MAX_VALUE),
            # The same values as PagerDuty's.
            "severity": message.severity,
            "custom_details": {
                **{label: value for label, value in details.items() if value},
                "state": message.state.replace("_", " "),
                "steps": " ".join(message.steps),
                "news": message.note,
            },
        },
    }


def open_pagerduty(settings: Mapping[str, str], write: Callable[[str], object]) -> channel.Sender:
    """A sender for all services. `write` is not used."""
    keys, url = _http.values_by_target(_KEY, settings), settings.get("url", "").strip() or _ENQUEUE
    if not keys:
        raise UsageError(
            "Alerts in PagerDuty need the routing key of a service.",
            "Set DQ_PAGERDUTY_KEY_DATA_ONCALL for the target 'data-oncall'.",
        )
    problem = _http.unsafe_reason(url)
    if problem:
        raise UsageError(f"PagerDuty: {problem}.", "Write https:// in DQ_PAGERDUTY_URL, or unset it.")
    return PagerDuty(keys, url)


def _key_problem(text: str) -> str:
    return "" if len(text) == _KEY_LENGTH else f"not a key of {_KEY_LENGTH} characters"


_KEY_LENGTH = 32
_KEY = _http.per_target_secret(
    "key", "DQ_PAGERDUTY_KEY_", "The routing key of a PagerDuty service (Events API v2)"
)

CHANNEL = channel.Channel(
    id="pagerduty",
    summary="One PagerDuty alert per incident, acknowledged and resolved with it.",
    can=channel.Capabilities(thread=True, update=True, reconcile=False, full_state_replies=True),
    make=open_pagerduty,
    settings=(
        _KEY,
        channel.ChannelSetting(
            "url", "DQ_PAGERDUTY_URL", "URL of PagerDuty's Events API, e.g. for the EU service region."
        ),
    ),
    inspect=_http.settings_inspection("pagerduty", open_pagerduty, _KEY, _key_problem),
)
