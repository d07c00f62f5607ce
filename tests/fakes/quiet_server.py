"""An HTTP server whose clients may be killed in the middle of a request, which is no news."""

from __future__ import annotations

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Loopback:
    """A place on the loopback while its block runs; handlers find it as `self.server.place`."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.server: Any = QuietServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.server.place = self

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
