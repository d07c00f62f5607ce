"""A Slack on the loopback: the Web API's methods that we use, its limits, and a script of faults.

In a test: ``with FakeSlack() as slack: … slack.url, slack.fault(…), slack.posts``.
From another process: ``python tests/fakes/slack.py`` prints its port and serves until stdin is closed;
``POST /_fault`` adds faults and ``GET /_state`` gives posts, messages and calls.

A fault is for the next call of its method. `accept` says whether Slack takes the message before it fails:

    {"method": "chat.postMessage", "kind": "error", "code": "channel_not_found"}
    {"method": "chat.postMessage", "kind": "rate", "retry_after": "30"}     retry_after may be missing
    {"method": "chat.postMessage", "kind": "drop", "accept": true}          closes the connection
    {"method": "chat.postMessage", "kind": "stall", "accept": true}         answers when the server stops
    {"method": "chat.postMessage", "kind": "status", "status": 500, "accept": true}
    {"method": "chat.postMessage", "kind": "garbage", "accept": true}       no JSON
    {"method": "chat.postMessage", "kind": "kill", "pid": 123, "accept": true}
    {"method": "chat.postMessage", "kind": "stop", "pid": 123, "accept": true}    answers the stopped one
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

TOKEN = "xoxb-0-the-secret-of-the-tests"
TEAM = "T0DQTESTS1"
CHANNELS = {"#orders-alerts": "C0ORDERS01", "#platform": "C0PLATFORM"}
MAX_BLOCKS, MAX_SECTION, MAX_HEADER, MAX_CONTEXT, MAX_TEXT, MAX_ALL = 50, 3000, 150, 10, 40_000, 13_200
MAX_FIELDS, MAX_FIELD = 10, 2000


class FakeSlack:
    """One workspace. `posts` is the ledger: every message ever taken, in order."""

    def __init__(self, now=time.time, channels=CHANNELS):
        self.now, self.channels = now, channels
        self.posts: list[dict[str, Any]] = []
        self.messages: dict[str, dict[str, Any]] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.faults: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.scopes = "chat:write,channels:history,groups:history,channels:read,groups:read"
        self.refuses_metadata = ""
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.server.daemon_threads = True
        self.server.slack = self

    @property
    def port(self) -> int:
        return self.server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/"

    def fault(self, method: str, kind: str, times: int = 1, **how: Any) -> None:
        self.faults[method] += [{"kind": kind, **how} for _ in range(times)]

    def unscripted(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        """What befalls a call for which no fault is written."""
        return {"kind": "none", "accept": True}

    def called(self, method: str) -> list[dict[str, Any]]:
        return [body for name, body in self.calls if name == method]

    @property
    def roots(self) -> list[dict[str, Any]]:
        """What stands in the channels now, oldest first."""
        return [message for message in self.messages.values() if "thread_ts" not in message]

    @property
    def replies(self) -> list[dict[str, Any]]:
        """What stands in the threads now, oldest first."""
        return [message for message in self.messages.values() if "thread_ts" in message]

    def __enter__(self) -> FakeSlack:
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()

    def state(self) -> dict[str, Any]:
        return {"posts": self.posts, "messages": list(self.messages.values()), "calls": len(self.calls)}

    # The methods; each gives what stands beside "ok".

    def answer(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        name = method.replace(".", "_")
        known = name.startswith(_METHODS) and hasattr(self, name)
        return getattr(self, name)(body) if known else {"error": "unknown_method"}

    def token_of(self, method: str) -> str:
        """What a call of this method has to show."""
        return TOKEN

    def auth_test(self, body):
        return {"team": "dq", "team_id": TEAM, "user_id": "U0BOT"}

    def chat_postMessage(self, body):  # Slack's own name
        channel, error = self._channel(body), _too_much(body)
        if "metadata" in body and self.refuses_metadata:
            return {"error": self.refuses_metadata}
        if channel is None or error:
            return {"error": error or "channel_not_found"}
        if body.get("thread_ts", body.get("ts")) not in (None, *self.messages):
            return {"error": "thread_not_found"}
        ts = f"{self.now() + len(self.posts) / 1e6:.6f}"
        self.posts.append({**body, "channel": channel, "ts": ts})
        self.messages[ts] = dict(self.posts[-1])
        return {"channel": channel, "ts": ts}

    def chat_update(self, body):
        error = _too_much(body)
        if body["ts"] not in self.messages or error:
            return {"error": error or "message_not_found"}
        self.messages[body["ts"]].update(body)
        return {"channel": body["channel"], "ts": body["ts"]}

    def chat_delete(self, body):
        if self.messages.pop(body["ts"], None) is None:
            return {"error": "message_not_found"}
        return {"channel": body["channel"], "ts": body["ts"]}

    def conversations_list(self, body):
        return {"channels": [{"name": name[1:], "id": key} for name, key in self.channels.items()]}

    def conversations_history(self, body):
        return self._page(body, lambda message: "thread_ts" not in message)

    def conversations_replies(self, body):
        return self._page(body, lambda message: body["ts"] in (message["ts"], message.get("thread_ts")))

    def _page(self, body, wanted):
        if body["channel"] not in self.channels.values():
            return {"error": "channel_not_found"}
        found = [
            message
            for message in reversed(self.messages.values())
            if message["channel"] == body["channel"]
            and wanted(message)
            and float(message["ts"]) > float(body.get("oldest", 0))
        ]
        start, limit = int(body.get("cursor") or 0), int(body.get("limit", 100))
        page = [dict(message) for message in found[start : start + limit]]
        if str(body.get("include_all_metadata")) not in ("1", "True", "true"):
            for message in page:
                message.pop("metadata", None)
        more = str(start + limit) if start + limit < len(found) else ""
        return {"messages": page, "response_metadata": {"next_cursor": more}}

    def _channel(self, body):
        asked = body.get("channel", "")
        return asked if asked in self.channels.values() else self.channels.get(asked)


_METHODS = ("apps_", "auth_", "chat_", "conversations_")


def _too_much(body: dict[str, Any]) -> str | None:
    """Slack's code for a message beyond its limits."""
    blocks = [*body.get("blocks", [])]
    for attachment in body.get("attachments", []):
        blocks += attachment.get("blocks", [])
    if len(body.get("text", "")) > MAX_TEXT:
        return "msg_too_long"
    if len(blocks) > MAX_BLOCKS or not all(_fits(block) for block in blocks):
        return "invalid_blocks"
    return "msg_blocks_too_long" if len(json.dumps(blocks, ensure_ascii=False)) > MAX_ALL else None


