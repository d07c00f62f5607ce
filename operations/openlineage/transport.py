"""Where events go."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
import yaml
from openlineage.client.serde import Serde
from openlineage.client.transport import Config, Transport, get_default_factory
from openlineage.client.transport.http import HttpConfig, HttpTransport

from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.access.files import read_own
from dq.contracts.shared.outcome import UsageError

# How events leave: appended to a file, posted to a URL, or as a file of OpenLineage's own settings says.

KEY = "OPENLINEAGE_API_KEY"
_ENDPOINT = "api/v1/lineage"
_MEND = "Correct DQ_LINEAGE, or lineage in dq.toml."


class _OneAnswer(requests.Session):
    """Follows nothing, reads no answer's body, and sends no password of `.netrc`."""

    def __init__(self) -> None:
        super().__init__()
        self.auth = lambda request: request

    def request(self, *given: Any, **options: Any) -> requests.Response:
        answer = super().request(*given, **options | {"stream": True, "allow_redirects": False})
        if answer.is_redirect:
            answer.close()
            raise requests.TooManyRedirects("it sends to another address, which dq does not follow")
        return answer


class AppendedLines(Transport):
    """One line of JSON for each event, whole also where several processes write."""

    kind = "dq_file"
    config_class = Config

    def __init__(self, path: Path) -> None:
        self.path = path

    def emit(self, event: Any) -> None:
        line = Serde.to_json(event).encode() + b"\n"
        # Without O_NONBLOCK, a FIFO that nobody reads would keep us waiting.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0)
        file = os.open(self.path, flags, 0o600)
        try:
            if sys.platform != "win32":
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            while line:
                line = line[os.write(file, line) :]
        finally:
            os.close(file)


def transport(target: str, environment: Mapping[str, str]) -> Transport:
    """What the setting `lineage` names: a URL, a file of settings (`.yml`, `.yaml`), or a file for lines.

    Raises UsageError, which quotes no URL, for what cannot be understood.
    """
    if target.startswith(("http://", "https://")):
        return _http(target, environment)
    path = Path(target)
    if path.suffix in (".yml", ".yaml"):
        return _of_settings(path)
    return AppendedLines(path)


def _http(url: str, environment: Mapping[str, str]) -> Transport:
    if not url.isascii() or web_address(url, WEB) is None:
        raise UsageError("lineage is no URL that can be posted to.", _MEND)
    parts = urlsplit(url)
    key = environment.get(KEY)
    return HttpTransport(
        HttpConfig.from_dict(
            {
                "url": f"{parts.scheme}://{parts.netloc}",
                "endpoint": parts.path.strip("/") or _ENDPOINT,
                "retry": {"total": 1, "connect": 1, "read": 0},
                "session": _OneAnswer(),
                **({"auth": {"type": "api_key", "apiKey": key}} if key else {}),
            }
        )
    )


def _of_settings(path: Path) -> Transport:
    """As the client makes it of the section `transport`; no other file of it is looked for or read."""
    try:
        written = yaml.safe_load(read_own(path).decode())
        made = get_default_factory().create(dict(written["transport"]))
    # What is wrong in there is said by whatever the file names, a class of the operator's own too.
    except Exception as error:
        reason = f"OpenLineage does not understand it ({type(error).__name__})"
        raise UsageError(f"{path}: {reason}.", "Write 'transport: {type: http, url: …}'.") from error
    if isinstance(made, HttpTransport):
        made.session = _OneAnswer()
    return made
