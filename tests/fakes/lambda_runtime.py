"""Lambda's Runtime API on the loopback, and the real runtime interface client with a handler in a process.

In a test: `with LambdaRuntime(environment, folder) as function: function.invoke(event)`.
Source: "Using the Lambda runtime API" of AWS's guide.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_ROOT = "/2018-06-01/runtime"


class FunctionError(Exception):
    """The error that a function reports: its type and message."""

    def __init__(self, report: dict[str, Any]) -> None:
        super().__init__(f"{report.get('errorType')}: {report.get('errorMessage')}")
        self.report = report


class Killed(Exception):
    """The function's process ended before it answered."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A function that is killed leaves its connection."""


class LambdaRuntime:
    """A function in a process of its own, which is started again for the call after its end."""

    def __init__(self, environment: Mapping[str, str], folder: Path, timeout_seconds: int = 300) -> None:
        self._timeout_seconds = timeout_seconds
        self._events: queue.Queue[tuple[str, str]] = queue.Queue()
        self._answers: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()
        self._server = _Server(("127.0.0.1", 0), _api(self))
        self._folder, self._count = folder, 0
        self.variables = {
            **environment,
            "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self._server.server_port}",
            "AWS_LAMBDA_FUNCTION_NAME": "dq-watcher",
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
            "LAMBDA_TASK_ROOT": str(folder),
        }
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self._server.shutdown()
        self._server.server_close()

    def start(self) -> subprocess.Popen[str]:
        """Start the process, as Lambda does for the first call."""
        command = [sys.executable, "-m", "awslambdaric", "dq.aws.handler"]
        log = (self._folder / "function.log").open("a")
        self.process = subprocess.Popen(
            command, cwd=self._folder, env=self.variables, stdout=log, stderr=log, text=True
        )
        log.close()
        return self.process

    def invoke(self, event: object, seconds: float = 120) -> dict[str, Any]:
        """Call the function and return its answer. Raises FunctionError, or Killed if it ended."""
        if self.process is None or self.process.poll() is not None:
            self._drop_waiting()
            self.start()
        process = self.process
        assert process is not None
        self._count += 1
        self._events.put((f"request-{self._count}", json.dumps(event)))
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                kind, answer = self._answers.get(timeout=0.1)
            except queue.Empty:
                if process.poll() is not None:
                    self._drop_waiting()
                    raise Killed((self._folder / "function.log").read_text()[-2000:]) from None
                continue
            if kind == "error":
                raise FunctionError(answer)
            return answer
        raise TimeoutError((self._folder / "function.log").read_text()[-2000:])

    def _drop_waiting(self) -> None:
        """A request of a process that has ended must not take the next event."""
        while not self._events.empty():
            self._events.get_nowait()

    # Called by the server.

    def next_event(self) -> tuple[str, str] | None:
        process = self.process
        while process is not None and process.poll() is None:
            try:
                return self._events.get(timeout=0.1)
            except queue.Empty:
                continue
        return None

    def answered(self, kind: str, answer: dict[str, Any]) -> None:
        self._answers.put((kind, answer))

    @property
    def deadline_ms(self) -> int:
        return int((time.time() + self._timeout_seconds) * 1000)


def _api(runtime: LambdaRuntime) -> type[BaseHTTPRequestHandler]:
    class Api(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            assert self.path == f"{_ROOT}/invocation/next", self.path
            event = runtime.next_event()
            if event is None:
                self.close_connection = True
                return
            number, body = event
            self._send(
                200,
                body,
                {
                    # The client crashes without it.
                    "Content-Type": "application/json",
                    "Lambda-Runtime-Aws-Request-Id": number,
                    "Lambda-Runtime-Trace-Id": "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=0",
                    "Lambda-Runtime-Deadline-Ms": str(runtime.deadline_ms),
                    "Lambda-Runtime-Invoked-Function-Arn": (
                        "arn:aws:lambda:eu-central-1:123456789012:function:dq-watcher"
                    ),
                },
            )

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.headers.get("Transfer-Encoding") == "chunked":
                body = self._chunks()
            runtime.answered("error" if self.path.endswith("/error") else "response", json.loads(body))
            self._send(202, '{"status": "OK"}', {})

        def _chunks(self) -> bytes:
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def _send(self, status: int, body: str, headers: dict[str, str]) -> None:
            data = body.encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    return Api


def environment(**variables: str) -> dict[str, str]:
    """What a function's process gets of this one's environment, and variables of its own."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "AWS_EC2_METADATA_DISABLED": "true", **variables}