def _fits(block: dict[str, Any]) -> bool:
    if block["type"] == "header":
        return 0 < len(block["text"]["text"]) <= MAX_HEADER
    if block["type"] == "section":
        fields = [one["text"] for one in block.get("fields", ())]
        text = block["text"]["text"] if "text" in block or not fields else None
        fits = text is None or 0 < len(text) <= MAX_SECTION
        return fits and len(fields) <= MAX_FIELDS and all(0 < len(one) <= MAX_FIELD for one in fields)
    return 0 < len(block["elements"]) <= MAX_CONTEXT


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:  # the library's name
        with self.server.slack.lock:
            self._say(200, self.server.slack.state())

    def do_POST(self) -> None:  # the library's name
        slack, method = self.server.slack, self.path.rpartition("/")[2].partition("?")[0]
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        is_json = "json" in self.headers.get("Content-Type", "")
        body = json.loads(raw or "{}") if is_json else {k: v[0] for k, v in parse_qs(raw).items()}
        if method == "_fault":
            slack.fault(body.pop("method"), body.pop("kind"), **body)
            return self._say(200, {"ok": True})
        with slack.lock:
            slack.calls.append((method, body))
            if self.headers.get("Authorization") != f"Bearer {slack.token_of(method)}":
                return self._say(200, {"ok": False, "error": "invalid_auth"})
            script = slack.faults[method]
            fault = script.pop(0) if script else slack.unscripted(method, body)
            answer = slack.answer(method, body) if fault.get("accept") else {"error": "not_taken"}
        return getattr(self, "_" + fault["kind"])(fault, answer)

    def _none(self, fault: dict[str, Any], answer: dict[str, Any]) -> None:
        scopes = {"X-OAuth-Scopes": self.server.slack.scopes}
        self._say(200, {"ok": "error" not in answer, **answer}, scopes)

    def _error(self, fault: dict[str, Any], answer: dict[str, Any]) -> None:
        self._say(200, {"ok": False, "error": fault["code"]})

    def _rate(self, fault: dict[str, Any], answer: dict[str, Any]) -> None:
        wait = fault.get("retry_after")
        self._say(429, {"ok": False, "error": "ratelimited"}, {} if wait is None else {"Retry-After": wait})

    def _status(self, fault: dict[str, Any], answer: dict[str, Any]) -> None:
        self._send(fault["status"], b"<html>sorry</html>", "text/html", {})

    def _garbage(self, fault: dict[str, Any], answer: dict[str, Any]) -> None:
        self._send(200, fault.get("body", "<html>a proxy</html>").encode(), "text/html", {})

    def _drop(self, fault: dict[str, Any], answer: dict[str, Any]) -> None:
        self.close_connection = True

    def _stall(self, fault: dict[str, Any], answer: dict[str, Any]) -> None:
        self.server.slack.stopping.wait()

    def _stop(self, fault: dict[str, Any], answer: dict[str, Any]) -> None:
        os.kill(fault["pid"], signal.SIGSTOP)
        # A thread of it may run on until another of its threads was scheduled and took the signal.
        state, until = Path(f"/proc/{fault['pid']}/stat"), time.monotonic() + 300
        while state.read_text().rpartition(")")[2].split()[0] != "T" and time.monotonic() < until:
            time.sleep(0.01)
        self._none(fault, answer)

    def _kill(self, fault: dict[str, Any], answer: dict[str, Any]) -> None:
        os.kill(fault["pid"], signal.SIGKILL)

    def _say(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(body).encode(), "application/json", headers or {})

    def _send(self, status: int, body: bytes, kind: str, headers: dict[str, str]) -> None:
        try:
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": len(body), **headers}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:  # the client was killed or gave up
            self.close_connection = True


if __name__ == "__main__":
    with FakeSlack() as served:
        sys.stdout.write(f"{served.port}\n")
        sys.stdout.flush()
        sys.stdin.read()
