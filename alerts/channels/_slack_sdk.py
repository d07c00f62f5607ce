"""Slack's client and Socket Mode; imported only if Slack's SDK is needed."""

from __future__ import annotations

import logging
import re
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
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
from slack_sdk.errors import SlackClientError
from slack_sdk.socket_mode.builtin import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from dq.alerts.channel import ButtonAction, Interaction
from dq.alerts.message import cut
from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.install import install_command
from dq.contracts.outcome import MissingTool, UsageError, one_line

# Slack client for a single host. It does not follow redirects, so the token is never sent elsewhere.

_MAX_BYTES = 8 * 1024 * 1024
# slack-sdk appends the method to the path, so there must be no query and no escapes.
_PATH = re.compile(r"(?:/[A-Za-z0-9._\-]+)*/?")
# The only method through which slack-sdk sends requests.
_REQUEST_METHOD = "_perform_urllib_http_request_internal"


def checked_base_url(text: str) -> str:
    """Return the base URL of a Web API with a trailing slash.

    Raises UsageError if it is not plain and safe.
    """
    parts = web_address(text, WEB)
    if parts is None or not _PATH.fullmatch(parts.suffix):
        raise UsageError(
            "The Slack URL is not a plain URL.", "Write https://host/api/ in DQ_SLACK_URL, or unset it."
        )
    if parts.scheme != "https" and not parts.is_loopback:
        raise UsageError("The token would be sent to Slack in the clear.", "Write https:// in DQ_SLACK_URL.")
    return text.rstrip("/") + "/"


class _NoRedirects(HTTPRedirectHandler):
    """Returns redirects as responses instead of following them."""

    def redirect_request(self, *_: object) -> None:
        return None


class _SingleHostClient(WebClient):
    """A client that only calls the host of its `base_url`."""

    def _perform_urllib_http_request_internal(self, url: str, req: Request) -> dict[str, Any]:
        if urlsplit(url)[:2] != urlsplit(self.base_url)[:2]:
            raise ValueError("a call to a host other than Slack's")
        with self._opener().open(req, timeout=self.timeout) as response:
            body = response.read(_MAX_BYTES).decode(errors="replace")
            return {"status": response.status, "headers": response.headers, "body": body}

    def _opener(self) -> OpenerDirector:
        # No proxy without TLS: it could read the token, and loopback needs none.
        proxied = self.base_url.startswith("https:") and self.proxy
        return build_opener(
            ProxyHandler({"https": self.proxy} if proxied and self.proxy else {}),
            HTTPSHandler(context=self.ssl),
            _NoRedirects(),
        )


def create_client(token: str, base_url: str, timeout_seconds: float) -> WebClient:
    """Return a client of the Web API at `base_url`, as from `checked_base_url`.

    Raises MissingTool for a slack-sdk with unknown internals.
    """
    if not hasattr(WebClient, _REQUEST_METHOD):
        raise MissingTool(
            "This version of slack-sdk is not supported: it could follow a redirect with the token.",
            f"{install_command('slack')} 'slack-sdk<4'",
        )
    return _SingleHostClient(
        token=token,
        base_url=base_url,
        timeout=timeout_seconds,  # type: ignore[arg-type]  # urllib takes a float
        # The default handlers would post twice if the connection drops after Slack accepted the message.
        retry_handlers=[],
        # Failures are in the results; slack-sdk would log complete messages at DEBUG.
        logger=logging.Logger("slack_sdk", logging.CRITICAL),
    )


# Interactions with buttons below an alert (docs.slack.dev, block_actions payloads).

_ACTIONS = {f"dq_{button}": button for button in ButtonAction}
_USER = re.compile("[UW][A-Z0-9]{5,20}")
_INCIDENT = re.compile("[0-9a-f-]{36}")
_NAME = 40


@dataclass(frozen=True, slots=True)
class Workspace:
    """The bot's workspace and the connection's app, by Slack ids; interactions of others are rejected."""

    team: str
    app: str


