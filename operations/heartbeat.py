"""The sign of life: a URL that is asked for after a tick that judged everything and left nothing unsent.

Whoever waits for it, such as healthchecks.io, raises the alarm when it does not come. The URL is a secret,
since whoever knows it can give the sign too: it stands in no message.
"""

from __future__ import annotations

import http.client
import ssl
import threading
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from dq.contracts.access.access_policy import WEB, web_address
from dq.contracts.shared.outcome import UsageError
from dq.operations.metrics import is_loopback
from dq.operations.runtime.context import World, secret_in

VARIABLE = "DQ_HEARTBEAT_URL"
SECONDS = 5.0
_MEND = f"Correct {VARIABLE}, heartbeat_url in dq.toml, or the file that {VARIABLE}_FILE names."


def heartbeat_url(world: World) -> str:
    """The operator's URL; empty where there is none.

    Raises UsageError, which does not quote it, for one that is not `https://…`; on the loopback `http` does.
    """
    file = world.environment.get(f"{VARIABLE}_FILE")
    url = secret_in(Path(file), f"{VARIABLE}_FILE") if file else world.settings.heartbeat_url
    if url:
        _parts(url)
    return url


def ping(url: str, seconds: float = SECONDS) -> str | None:
    """Asks for the URL once, following nothing; why that failed, or None. Takes at most `seconds`."""
    ended: list[str | None] = []
    # A thread, because a server that answers a byte at a time outlasts every timeout of a socket.
    asking = threading.Thread(target=lambda: ended.append(_ask(_parts(url), seconds)), daemon=True)
    asking.start()
    asking.join(seconds)
    return ended[0] if ended else _late(seconds)


def _ask(parts: SplitResult, seconds: float) -> str | None:
    host, port = parts.hostname or "", parts.port
    secure = parts.scheme == "https"
    connection = (
        http.client.HTTPSConnection(host, port, timeout=seconds, context=ssl.create_default_context())
        if secure
        else http.client.HTTPConnection(host, port, timeout=seconds)
    )
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    try:
        connection.request("GET", path, headers={"User-Agent": "dq", "Connection": "close"})
        status = connection.getresponse().status
    except TimeoutError:
        return _late(seconds)
    # What these say may quote the address.
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        return f"it could not be reached ({type(error).__name__})"
    finally:
        connection.close()
    return None if 200 <= status < 300 else f"the answer was HTTP {status}"


def _late(seconds: float) -> str:
    return f"no answer within {seconds:g} s"


def _parts(url: str) -> SplitResult:
    address = web_address(url, WEB)
    if address is None or not url.isascii():
        raise UsageError("heartbeat_url is no URL that can be asked for.", _MEND)
    if address.scheme != "https" and not is_loopback(address.host):
        raise UsageError("heartbeat_url is not https, and not of this machine.", _MEND)
    return urlsplit(url)
