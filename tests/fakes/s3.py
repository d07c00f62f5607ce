"""As much of S3 as writing an empty object needs, over HTTP on the loopback."""

from __future__ import annotations

import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from xml.sax.saxutils import escape

_UPLOAD = "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"


class FakeS3:
    """A server of `objects`, by bucket and key, while the block runs."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(objects))

    @property
    def environment(self) -> dict[str, str]:
        """What points an S3 client here, away from any real account."""
        url = f"http://127.0.0.1:{self._server.server_port}"
        return {
            "AWS_ENDPOINT_URL": url,
            "AWS_ENDPOINT_URL_S3": url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(objects: dict[str, bytes]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer("", 200 if self._key() in objects else 404)

        def do_GET(self) -> None:
            bucket = self._key() + "/"
            prefix = bucket + self._query()["prefix"][0]
            keys = [key.removeprefix(bucket) for key in objects if key.startswith(prefix)]
            listed = "".join(f"<Contents><Key>{escape(key)}</Key><Size>1</Size></Contents>" for key in keys)
            self._answer(f"<ListBucketResult><KeyCount>{len(keys)}</KeyCount>{listed}</ListBucketResult>")

        def do_PUT(self) -> None:
            objects[self._key()] = self._body()
            self._answer("")

        def do_POST(self) -> None:
            self._body()
            self._answer(_UPLOAD if "uploads" in self._query() else "")

        def _key(self) -> str:
            return urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).lstrip("/")

        def _query(self) -> dict[str, list[str]]:
            return urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query, keep_blank_values=True)

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def _answer(self, text: str, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text.encode())

    return Handler
