"""An endpoint of OpenLineage on the loopback: what was posted to it, and how well or badly it answers."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

from fakes.quiet_server import QuietServer


class LineageServer:
    """`status` is what it answers. `drip`: a byte of the answer each so many seconds; `flood`: a body
    without end; `location`: where it sends its clients."""

    def __init__(self, status: int = 201, drip: float = 0, location: str = "", *, flood: bool = False):
        self.events: list[Any] = []
        self.asked: list[tuple[str, str, str | None]] = []
        self.written = 0
        self.status, self.drip, self.location, self.flood = status, drip, location, flood
        self.server = QuietServer(("127.0.0.1", 0), _Handler)
        self.server.daemon_threads = True
        self.server.place = self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> LineageServer:
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.place.asked.append(("GET", self.path, None))
        self.send_response(200)
        self.end_headers()

    def do_POST(self) -> None:
        place = self.server.place
        place.asked.append(("POST", self.path, self.headers.get("Authorization")))
        place.events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        while place.drip:
            self.wfile.write(b"H")
            time.sleep(place.drip)
        self.send_response(place.status)
        if place.location:
            self.send_header("Location", place.location)
        if not place.flood:
            self.send_header("Content-Length", "0")
        self.end_headers()
        while place.flood:
            place.written += self.wfile.write(b"x" * 65_536)
