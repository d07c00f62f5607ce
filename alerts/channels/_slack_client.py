"""Slack's client for one host: it follows no redirect, so that nobody else ever gets the token."""

from __future__ import annotations

import logging
import re
from typing import Any
from urllib.parse import urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

from slack_sdk import WebClient

from dq.contracts.access.web_address import WEB, web_address
from dq.contracts.shared.errors import MissingTool, UsageError
from dq.contracts.shared.install import install_command

_MOST_BYTES = 8 * 1024 * 1024
# slack-sdk adds the method to the path: no query, and nothing that is escaped.
_PATH = re.compile(r"(?:/[A-Za-z0-9._\-]+)*/?")
# The one call through which slack-sdk reaches for the network.
_SENDS = "_perform_urllib_http_request_internal"


def address(text: str) -> str:
    """The address of a Web API with a slash at its end. Raises UsageError where it is not plain and safe."""
    parts = web_address(text, WEB)
    if parts is None or not _PATH.fullmatch(parts.rest):
        raise UsageError(
            "The address of Slack is no plain URL.", "Write https://host/api/ in DQ_SLACK_URL, or unset it."
        )
    if parts.scheme != "https" and not parts.is_loopback:
        raise UsageError("The token would be sent to Slack in the clear.", "Write https:// in DQ_SLACK_URL.")
    return text.rstrip("/") + "/"


class _Stay(HTTPRedirectHandler):
    """Gives every redirect back as the answer that it is."""

    def redirect_request(self, *_: object) -> None:
        return None


class _OneHost(WebClient):
    """A client whose every call goes to the host of its `base_url`."""

    def _perform_urllib_http_request_internal(self, url: str, req: Request) -> dict[str, Any]:
        if urlsplit(url)[:2] != urlsplit(self.base_url)[:2]:
            raise ValueError("a call to another host than Slack's")
        with self._opener().open(req, timeout=self.timeout) as response:
            body = response.read(_MOST_BYTES).decode(errors="replace")
            return {"status": response.status, "headers": response.headers, "body": body}

    def _opener(self) -> OpenerDirector:
        # A proxy sees what is said without TLS, and the loopback needs none.
        secure = self.base_url.startswith("https:") and self.proxy
        return build_opener(
            ProxyHandler({"https": self.proxy} if secure and self.proxy else {}),
            HTTPSHandler(context=self.ssl),
            _Stay(),
        )


def client(token: str, base_url: str, timeout_seconds: float) -> WebClient:
    """A client of the Web API at `base_url`, an `address`.

    Raises MissingTool for a slack-sdk that sends in another way than those that we know.
    """
    if not hasattr(WebClient, _SENDS):
        raise MissingTool(
            "This slack-sdk is not known, and could follow a redirect with the token.",
            f"{install_command('slack')} 'slack-sdk<4'",
        )
    return _OneHost(
        token=token,
        base_url=base_url,
        timeout=timeout_seconds,  # type: ignore[arg-type]  # urllib takes a float
        # slack-sdk's own would post a second time when the connection drops after Slack took the message.
        retry_handlers=[],
        # What goes wrong is in our answers; slack-sdk would print whole messages at DEBUG.
        logger=logging.Logger("slack_sdk", logging.CRITICAL),
    )
