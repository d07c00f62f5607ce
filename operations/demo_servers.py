"""Servers of `dq demo --aws`, on the loopback only: moto's AWS in a process of its own, and a Slack."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from dq.contracts.outcome import ReadError

# Ends with its standard input, which also closes when the demo is killed.
_MOTO = """\
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def aws_server(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Run moto's server in a child process, and give its URL. Its log is `moto.log` in the folder.

    Raises ReadError if it does not start.
    """
    log = folder / "moto.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _MOTO],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    with process:
        try:
            assert process.stdout is not None  # it is a pipe
            port = process.stdout.readline().strip()
            if not port:
                raise ReadError("moto's server did not start.", f"The reason is in {log}.")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """A message that Slack accepted: `method` is `chat.postMessage` or `chat.update`. `lines` is its text."""

    at: datetime
    method: str
    channel: str
    lines: tuple[str, ...]
    is_reply: bool


class SlackServer:
    """A workspace that has every channel, and Slack's methods to post and to update messages."""

    def __init__(self) -> None:
        self.token = f"xoxb-demo-{secrets.token_hex(8)}"
        self._messages: list[SlackMessage] = []
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True

    @property
    def url(self) -> str:
        """Base URL of the Web API."""
        return f"http://127.0.0.1:{self._http.server_port}/api/"

    @contextmanager
    def running(self) -> Iterator[SlackServer]:
        """Serve in a thread until the end of the block."""
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield self
        finally:
            self._http.shutdown()
            self._http.server_close()

    def take_messages(self) -> tuple[SlackMessage, ...]:
        """Return the messages since the last call, in their order."""
        with self._lock:
            messages, self._messages = tuple(self._messages), []
        return messages

    def call(self, method: str, token: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a call of the Web API, as Slack documents it."""
        if token != f"Bearer {self.token}":
            return {"ok": False, "error": "invalid_auth"}
        if method not in ("chat.postMessage", "chat.update"):
            return {"ok": False, "error": "unknown_method"}
        received_at = time.time()
        at, channel = datetime.fromtimestamp(received_at, UTC), str(body["channel"])
        with self._lock:
            self._messages.append(
                SlackMessage(at, method, channel, tuple(_lines(body)), is_reply="thread_ts" in body)
            )
        return {"ok": True, "channel": channel, "ts": body.get("ts") or f"{received_at:.6f}"}


def _lines(body: Mapping[str, Any]) -> Iterator[str]:
    """Return the text of a message without Slack's markup; that of its blocks, if it has any."""
    blocks = [*body.get("blocks", ())]
    for attachment in body.get("attachments", ()):
        blocks += attachment.get("blocks", ())
    for block in blocks:
        for text in (block.get("text"), *block.get("fields", ()), *block.get("elements", ())):
            if text and "text" in text:
                yield from _plain(text["text"], is_field=text in block.get("fields", ()))
    if not blocks:
        yield from _plain(str(body.get("text", "")))


def _plain(markup: str, *, is_field: bool = False) -> list[str]:
    text = markup
    for code, character in (("*", ""), ("```", ""), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(code, character)
    # A field is a label and, on the next line, its value.
    return ["  ".join(text.splitlines())] if is_field else text.splitlines()


def _handler(slack: SlackServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: the demo shows the messages."""

        def do_POST(self) -> None:  # the library's name
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                body = json.loads(raw or b"{}")
            except ValueError:
                answer: dict[str, Any] = {"ok": False, "error": "invalid_json"}
            else:
                method = self.path.rpartition("/")[2]
                answer = slack.call(method, self.headers.get("Authorization", ""), body)
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler
