"""What webhooks post to, on the loopback: a receiver of ours, Slack, Teams and PagerDuty, each by its path.

In a test: ``with Hooks() as hooks: … hooks.url("teams"), hooks.fault("teams", "drop"), hooks.posts``.
Each takes what the real one takes, and refuses what is beyond its limits.

A fault is for the next request; `accept` says whether the request is taken before it fails:

    status=429, retry_after="30" · drop · stall · drip (a byte every 50 ms) · garbage · redirect to=URL
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from fakes.slack import _too_much

ROUTING_KEY = "0123456789abcdefcanary0123456789"
MOST_BYTES = {"teams": 28 * 1024, "pagerduty": 512 * 1024, "slack": 1_000_000, "webhook": 64 * 1024}
# A webhook's URL is its secret.
SECRET_PATH = "hooks-canary-of-the-tests"


@dataclass(frozen=True)
class Post:
    """A request that was taken."""

    body: dict[str, Any]
    headers: dict[str, str]
    raw: bytes


class Hooks:
    """Four hosts in one; `posts` is the ledger by host, `requests` counts all that came."""

    def __init__(self):
        self.posts: dict[str, list[Post]] = defaultdict(list)
        self.requests: list[str] = []
        self.faults: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.server.daemon_threads = True
        self.server.hooks = self

    @property
    def port(self) -> int:
        return self.server.server_address[1]

    def url(self, host: str) -> str:
        return f"http://127.0.0.1:{self.port}/{host}/{SECRET_PATH}?sig={SECRET_PATH}"

    def fault(self, host: str, kind: str, times: int = 1, **how: Any) -> None:
        self.faults[host] += [{"kind": kind, **how} for _ in range(times)]

    def __enter__(self) -> Hooks:
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()

    def take(self, host: str, post: Post) -> tuple[int, bytes]:
        """What the host says to a request; it is in the ledger if the host took it."""
        if len(post.raw) > MOST_BYTES[host]:
            return 413, b"too large"
        status, said = getattr(self, "_" + host)(post.body)
        if 200 <= status < 300:
            self.posts[host].append(post)
        return status, said

    def _webhook(self, body):
        return 204, b""

    def _slack(self, body):
        error = _too_much(body)
        return (400, error.encode()) if error else (200, b"ok")

    def _teams(self, body):
        card = body["attachments"][0]
        adaptive = card["contentType"] == "application/vnd.microsoft.card.adaptive"
        return (202, b"") if adaptive and card["content"]["body"] else (400, b"no card")

    def _pagerduty(self, body):
        wrong = [
            body["routing_key"] != ROUTING_KEY,
            body["event_action"] not in ("trigger", "acknowledge", "resolve"),
            not 0 < len(body["dedup_key"]) <= 255,
            body["event_action"] == "trigger" and not 0 < len(body["payload"]["summary"]) <= 1024,
            body["payload"]["severity"] not in ("info", "warning", "error", "critical"),
        ]
        if any(wrong):
            return 400, b'{"status": "invalid event"}'
        return 202, json.dumps({"status": "success", "dedup_key": body["dedup_key"]}).encode()


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:  # the library's name
        hooks, host = self.server.hooks, self.path.split("/")[1]
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with hooks.lock:
            hooks.requests.append(self.path)
            script = hooks.faults[host]
            fault = script.pop(0) if script else {"kind": "none", "accept": True}
            post = Post(json.loads(raw), dict(self.headers), raw)
            status, said = hooks.take(host, post) if fault.get("accept") else (200, b"")
        getattr(self, "_" + fault["kind"])(fault, status, said)

    def _none(self, fault: dict[str, Any], status: int, said: bytes) -> None:
        self._say(status, said)

    def _status(self, fault: dict[str, Any], status: int, said: bytes) -> None:
        wait = fault.get("retry_after")
        self._say(fault["status"], fault.get("body", b"sorry"), {} if wait is None else {"Retry-After": wait})

    def _garbage(self, fault: dict[str, Any], status: int, said: bytes) -> None:
        self.wfile.write(b"\0\1garbage\r\n\r\n")
        self.close_connection = True

    def _redirect(self, fault: dict[str, Any], status: int, said: bytes) -> None:
        self._say(fault.get("status", 307), b"", {"Location": fault["to"]})

    def _drop(self, fault: dict[str, Any], status: int, said: bytes) -> None:
        self.close_connection = True

    def _stall(self, fault: dict[str, Any], status: int, said: bytes) -> None:
        self.server.hooks.stopping.wait()

    def _drip(self, fault: dict[str, Any], status: int, said: bytes) -> None:
        self.wfile.write(b"HTTP/1.1 200 ")
        try:
            while not self.server.hooks.stopping.is_set():
                self.wfile.write(b"O")
                self.wfile.flush()
                time.sleep(0.05)
        except OSError:
            self.close_connection = True

    def _say(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        try:
            self.send_response(status)
            for name, value in {"Content-Length": len(body), **(headers or {})}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True
