"""A Slack with Socket Mode on the loopback: it gives out a WebSocket, and presses buttons over it.

In a test: ``with SocketSlack() as slack: … slack.press(root, "dq_ack", "U012AB3CD")``. `acknowledged` are the
envelopes that were, in order; `whispers` is what one person alone was told.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import socket
import socketserver
import struct
import threading
import time
from typing import Any
from uuid import uuid4

from fakes.slack import TEAM, FakeSlack

APP_TOKEN, APP = "xapp-1-the-secret-of-the-tests", "A0DQTESTS1"
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10


class SocketSlack(FakeSlack):
    """`connections` are those that are open; `opened` counts all that ever were."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.connections: list[socket.socket] = []
        self.acknowledged: list[str] = []
        self.whispers: list[dict[str, Any]] = []
        self.opened = 0
        self.elsewhere = ""
        self.sockets = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Connection)
        self.sockets.daemon_threads = True
        self.sockets.slack = self  # type: ignore[attr-defined]

    def __enter__(self) -> SocketSlack:
        super().__enter__()
        threading.Thread(target=self.sockets.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *more: object) -> None:
        self.cut()
        self.sockets.shutdown()
        self.sockets.server_close()
        super().__exit__(*more)

    def token_of(self, method: str) -> str:
        return APP_TOKEN if method.startswith("apps.") else super().token_of(method)

    def apps_connections_open(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"url": self.elsewhere or f"ws://127.0.0.1:{self.sockets.server_address[1]}/link/?ticket=1"}

    def chat_postEphemeral(self, body: dict[str, Any]) -> dict[str, Any]:  # Slack's own name
        self.whispers.append(body)
        return {"message_ts": "1"}

    def connected(self, more_than: int = 0, seconds: float = 300) -> bool:
        """Waits for a connection that was opened after so many others."""
        until = time.monotonic() + seconds
        while not (self.connections and self.opened > more_than) and time.monotonic() < until:
            time.sleep(0.02)
        return bool(self.connections) and self.opened > more_than

    def press(self, message: dict[str, Any], action: str, who: str, **changes: Any) -> str:
        """Somebody presses a button of a message; the envelope's id. `changes` are parts of the payload."""
        return self.envelope({**self.payload(message, action, who, self.now()), **changes})

    @staticmethod
    def payload(message: dict[str, Any], action: str, who: str, at: float) -> dict[str, Any]:
        """What Slack sends of a press."""
        value = message["metadata"]["event_payload"]["incident"]
        return {
            "type": "block_actions",
            "user": {"id": who, "username": "ana", "name": "ana", "team_id": TEAM},
            "api_app_id": APP,
            "team": {"id": TEAM, "domain": "dq"},
            "container": {"type": "message", "message_ts": message["ts"], "channel_id": message["channel"]},
            "actions": [{"type": "button", "action_id": action, "value": value, "action_ts": f"{at:.6f}"}],
        }

    def envelope(self, payload: dict[str, Any], ident: str | None = None) -> str:
        """Sends what happened; the same `ident` twice is what Slack sends where nobody acknowledged."""
        ident = ident or str(uuid4())
        self.say(
            {
                "type": "interactive",
                "envelope_id": ident,
                "payload": payload,
                "accepts_response_payload": False,
            }
        )
        return ident

    def refresh(self) -> None:
        """Asks the app to come again, as Slack does every few hours."""
        self.say({"type": "disconnect", "reason": "refresh_requested", "debug_info": {}})

    def say(self, message: dict[str, Any]) -> None:
        _send(self.connections[-1], _TEXT, json.dumps(message).encode())

    def cut(self) -> None:
        """Drops all connections, as a network does."""
        while self.connections:
            one = self.connections.pop()
            # It may be gone already.
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def done(self, ident: str, seconds: float = 300, times: int = 1) -> bool:
        """Waits until an envelope was acknowledged so often."""
        until = time.monotonic() + seconds
        while self.acknowledged.count(ident) < times and time.monotonic() < until:
            time.sleep(0.02)
        return self.acknowledged.count(ident) >= times


class _Connection(socketserver.StreamRequestHandler):
    """One WebSocket, from its handshake to its end (RFC 6455, as far as Slack's clients use it)."""

    def handle(self) -> None:
        slack: SocketSlack = self.server.slack  # type: ignore[attr-defined]
        key = b""
        while (line := self.rfile.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            if name.lower() == b"sec-websocket-key":
                key = value.strip()
        accept = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
        self.wfile.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        _send(
            self.connection, _TEXT, json.dumps({"type": "hello", "connection_info": {"app_id": APP}}).encode()
        )
        slack.connections.append(self.connection)
        slack.opened += 1
        try:
            while (frame := self._frame()) is not None:
                code, data = frame
                if code == _PING:
                    _send(self.connection, _PONG, data)
                elif code == _TEXT:
                    slack.acknowledged.append(json.loads(data)["envelope_id"])
                elif code == _CLOSE:
                    break
        except OSError:  # cut
            pass
        if self.connection in slack.connections:
            slack.connections.remove(self.connection)

    def _frame(self) -> tuple[int, bytes] | None:
        head = self.rfile.read(2)
        if len(head) < 2:
            return None
        length = head[1] & 127
        if length > 125:
            length = struct.unpack(
                "!H" if length == 126 else "!Q", self.rfile.read(2 if length == 126 else 8)
            )[0]
        mask = self.rfile.read(4)
        data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(length)))
        return head[0] & 15, data


def _send(connection: socket.socket, code: int, data: bytes) -> None:
    size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack("!H", len(data))
    connection.sendall(bytes([0x80 | code]) + size + data)
