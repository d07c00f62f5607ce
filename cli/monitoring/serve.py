"""The endpoint that Prometheus scrapes: GET /metrics, on the loopback unless the operator says otherwise.

It has no password. So it is bounded: a few requests at a time, each of them short, one reading of the store
for all that ask within some seconds, and on the loopback no page of a browser may ask under another name.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

from dq.cli.monitoring.exposition import OPENMETRICS_TYPE, PROMETHEUS_TYPE, render
from dq.cli.monitoring.gather import Samples
from dq.contracts.shared.outcome import UsageError

AT_ONCE = 8
"""So many requests are served at a time; further connections are closed."""

REQUEST_SECONDS = 10
FRESH_SECONDS = 5.0
_PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where to listen. `local`: nobody on another machine can reach it."""

    host: str
    port: int

    @property
    def local(self) -> bool:
        """Whether it is a loopback address; a name is taken for what it is only where it is `localhost`."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a host, as a URL writes it, is this machine's loopback."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def address(text: str, *, anywhere: bool = False) -> ListenAddress:
    """The address of `host:port`; an IPv6 host stands in brackets. Raises UsageError for any other text.

    And for an address that others can reach, unless `anywhere`.
    """
    host, colon, port = text.rpartition(":")
    plain = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not (colon and plain and port.isascii() and port.isdigit() and int(port) < 65536) or (
        ":" in plain and plain == host
    ):
        raise UsageError(f"{text!r} is no address.", "Write it like 127.0.0.1:9464, or [::1]:9464.")
    found = ListenAddress(plain, int(port))
    if not found.local and not anywhere:
        raise UsageError(
            f"{text!r} can be reached by others, and there is no password.",
            "Listen on 127.0.0.1, or say --any-address once it is behind a firewall or a proxy.",
        )
    return found


@dataclass(slots=True)
class FreshSamples:
    """Samples that are read anew when they are older than FRESH_SECONDS, by one thread for all."""

    read: Callable[[], Samples]
    lock: threading.Lock = field(default_factory=threading.Lock)
    at: float = float("-inf")
    samples: Samples = field(default_factory=dict)

    def now(self) -> Samples:
        """The samples, at most so old."""
        with self.lock:
            if time.monotonic() - self.at > FRESH_SECONDS:
                self.samples = self.read()
                self.at = time.monotonic()
            return self.samples


class MetricsServer(ThreadingHTTPServer):
    """Serves what `read` gives, and listens as soon as it is made. Raises UsageError where it cannot."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self, at: ListenAddress, read: Callable[[], Samples], request_seconds: float = REQUEST_SECONDS
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
        self.local, self.request_seconds = at.local, request_seconds
        self.kept = FreshSamples(read)
        self.places = threading.BoundedSemaphore(AT_ONCE)
        try:
            super().__init__((at.host, at.port), _Handler)
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "no such address"
            raise UsageError(
                f"dq cannot listen on {at.host}:{at.port}: {reason}.", "Choose another --listen."
            ) from error

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begins a thread for it, or closes it where all places are taken."""
        if not self.places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serves one connection, and gives its place back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, or takes too long, is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer
    server_version = "dq"
    sys_version = ""

    def setup(self) -> None:
        """Gives whoever asks its time."""
        super().setup()
        self.connection.settimeout(self.server.request_seconds)

    def do_GET(self) -> None:
        """Gives the metrics, in the format that is asked for."""
        host = self.headers.get("Host", "")
        # A page of a browser may be made to ask this machine, under the name that it came by.
        if self.server.local and host and not is_loopback(_without_port(host)):
            self._say(HTTPStatus.FORBIDDEN, _PLAIN, b"Ask for it by a name of this machine's loopback.\n")
        elif self.path.partition("?")[0] != "/metrics":
            self._say(HTTPStatus.NOT_FOUND, _PLAIN, b"The figures are at /metrics.\n")
        else:
            new = "application/openmetrics-text" in self.headers.get("Accept", "")
            body = render(self.server.kept.now(), openmetrics=new)
            self._say(HTTPStatus.OK, OPENMETRICS_TYPE if new else PROMETHEUS_TYPE, body)

    do_HEAD = do_GET  # noqa: N815  # the library's name

    def _say(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """What strangers ask for is written nowhere."""


def _without_port(host: str) -> str:
    return host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