def interaction_from_payload(payload: Mapping[str, Any], workspace: Workspace) -> Interaction | str:
    """Return the interaction of a payload, or why it is rejected."""
    user, team = _mapping(payload, "user"), str(_mapping(payload, "team").get("id", ""))
    if payload.get("type") != "block_actions":
        return "not a button press"
    if payload.get("api_app_id") != workspace.app or not workspace.app:
        return "sent by another app"
    # In channels shared with other workspaces, their users see the message too.
    if {team, user.get("team_id", team)} != {workspace.team}:
        return "sent from another workspace"
    pressed_actions = payload.get("actions")
    if (
        not isinstance(pressed_actions, list)
        or len(pressed_actions) != 1
        or not isinstance(pressed_actions[0], Mapping)
    ):
        return "not a press of a single button"
    pressed = pressed_actions[0]
    button, incident = _ACTIONS.get(str(pressed.get("action_id"))), str(pressed.get("value"))
    user_id, pressed_at = str(user.get("id", "")), _instant(pressed.get("action_ts"))
    if (
        button is None
        or pressed_at is None
        or not _USER.fullmatch(user_id)
        or not _INCIDENT.fullmatch(incident)
    ):
        return "not a dq button"
    name = cut(one_line(str(user.get("username") or user.get("name") or "")), _NAME)
    return Interaction(incident, button, f"{user_id} ({name})" if name else user_id, pressed_at)


def _mapping(payload: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = payload.get(name)
    return part if isinstance(part, Mapping) else {}


def _instant(text: object) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(str(text)), UTC)
    except (ValueError, OverflowError, OSError):
        return None


# Socket Mode: interactions arrive over an outgoing connection, so no inbound access is needed.
#
# https://docs.slack.dev/apis/events-api/using-socket-mode: `hello`, then envelopes, each to be acknowledged
# within three seconds or it is sent again, and `disconnect` if Slack requests a new connection.

RECONNECT_AFTER_SECONDS = 60
"""Delay before reconnecting after a failure: Slack allows few connections per minute."""


class _Socket(SocketModeClient):
    """A connection to Slack only, always encrypted."""

    def issue_new_wss_url(self) -> str:
        url = str(self.web_client.apps_connections_open(app_token=self.app_token)["url"])
        _check_url(url, self.web_client.base_url)
        return url

    def disconnect(self) -> None:
        """Disconnect immediately; slack-sdk waits up to three seconds for the next message."""
        session_socket = self.current_session.sock if self.current_session else None
        if session_socket is not None:
            # Shut down the socket below TLS, because TLS would continue to read.
            with suppress(OSError):
                socket.socket.shutdown(session_socket, socket.SHUT_RDWR)
        # slack-sdk tests for the socket before it takes its locks; its receiving thread, which the
        # shutdown woke, may remove the socket in between.
        with suppress(AttributeError):
            super().disconnect()

    def connect(self) -> None:
        """Connect, unless the client is closed meanwhile."""
        super().connect()
        if self.closed:
            self.current_session_state.terminated = True
            self.disconnect()

    def _run_current_session(self) -> None:
        """Receive until the connection ends.

        slack-sdk's own method marks the connection as running first, even if it was closed a moment before,
        and then runs forever; closing the client waits for it.
        """
        session, state = self.current_session, self.current_session_state
        if session is not None and session.is_active() and not state.terminated:
            # As in slack-sdk: the monitoring thread reconnects.
            with suppress(Exception):
                session.run_until_completion(state)


def _check_url(url: str, base_url: str) -> None:
    """Raise ValueError for a URL that must not receive responses."""
    target, api = web_address(url, ("wss", "ws")), web_address(base_url, WEB)
    if target is None or api is None:
        raise ValueError("a connection to an ambiguous address")
    same_host = target.host == api.host
    # slack-sdk uses TLS on the default port only, regardless of the scheme.
    is_secure = target.scheme == "wss" and target.has_usual_port
    if not (is_secure and (same_host or target.host.endswith(".slack.com"))) and not (
        same_host and target.is_loopback
    ):
        raise ValueError("a connection to a host other than Slack's")


