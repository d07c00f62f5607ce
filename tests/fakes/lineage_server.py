"""An endpoint of OpenLineage on the loopback: what was posted to it, and how well or badly it answers."""

from __future__ import annotations

import json
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

from fakes.quiet_server import Loopback


class LineageServer(Loopback):
    """`status` is what it answers. `drip`: a byte of the answer each so many seconds; `flood`: a body
    without end; `location`: where it sends its clients."""

    def __init__(self, status: int = 201, drip: float = 0, location: str = "", *, flood: bool = False):
        self.events: list[Any] = []
        self.asked: list[tuple[str, str, str | None]] = []
        self.written = 0
        self.status, self.drip, self.location, self.flood = status, drip, location, flood
        super().__init__(_Handler)

    @property
    def url(self) -> str:
        return self.origin


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
