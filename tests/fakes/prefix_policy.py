"""S3 as a role sees it that may list one folder only: moto behind a proxy that enforces the policy."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

_DENIED = (
    b"<?xml version='1.0' encoding='UTF-8'?>"
    b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
)
_HOP_BY_HOP = {"content-length", "connection", "transfer-encoding", "date", "server"}


@contextmanager
def limited(upstream: str, prefixes: Sequence[str], unreadable: Sequence[str] = ()) -> Iterator[str]:
    """Yield the endpoint of `upstream` for a role whose `s3:ListBucket` has the condition `s3:prefix`.

    Listings of other prefixes are denied. So are HEAD requests for a bucket and for a missing object, because
    they need the permission to list the bucket and have no prefix. The objects `unreadable`, as patterns of
    `/bucket/key`, are listed, but the role may not read them.
    """

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            target = urlsplit(self.path)
            query = parse_qs(target.query, keep_blank_values=True)
            lists, prefix = "list-type" in query, query.get("prefix", [""])[0]
            readable = not any(fnmatchcase(target.path, pattern) for pattern in unreadable)
            has_key = "/" in target.path.strip("/") and readable
            allowed = any(fnmatchcase(prefix, pattern) for pattern in prefixes) if lists else has_key
            if not allowed:
                self._answer(403, {}, _DENIED)
                return
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else None
            headers = {name: value for name, value in self.headers.items() if name != "Host"}
            request = urllib.request.Request(
                upstream + self.path, data=body, headers=headers, method=self.command
            )
            try:
                with urllib.request.urlopen(request) as answer:
                    self._answer(answer.status, dict(answer.headers), answer.read())
            except urllib.error.HTTPError as error:
                missing = error.code == 404 and not lists
                self._answer(403 if missing else error.code, {}, _DENIED if missing else error.read())

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            is_head = self.command == "HEAD"
            self.send_header(
                "Content-Length", headers.get("Content-Length", "0") if is_head else str(len(body))
            )
            self.end_headers()
            if not is_head:
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = _forward  # noqa: N815  # the names of http.server

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
