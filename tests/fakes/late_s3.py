"""moto's S3 over HTTP, each answer of which is late, and buckets called `silent…` that never answer.

As a program, `late_s3.py SECONDS OBJECTS`: OBJECTS is a file with a line `bucket/key` for each object. It
writes its URL when everything is there, and ends with its standard input.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import boto3
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


def environment(url: str) -> dict[str, str]:
    """What points an S3 client there, away from any real account."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ENDPOINT_URL_S3": url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


class LateS3:
    """The server; `late` is how many seconds each answer takes more. `asked` counts the requests."""

    def __init__(self, late: float = 0.0) -> None:
        self.late, self.asked, self.over = late, 0, threading.Event()
        # Without it, each request would be a connection of its own.
        WSGIRequestHandler.protocol_version = "HTTP/1.1"
        WSGIRequestHandler.log = lambda *_: None  # type: ignore[method-assign]
        inner = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._slowed(inner), threaded=True)
        self._server.daemon_threads = True  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _slowed(self, inner: Application) -> Application:
        def answer(request: dict[str, Any], start: Any) -> Iterable[bytes]:
            self.asked += 1
            if request["PATH_INFO"].startswith("/silent"):
                self.over.wait(600)
            time.sleep(self.late)
            return inner(request, start)

        return answer

    def put(self, objects: Iterable[str]) -> None:
        """Empty objects, each named as `bucket/key`; buckets are made."""
        late, self.late = self.late, 0.0
        client = boto3.client(
            "s3", endpoint_url=self.url, region_name="us-east-1", aws_access_key_id="test",
            aws_secret_access_key="test",
        )  # fmt: skip
        made: set[str] = set()
        for name in objects:
            bucket, _, key = name.partition("/")
            if bucket not in made:
                client.create_bucket(Bucket=bucket)
                made.add(bucket)
            client.put_object(Bucket=bucket, Key=key)
        self.late = late

    def close(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    def fork(self) -> None:
        """One more process that answers with what is there now: one alone answers 200 times a second."""
        if os.fork() == 0:
            self._server.serve_forever()


if __name__ == "__main__":
    server = LateS3(float(sys.argv[1]))
    server.put(Path(sys.argv[2]).read_text("utf-8").split())
    server.fork()
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os.killpg(0, signal.SIGTERM)
