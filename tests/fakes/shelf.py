"""Each channel of the shelf with a world to send into: its settings, a target, faults, and what arrived."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fakes.hooks import ROUTING_KEY, SECRET_PATH, Hooks
from fakes.slack import TOKEN, FakeSlack
from fakes.smtp import PASSWORD, USER, FakeSmtp, Mail

SIGNING_SECRET = "signing-canary-of-the-tests"
SECRETS = (TOKEN, ROUTING_KEY, SECRET_PATH, PASSWORD, SIGNING_SECRET)


@dataclass(frozen=True)
class Place:
    """Where a channel sends in the tests. `said` is all that arrived, `fault` sets the next one's fate.

    `faults` are the ways in which it can fail, by what a test wants of it; a channel without a network has
    none. `over` gives the settings of a host that is not there.
    """

    settings: Mapping[str, str]
    target: str
    said: Callable[[], list[str]]
    faults: Mapping[str, Callable[..., None]] = field(default_factory=dict)
    nobody: Mapping[str, str] | None = None

    def fault(self, kind: str, **how: Any) -> None:
        self.faults[kind](**how)


def hook_faults(hooks: Hooks, host: str) -> dict[str, Callable[..., None]]:
    """What can go wrong with a POST."""
    return {
        "limit": lambda retry_after="30": hooks.fault(host, "status", status=429, retry_after=retry_after),
        "later": lambda: hooks.fault(host, "status", status=503, retry_after="30"),
        "broken": lambda: hooks.fault(host, "status", status=500, accept=True),
        "drop": lambda: hooks.fault(host, "drop", accept=True),
        "garbage": lambda: hooks.fault(host, "garbage", accept=True),
        "refused": lambda: hooks.fault(host, "status", status=404),
        "redirect": lambda to: hooks.fault(host, "redirect", to=to),
        "drip": lambda: hooks.fault(host, "drip"),
    }


def slack_faults(slack: FakeSlack) -> dict[str, Callable[..., None]]:
    """What can go wrong with a call of the Web API."""
    method = "chat.postMessage"
    return {
        "limit": lambda retry_after="30": slack.fault(method, "rate", retry_after=retry_after),
        "broken": lambda: slack.fault(method, "status", status=500, accept=True),
        "drop": lambda: slack.fault(method, "drop", accept=True),
        "garbage": lambda: slack.fault(method, "garbage", accept=True),
        "refused": lambda: slack.fault(method, "error", code="channel_not_found"),
    }


def smtp_faults(smtp: FakeSmtp) -> dict[str, Callable[..., None]]:
    """What can go wrong with a mail; SMTP has no word for how long to wait."""
    return {
        "later": lambda: smtp.fault("RCPT", code=451),
        "broken": lambda: smtp.fault("BODY", drop=True, accept=True),
        "drop": lambda: smtp.fault("BODY", drop=True, accept=True),
        "refused": lambda: smtp.fault("RCPT", code=550),
    }


def places(
    slack: FakeSlack, hooks: Hooks, smtp: FakeSmtp, folder: Path, terminal: list[str]
) -> dict[str, Place]:
    """Every channel by its id."""

    def hook(host: str, settings: Mapping[str, str], nobody: Mapping[str, str]) -> Place:
        return Place(
            settings,
            "sales-data",
            lambda: [post.raw.decode() for post in hooks.posts[host]],
            hook_faults(hooks, host),
            nobody,
        )

    def url(host: str) -> dict[str, str]:
        return {"url:sales-data": hooks.url(host)}

    dead = {"url:sales-data": f"http://127.0.0.1:1/{SECRET_PATH}"}
    file = folder / "new" / "alerts.jsonl"
    token, secret = {"token": TOKEN, "timeout_seconds": "2"}, {"secret": SIGNING_SECRET}
    key = {"key:sales-data": ROUTING_KEY}
    mail = {"host": "127.0.0.1", "from": "dq@acme.example", "user": USER, "password": PASSWORD}
    return {
        "console": Place({}, "", lambda: list(terminal)),
        "file": Place({}, str(file), lambda: file.read_text().splitlines() if file.exists() else []),
        "slack": Place(
            token | {"base_url": slack.url},
            "#orders-alerts",
            lambda: [str(post) for post in slack.messages.values()],
            slack_faults(slack),
            token | {"base_url": "http://127.0.0.1:1/api/"},
        ),
        "slack-webhook": hook("slack", url("slack"), dead),
        "teams": hook("teams", url("teams"), dead),
        "webhook": hook("webhook", secret | url("webhook"), secret | dead),
        "pagerduty": hook(
            "pagerduty", key | {"url": hooks.url("pagerduty")}, key | {"url": dead["url:sales-data"]}
        ),
        "email": Place(
            mail | {"port": str(smtp.port)},
            "ana@acme.example",
            lambda: [_mail(one) for one in smtp.mails],
            smtp_faults(smtp),
            mail | {"port": "1"},
        ),
    }


def _mail(mail: Mail) -> str:
    return f"{mail.message['Subject']}\n{mail.text()}{' '.join(mail.text('html').split())}"
