"""Alerts as signed JSON, posted to an address of yours: docs/reference/webhook.md is made from this file."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dq.alerts import channel
from dq.alerts.channels import _http
from dq.alerts.incident import IncidentState
from dq.alerts.message import MAX_VALUE, Message, as_dict, cut
from dq.contracts.access.alert_target import host_allowed
from dq.contracts.outcome import Severity, UsageError

SIGNATURE, IDEMPOTENCY = "DQ-Signature", "Idempotency-Key"
LEAST_SECRET = 16

_TEXT = {"type": "string"}
_KEYS: Mapping[str, Any] = {
    "version": {"const": 1, "description": "Of this schema. Keys are added to it, and none is taken away."},
    "id": {**_TEXT, "description": "Of this request; the same when it is sent again."},
    "event": {
        "enum": ["created", "updated", "step"],
        "description": "`created` comes first, `updated` and `step` have the newest state, `step` has news "
        "in `note` too. Of one change, only one of both is sent.",
    },
    "incident": {**_TEXT, "description": "The id that all of an incident's requests share."},
    "revision": {"type": "integer", "description": "Grows with the incident. Of two, the higher is right."},
    "contract": {**_TEXT, "description": "The contract's id, with `@2` and so on for later majors."},
    "object": {**_TEXT, "description": "The object that is promised."},
    "group": {**_TEXT, "description": "The id of the SLO, or `quality`."},
    "state": {"enum": [str(state) for state in IncidentState], "description": "Of the incident."},
    "severity": {
        "enum": [str(severity) for severity in Severity],
        "description": "The worst of what is broken, or was.",
    },
    "title": {**_TEXT, "description": "What is broken, in a line."},
    "facts": {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["label", "value"],
            "properties": {"label": _TEXT, "value": _TEXT},
        },
        "description": "What is known, most important first.",
    },
    "steps": {"type": "array", "items": _TEXT, "description": "What happened so far, oldest first."},
    "note": {**_TEXT, "description": "The news of a `step`; empty for other events."},
    "budget": {**_TEXT, "description": "What is left of the error budget; may be empty."},
    "repeat": {"type": "boolean", "description": "Whether it may have arrived before."},
}
SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "An alert of dq",
    "type": "object",
    "required": list(_KEYS),
    "properties": _KEYS,
}
"""The schema of what is posted."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """Posts to the addresses that the operator named, or allowed by their host."""

    urls: Mapping[str, str] = field(repr=False)
    secret: str = field(repr=False)
    secrets: Mapping[str, str] = field(repr=False)
    hosts: Sequence[str] = ()
    now: Callable[[], float] = time.time

    def create(
        self, target: str, message: Message, key: str, below: channel.MessagePlace | None = None
    ) -> channel.Answer:
        return self._post(target, message, "created", key)

    def update(self, receipt: channel.MessagePlace, message: Message) -> channel.Answer:
        key = f"{message.incident}/update/{message.revision}"
        return self._post(receipt.place, message, "updated", key)

    def reply(self, receipt: channel.MessagePlace, message: Message, key: str) -> channel.Answer:
        return self._post(receipt.place, message, "step", key)

    def _post(self, target: str, message: Message, event: str, key: str) -> channel.Answer:
        url = self._url(target)
        body = json.dumps(_body(message, event, key)).encode()
        signed = signature(self.secrets.get(target, self.secret), int(self.now()), body)
        headers = {IDEMPOTENCY: key, SIGNATURE: signed}
        return _http.send(url, body, channel.MessagePlace(target, key), _http.unless_taken, headers)

    def _url(self, target: str) -> str | channel.Rejected:
        if "://" not in target:
            return _http.address(_URL, self.urls, target)
        wrong = _http.unsafe(target)
        if wrong or not host_allowed(target, self.hosts):
            return channel.Rejected(wrong or "its host is not in DQ_WEBHOOK_HOSTS", channel.Blockage.ROUTE)
        return target


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """The header: HMAC-SHA256 over the seconds since 1970, a full stop, and the body as it is sent."""
    said = hmac.digest(secret.encode(), f"{timestamp}.".encode() + body, "sha256")
    return f"t={timestamp},v1={said.hex()}"


def _body(message: Message, event: str, key: str) -> dict[str, object]:
    return {
        "version": 1,
        "id": key,
        "event": event,
        **as_dict(message),
        "contract": cut(message.key.contract, MAX_VALUE),
        "object": cut(message.key.object, MAX_VALUE),
        "group": cut(message.key.group, MAX_VALUE),
        "facts": [{"label": label, "value": value} for label, value in message.facts],
    }


def open_webhook(settings: Mapping[str, str], write: Callable[[str], object]) -> channel.Sender:
    """A sender for all webhooks. `write` is not used."""
    urls, secret = _http.values(_URL, settings), settings.get("secret", "").strip()
    if len(secret) < LEAST_SECRET:
        raise UsageError(
            f"Webhooks need a secret of at least {LEAST_SECRET} signs, which signs what is sent.",
            "Set DQ_WEBHOOK_SECRET, or DQ_WEBHOOK_SECRET_FILE: openssl rand -hex 32",
        )
    hosts = [host.strip() for host in settings.get("hosts", "").split(",") if host.strip()]
    return Webhook(urls, secret, _http.values(_OWN_SECRET, settings), hosts)


_URL = _http.named_secret("url", "DQ_WEBHOOK_URL_", "The address of a webhook")
_OWN_SECRET = channel.ChannelSetting(
    "own_secret", "DQ_WEBHOOK_SECRET_", "Another secret for one of them.", secret=True, each=True
)

CHANNEL = channel.Channel(
    id="webhook",
    summary="Signed JSON, posted to an address of yours. At least once; a repeat has the same id.",
    can=channel.Capabilities(thread=True, update=True, reconcile=False, whole_replies=True),
    make=open_webhook,
    settings=(
        channel.ChannelSetting("secret", "DQ_WEBHOOK_SECRET", "Signs what webhooks are sent.", secret=True),
        _OWN_SECRET,
        _URL,
        channel.ChannelSetting(
            "hosts", "DQ_WEBHOOK_HOSTS", "Hosts to whose https:// URLs contracts may send."
        ),
    ),
    inspect=_http.inspecting("webhook", open_webhook, _URL),
)