@dataclass(slots=True)
class SlackListener:
    """Handles interactions. `handle_interaction` returns the response to the user, '' if the message shows
    it.
    """

    client: WebClient = field(repr=False)
    app_token: str = field(repr=False)
    handle_interaction: Callable[[Interaction], str]
    log: Callable[[str], object]
    team: str = ""
    app: str = ""
    # slack-sdk's default; a connection is closed after four unanswered pings.
    ping_seconds: float = 5
    socket: _Socket | None = field(default=None, repr=False)
    stopping: threading.Event = field(default_factory=threading.Event, repr=False)

    def start(self) -> Callable[[], None]:
        """Connect in the background, with retries until it succeeds; return a function that stops it."""
        threading.Thread(target=self._open, name="dq-slack-buttons", daemon=True).start()
        return self._close

    def _open(self) -> None:
        last_reason = ""
        while not self.stopping.is_set():
            try:
                self._connect()
                return
            except (SlackClientError, OSError, ValueError, KeyError) as error:
                reason = _reason(error)
                if reason != last_reason:
                    self.log(f"Slack buttons unavailable: {reason}. Retrying every minute.")
                last_reason = reason
            self.stopping.wait(RECONNECT_AFTER_SECONDS)

    def _connect(self) -> None:
        self.team = str(self.client.auth_test()["team_id"])
        if self.socket is None:
            self.socket = _Socket(
                self.app_token,
                web_client=self.client,
                # Sequential, so that two presses of one button are handled as one.
                concurrency=1,
                ping_interval=self.ping_seconds,
                # Failures are logged here; slack-sdk would log complete payloads at DEBUG.
                logger=logging.Logger("slack_sdk.socket_mode", logging.CRITICAL + 1),
            )
            self.socket.message_listeners.append(self._on_message)
            self.socket.socket_mode_request_listeners.append(self._on_request)
        # From here on the client reconnects itself.
        self.socket.connect()

    def _close(self) -> None:
        self.stopping.set()
        if self.socket is not None:
            self.socket.close()

    def _on_message(self, _: object, message: Mapping[str, Any], *__: object) -> None:
        if message.get("type") == "hello":
            self.app = str(message.get("connection_info", {}).get("app_id", ""))

    def _on_request(self, client: Any, request: SocketModeRequest) -> None:
        interaction = interaction_from_payload(request.payload or {}, Workspace(self.team, self.app))
        if isinstance(interaction, Interaction):
            self._respond(request.payload, self._handle(interaction))
        else:
            self.log(f"button press in Slack refused: {interaction}")
        # Acknowledged after it is stored; Slack sends unacknowledged envelopes again.
        client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))

    def _handle(self, interaction: Interaction) -> str:
        try:
            return self.handle_interaction(interaction)
        # one guard: an unavailable store must not stop the listener
        except Exception as error:  # noqa: BLE001
            self.log(f"button press in Slack could not be recorded: {type(error).__name__}")
            return "dq could not record it. Press again in a minute."

    def _respond(self, payload: Mapping[str, Any], text: str) -> None:
        """Send a response that only the user sees."""
        if not text:
            return
        container, user_id = payload.get("container", {}), payload["user"]["id"]
        to = {"channel": container.get("channel_id"), "user": user_id, "text": text, "parse": "none"}
        thread = {"thread_ts": container["thread_ts"]} if container.get("thread_ts") else {}
        try:
            self.client.api_call("chat.postEphemeral", json={**to, **thread})
        except (SlackClientError, OSError, ValueError) as error:
            self.log(f"reply to a button press in Slack was lost: {_reason(error)}")


def _reason(error: Exception) -> str:
    """Return a description without the payload, which may contain a token or a URL."""
    response = getattr(error, "response", None)
    code = response.get("error") if response is not None else None
    return f"Slack says {code}" if code else type(error).__name__
