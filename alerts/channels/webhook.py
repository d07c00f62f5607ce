"""Alerts as signed JSON, posted to a URL; docs/reference/webhook.md is generated from this file."""

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
MIN_SECRET_LENGTH = 16

_TEXT = {"type": "string"}
_KEYS: Mapping[str, Any] = {
    "version": {"const": 1, "description": "Schema version. Keys may be added, never removed."},
    "id": {**_TEXT, "description": "Request ID; the same when it is sent again."},
    "event": {
        "enum": ["created", "updated", "step"],
        "description": "`created` comes first. `updated` and `step` have the newest state, `step` also "
        "has news in `note`; each change sends one of the two.",
    },
    "incident": {**_TEXT, "description": "Incident ID, shared by all requests of an incident."},
    "revision": {"type": "integer", "description": "Increases with each change; the highest is current."},
    "contract": {**_TEXT, "description": "The contract's id, with `@2` and so on for later majors."},
    "object": {**_TEXT, "description": "Name of the contract's object."},
    "group": {**_TEXT, "description": "The id of the SLO, or `quality`."},
    "state": {"enum": [str(state) for state in IncidentState], "description": "State of the incident."},
    "severity": {
        "enum": [str(severity) for severity in Severity],
        "description": "Highest severity of what is or was broken.",
    },
    "title": {**_TEXT, "description": "What is broken, in one line."},
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
    "repeat": {"type": "boolean", "description": "True if this may be a duplicate."},
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
    """Posts to URLs that the operator configured, or allowed by host."""

    urls: Mapping[str, str] = field(repr=False)
    secret: str = field(repr=False)
    secrets: Mapping[str, str] = field(repr=False)
    hosts: Sequence[str] = ()
    now: Callable[[], float] = time.time

    def create(
        self, target: str, message: Message, key: str, parent: channel.MessageRef | None = None
    ) -> channel.SendResult:
        return self._post(target, message, "created", key)

    def update(self, receipt: channel.MessageRef, message: Message) -> channel.SendResult:
        key = f"{message.incident}/update/{message.revision}"
        return self._post(receipt.place, message, "updated", key)

    def reply(self, receipt: channel.MessageRef, message: Message, key: str) -> channel.SendResult:
        return self._post(receipt.place, message, "step", key)

    def _post(self, target: str, message: Message, event: str, key: str) -> channel.SendResult:
        url = self._url(target)
        body = json.dumps(_body(message, event, key)).encode()
        signed = signature(self.secrets.get(target, self.secret), int(self.now()), body)
        headers = {IDEMPOTENCY: key, SIGNATURE: signed}
        return _http.send(url, body, channel.MessageRef(target, key), _http.status_failure, headers)

    def _url(self, target: str) -> str | channel.PermanentFailure:
        if "://" not in target:
            return _http.target_url(_URL, self.urls, target)
        problem = _http.unsafe_reason(target)
        if problem or not host_allowed(target, self.hosts):
            return channel.PermanentFailure(
                problem or "its host is not in DQ_WEBHOOK_HOSTS", channel.FailureScope.ROUTE
            )
        return target


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """Return the signature header: HMAC-SHA256 over the Unix timestamp in seconds, a full stop, and the
    body.
    """
    digest = hmac.digest(secret.encode(), f"{timestamp}.".encode() + body, "sha256")
    return f"t={timestamp},v1={digest.hex()}"


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
    """Return a sender for all webhooks. `write` is not used."""
    urls, secret = _http.values_by_target(_URL, settings), settings.get("secret", "").strip()
    if len(secret) < MIN_SECRET_LENGTH:
        raise UsageError(
            f"Webhooks need a signing secret of at least {MIN_SECRET_LENGTH} characters.",
            "Set DQ_WEBHOOK_SECRET, or DQ_WEBHOOK_SECRET_FILE: openssl rand -hex 32",
        )
    hosts = [host.strip() for host in settings.get("hosts", "").split(",") if host.strip()]
    return Webhook(urls, secret, _http.values_by_target(_OWN_SECRET, settings), hosts)


_URL = _http.per_target_secret("url", "DQ_WEBHOOK_URL_", "The URL of a webhook")
_OWN_SECRET = channel.ChannelSetting(
    "own_secret",
    "DQ_WEBHOOK_SECRET_",
    "A separate signing secret for one target.",
    secret=True,
    per_target=True,
)

CHANNEL = channel.Channel(
    id="webhook",
    summary="Signed JSON, posted to your URL. At least once; a duplicate has the same id.",
    can=channel.Capabilities(thread=True, update=True, reconcile=False, full_state_replies=True),
    make=open_webhook,
    settings=(
        channel.ChannelSetting(
            "secret", "DQ_WEBHOOK_SECRET", "Signing secret of webhook requests.", secret=True
        ),
        _OWN_SECRET,
        _URL,
        channel.ChannelSetting(
            "hosts", "DQ_WEBHOOK_HOSTS", "Hosts that contracts may send to over https://."
        ),
    ),
    inspect=_http.settings_inspection("webhook", open_webhook, _URL),
)
