"""HTTP server that previews a portal on this machine."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dq.contracts.access.files import FileMissing, FileRef, FileRejected, printable_path, read, split_name
from dq.contracts.outcome import UsageError
from dq.portal.output import OWN

_CONTENT_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
    "xml": "application/atom+xml; charset=utf-8",
}
_MAX_BYTES = 64 << 20
_TIMEOUT_SECONDS = 10


class PortalServer(ThreadingHTTPServer):
    """HTTP server for a portal folder on 127.0.0.1.

    Raises UsageError if the folder is not a portal, or the port cannot be used.
    """

    daemon_threads = True

    def __init__(self, root: Path, port: int = 0) -> None:
        if not (root / OWN).is_dir():
            raise UsageError(
                f"{printable_path(root)} is not a portal.", "Build one in a new folder: dq portal build site"
            )
        self.root = root
        try:
            super().__init__(("127.0.0.1", port), _PortalHandler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or "no such port"
            raise UsageError(f"cannot use port {port}: {reason}.", "Choose another --port.") from error


class _PortalHandler(BaseHTTPRequestHandler):
    server: PortalServer
    server_version = "dq"
    sys_version = ""
    timeout = _TIMEOUT_SECONDS

    def do_GET(self) -> None:
        """Serve a file of the site."""
        if not self._is_local_request():
            self._respond(HTTPStatus.FORBIDDEN, b"Ask for it as 127.0.0.1 or localhost.\n")
            return
        name = unquote(urlsplit(self.path).path, errors="replace").lstrip("/")
        name = f"{name}index.html" if name == "" or name.endswith("/") else name
        try:
            path_parts = split_name(name)
            if path_parts[0] == OWN:
                raise FileMissing("Internal file of the portal.", "")
            body = read(FileRef(self.server.root, "/".join(path_parts)), limit=_MAX_BYTES)
        except (FileRejected, OSError):
            self._respond(HTTPStatus.NOT_FOUND, b"There is no such page.\n")
            return
        self._respond(
            HTTPStatus.OK,
            body,
            _CONTENT_TYPES.get(path_parts[-1].rpartition(".")[2], "application/octet-stream"),
        )

    do_HEAD = do_GET  # noqa: N815  # the library's name

    def _is_local_request(self) -> bool:
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        return host.lower() in ("127.0.0.1", "localhost")

    def _respond(self, status: HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
