"""A place on the loopback that waits for signs of life: what it was asked for, and how it answers."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Heartbeats:
    """`status` is what it answers; `drip` sends a byte of the answer each so many seconds, for ever."""

    def __init__(self, status: int = 200, drip: float = 0, location: str = ""):
        self.asked: list[str] = []
        self.status, self.drip, self.location = status, drip, location
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.server.daemon_threads = True
        self.server.place = self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/canary-5e5e?k=canary-7f7f"

    def __enter__(self) -> Heartbeats:
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


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
