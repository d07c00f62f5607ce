"""Alerts in PagerDuty over its Events API v2: an incident of ours is one alert, ended when ours ends.

Source: developer.pagerduty.com/docs/events-api-v2-overview and its OpenAPI document (202 taken, 400 not
understood, 429 too many, 5xx to be tried again; a summary of 1,024 signs). The dedup_key is the incident's
id, so that the same event twice is one alert: what is unclear is sent again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dq.alerts import channel
from dq.alerts.channels import _http
from dq.alerts.incident import IncidentState
from dq.alerts.message import MAX_VALUE, Message, cut, headline, promise
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
        self, target: str, message: Message, key: str, below: channel.MessagePlace | None = None
    ) -> channel.Answer:
        return self._send(target, message)

    def update(self, receipt: channel.MessagePlace, message: Message) -> channel.Answer:
        return self._send(receipt.place, message)

    def reply(self, receipt: channel.MessagePlace, message: Message, key: str) -> channel.Answer:
        return self._send(receipt.place, message)

    def _send(self, target: str, message: Message) -> channel.Answer:
        routing_key = self.keys.get(target)
        if routing_key is None:
            said = f"nothing says which service {target!r} is. Set {_KEY.of(target)}"
            return channel.Rejected(said, channel.Blockage.ROUTE)
        body = json.dumps({"routing_key": routing_key, **_event(message)}).encode()
        answer = _http.send(self.url, body, channel.MessagePlace(target, message.incident), _failure)
        # Whether it arrived does not matter: the next one with the same dedup_key changes nothing.
        return channel.NotSent(answer.reason) if isinstance(answer, channel.Ambiguous) else answer


def _failure(response: _http.Response) -> channel.NotSent | channel.Ambiguous | channel.Rejected | None:
    if response.status == 202:
        return None
    # Something between us and PagerDuty may answer for it.
    return channel.Ambiguous(f"HTTP {response.status}") if response.status < 300 else _http.refusal(response)


def _event(message: Message) -> dict[str, object]:
    about = {"promise": promise(message), **dict(message.facts), "budget": message.budget}
    return {
        "event_action": _ACTIONS.get(message.state, "resolve"),
        "dedup_key": message.incident,
        "client": "dq",
        "payload": {
            "summary": cut(headline(message), _SUMMARY),
            "source": cut(message.key.contract, MAX_VALUE),
            "component": cut(message.key.object, MAX_VALUE),
            "group": cut(message.key.group, MAX_VALUE),
            # PagerDuty's words are ours.
            "severity": message.severity,
            "custom_details": {
                **{label: value for label, value in about.items() if value},
                "state": message.state.replace("_", " "),
                "steps": " ".join(message.steps),
                "news": message.note,
            },
        },
    }


def open_pagerduty(settings: Mapping[str, str], write: Callable[[str], object]) -> channel.Sender:
    """A sender for all services. `write` is not used."""
    keys, url = _http.values(_KEY, settings), settings.get("url", "").strip() or _ENQUEUE
    if not keys:
        raise UsageError(
            "Alerts in PagerDuty need the routing key of a service.",
            "Set DQ_PAGERDUTY_KEY_DATA_ONCALL for the target 'data-oncall'.",
        )
    wrong = _http.unsafe(url)
    if wrong:
        raise UsageError(f"PagerDuty: {wrong}.", "Write https:// in DQ_PAGERDUTY_URL, or unset it.")
    return PagerDuty(keys, url)


def _no_key(text: str) -> str:
    return "" if len(text) == _KEY_LENGTH else f"no key of {_KEY_LENGTH} signs"


_KEY_LENGTH = 32
_KEY = _http.named_secret(
    "key", "DQ_PAGERDUTY_KEY_", "The routing key of a PagerDuty service (Events API v2)"
)

CHANNEL = channel.Channel(
    id="pagerduty",
    summary="An alert in PagerDuty for each incident, which acknowledges and ends with it.",
    can=channel.Capabilities(thread=True, update=True, reconcile=False, whole_replies=True),
    make=open_pagerduty,
    settings=(
        _KEY,
        channel.ChannelSetting(
            "url", "DQ_PAGERDUTY_URL", "Another address of PagerDuty's Events API, such as the EU's."
        ),
    ),
    inspect=_http.inspecting("pagerduty", open_pagerduty, _KEY, _no_key),
)
