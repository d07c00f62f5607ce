"""A place on the loopback that waits for signs of life: what it was asked for, and how it answers."""

from __future__ import annotations

import time
from http.server import BaseHTTPRequestHandler

from fakes.quiet_server import Loopback


class Heartbeats(Loopback):
    """`status` is what it answers; `drip` sends a byte of the answer each so many seconds, for ever."""

    def __init__(self, status: int = 200, drip: float = 0, location: str = ""):
        self.asked: list[str] = []
        self.status, self.drip, self.location = status, drip, location
        super().__init__(_Handler)

    @property
    def url(self) -> str:
        return f"{self.origin}/canary-5e5e?k=canary-7f7f"


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        place = self.server.place
        place.asked.append(self.path)
        try:
            while place.drip:
                self.wfile.write(b"H")
                time.sleep(place.drip)
            self.send_response(place.status)
            if place.location:
                self.send_header("Location", place.location)
            self.send_header("Content-Length", "0")
            self.end_headers()
        except OSError:  # who asked has given up
            pass
