"""Slack's client and Socket Mode: loaded only where Slack's SDK is needed."""

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

from dq.alerts.channel import Press, PressedButton
from dq.alerts.message import cut
from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.install import install_command
from dq.contracts.outcome import MissingTool, UsageError, one_line

# Slack's client for one host: it follows no redirect, so that nobody else ever gets the token.

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


# What a press of a button below an alert says (docs.slack.dev, block_actions payloads).

_ACTIONS = {f"dq_{button}": button for button in PressedButton}
_USER = re.compile("[UW][A-Z0-9]{5,20}")
_INCIDENT = re.compile("[0-9a-f-]{36}")
_NAME = 40


@dataclass(frozen=True, slots=True)
class Workspace:
    """Whose presses count: the workspace of the bot, and the app of the connection; both by Slack's ids."""

    team: str
    app: str


def press_of(payload: Mapping[str, Any], ours: Workspace) -> Press | str:
    """What somebody pressed, or why it is none of ours."""
    user, team = _part(payload, "user"), str(_part(payload, "team").get("id", ""))
    if payload.get("type") != "block_actions":
        return "it is no press of a button"
    if payload.get("api_app_id") != ours.app or not ours.app:
        return "it is of another app"
    # In a channel that two companies share, strangers see the message too.
    if {team, user.get("team_id", team)} != {ours.team}:
        return "it is of another workspace"
    pressed = payload.get("actions")
    if not isinstance(pressed, list) or len(pressed) != 1 or not isinstance(pressed[0], Mapping):
        return "it is no press of one button"
    button, incident = _ACTIONS.get(str(pressed[0].get("action_id"))), str(pressed[0].get("value"))
    ident, at = str(user.get("id", "")), _instant(pressed[0].get("action_ts"))
    if button is None or at is None or not _USER.fullmatch(ident) or not _INCIDENT.fullmatch(incident):
        return "it is no button of dq"
    name = cut(one_line(str(user.get("username") or user.get("name") or "")), _NAME)
    return Press(incident, button, f"{ident} ({name})" if name else ident, at)


def _part(payload: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = payload.get(name)
    return part if isinstance(part, Mapping) else {}


def _instant(text: object) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(str(text)), UTC)
    except (ValueError, OverflowError, OSError):
        return None


# Slack's Socket Mode: presses of buttons come over a connection that we open, so nobody has to reach us.
#
# https://docs.slack.dev/apis/events-api/using-socket-mode: `hello`, then envelopes, each to be acknowledged
# within three seconds or it comes again, and `disconnect` when Slack wants a new connection.

AGAIN_AFTER_SECONDS = 60
"""How long after a connection that could not be opened it is tried again: Slack allows few a minute."""


class _Socket(SocketModeClient):
    """A connection to nobody but Slack, and never in the clear."""

    def issue_new_wss_url(self) -> str:
        url = str(self.web_client.apps_connections_open(app_token=self.app_token)["url"])
        _checked(url, self.web_client.base_url)
        return url

    def disconnect(self) -> None:
        """At once: slack-sdk's own waits until Slack says something, for up to three seconds."""
        held = self.current_session.sock if self.current_session else None
        if held is not None:
            # Of the socket below TLS: TLS would read on.
            with suppress(OSError):
                socket.socket.shutdown(held, socket.SHUT_RDWR)
        super().disconnect()


def _checked(url: str, base_url: str) -> None:
    """Raises ValueError for a place to which no answer of ours may go."""
    target, api = web_address(url, ("wss", "ws")), web_address(base_url, WEB)
    if target is None or api is None:
        raise ValueError("a connection to an address that is read in several ways")
    same = target.host == api.host
    # slack-sdk speaks TLS on the usual port only, whatever the scheme is.
    safe = target.scheme == "wss" and target.has_usual_port
    if not (safe and (same or target.host.endswith(".slack.com"))) and not (same and target.is_loopback):
        raise ValueError("a connection to another host than Slack's")


@dataclass(slots=True)
class SlackListener:
    """Hands presses on. `press` gives what whoever pressed is told, where the message does not show it."""

    client: WebClient = field(repr=False)
    app_token: str = field(repr=False)
    press: Callable[[Press], str]
    note: Callable[[str], object]
    team: str = ""
    app: str = ""
    # As slack-sdk has it; a connection is given up after four pings without an answer.
    ping_seconds: float = 5
    socket: _Socket | None = field(default=None, repr=False)
    stopping: threading.Event = field(default_factory=threading.Event, repr=False)

    def start(self) -> Callable[[], None]:
        """Opens the connection in the background, again and again until it is there; gives what ends it."""
        threading.Thread(target=self._open, name="dq-slack-buttons", daemon=True).start()
        return self._close

    def _open(self) -> None:
        told = ""
        while not self.stopping.is_set():
            try:
                self._connect()
                return
            except (SlackClientError, OSError, ValueError, KeyError) as error:
                reason = _reason(error)
                if reason != told:
                    self.note(f"buttons in Slack do not answer: {reason}. It is tried again each minute.")
                told = reason
            self.stopping.wait(AGAIN_AFTER_SECONDS)

    def _connect(self) -> None:
        self.team = str(self.client.auth_test()["team_id"])
        if self.socket is None:
            self.socket = _Socket(
                self.app_token,
                web_client=self.client,
                # One after another: two presses of one button are one.
                concurrency=1,
                ping_interval=self.ping_seconds,
                # What goes wrong is said by us; slack-sdk would print whole payloads at DEBUG.
                logger=logging.Logger("slack_sdk.socket_mode", logging.CRITICAL + 1),
            )
            self.socket.message_listeners.append(self._hear)
            self.socket.socket_mode_request_listeners.append(self._answer)
        # From here on the client connects anew by itself whenever a connection ends.
        self.socket.connect()

    def _close(self) -> None:
        self.stopping.set()
        if self.socket is not None:
            self.socket.close()

    def _hear(self, _: object, message: Mapping[str, Any], *__: object) -> None:
        if message.get("type") == "hello":
            self.app = str(message.get("connection_info", {}).get("app_id", ""))

    def _answer(self, client: Any, request: SocketModeRequest) -> None:
        said = press_of(request.payload or {}, Workspace(self.team, self.app))
        if isinstance(said, Press):
            self._tell(request.payload, self._pressed(said))
        else:
            self.note(f"a press in Slack was refused: {said}")
        # Once it is written down: what was not comes again.
        client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))

    def _pressed(self, one: Press) -> str:
        try:
            return self.press(one)
        except Exception as error:  # noqa: BLE001  # one guard: a store that is away must not end the listening
            self.note(f"a press in Slack could not be written down: {type(error).__name__}")
            return "dq could not write it down. Press again in a minute."

    def _tell(self, payload: Mapping[str, Any], text: str) -> None:
        """Says it to whoever pressed, and to nobody else."""
        if not text:
            return
        where, who = payload.get("container", {}), payload["user"]["id"]
        to = {"channel": where.get("channel_id"), "user": who, "text": text, "parse": "none"}
        thread = {"thread_ts": where["thread_ts"]} if where.get("thread_ts") else {}
        try:
            self.client.api_call("chat.postEphemeral", json={**to, **thread})
        except (SlackClientError, OSError, ValueError) as error:
            self.note(f"an answer to a press in Slack was lost: {_reason(error)}")


def _reason(error: Exception) -> str:
    """In words without a payload, in which a token or a URL may stand."""
    response = getattr(error, "response", None)
    code = response.get("error") if response is not None else None
    return f"Slack says {code}" if code else type(error).__name__
