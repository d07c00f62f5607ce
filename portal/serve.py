"""A look at the site on this machine: GET of its files, on the loopback, for nobody else.

It answers only under the names of the loopback, since a page of a browser may be made to ask this machine
under another one; it lists no folder, and follows no link out of the site.
"""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dq.contracts.access import files
from dq.contracts.access.files import Absent, FileRefused, Found, read, shown
from dq.contracts.outcome import UsageError
from dq.portal.output import OWN

_KINDS = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
    "xml": "application/atom+xml; charset=utf-8",
}
_LARGEST = 64 << 20
_SECONDS = 10


class PortalServer(ThreadingHTTPServer):
    """Serves a portal's folder on 127.0.0.1. Raises UsageError where there is none, or the port is taken."""

    daemon_threads = True

    def __init__(self, root: Path, port: int = 0) -> None:
        if not (root / OWN).is_dir():
            raise UsageError(
                f"{shown(root)} is not a portal.", "Build one in a new folder: dq portal build site"
            )
        self.root = root
        try:
            super().__init__(("127.0.0.1", port), _PortalHandler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or "no such port"
            raise UsageError(f"Port {port} cannot be used: {reason}.", "Choose another --port.") from error


class _PortalHandler(BaseHTTPRequestHandler):
    server: PortalServer
    server_version = "dq"
    sys_version = ""
    timeout = _SECONDS

    def do_GET(self) -> None:
        """Gives a file of the site."""
        if not self._asked_here():
            self._say(HTTPStatus.FORBIDDEN, b"Ask for it as 127.0.0.1 or localhost.\n")
            return
        name = unquote(urlsplit(self.path).path, errors="replace").lstrip("/")
        name = f"{name}index.html" if name == "" or name.endswith("/") else name
        try:
            parts = files.parts(name)
            if parts[0] == OWN:
                raise Absent("It is the portal's own.", "")
            body = read(Found(self.server.root, "/".join(parts)), limit=_LARGEST)
        except (FileRefused, OSError):
            self._say(HTTPStatus.NOT_FOUND, b"There is no such page.\n")
            return
        self._say(HTTPStatus.OK, body, _KINDS.get(parts[-1].rpartition(".")[2], "application/octet-stream"))

    do_HEAD = do_GET  # noqa: N815  # the library's name

    def _asked_here(self) -> bool:
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        return host.lower() in ("127.0.0.1", "localhost")

    def _say(self, status: HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """A look leaves no log."""
