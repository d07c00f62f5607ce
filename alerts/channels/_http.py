"""One POST to one host, and targets whose address only the operator knows."""

from __future__ import annotations

import math
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Event, Timer
from types import MappingProxyType
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from dq.alerts.channel import (
    Ambiguous,
    Answer,
    Blockage,
    ChannelSetting,
    Inspection,
    MessagePlace,
    NotSent,
    Rejected,
    Sender,
    Sent,
)
from dq.contracts.access.access_policy import WEB, web_address

# One POST to one host: TLS is verified, no redirect is followed, and all of it has a time limit.

# Of one address of a host, which may have several.
_CONNECT_SECONDS = 5.0
TIMEOUT_SECONDS = 10.0
"""Of one call, all in all: the lease of the outbox is longer."""

_MAX_RETRY_AFTER_SECONDS = 3600.0
_MOST_BYTES = 64 * 1024
# The limit of the whole call and that of one read have the same length: either may end first.
_LATE = Ambiguous("no answer in time")


@dataclass(frozen=True, slots=True)
class Response:
    """What a host said: the first 64 KiB of its body, and how long it wants us to wait, if it says so."""

    status: int
    body: bytes
    retry_after_seconds: float | None


def unsafe(url: str) -> str:
    """Why nothing may be sent to a URL, in words that do not show it; empty when it may."""
    address = web_address(url, WEB)
    if address is None or "#" in address.rest:
        return "its URL is no plain https:// URL"
    if address.scheme != "https" and not address.is_loopback:
        return "its URL has no https://, so it would be sent in the clear"
    return ""


def post(
    url: str, body: bytes, headers: Mapping[str, str], timeout_seconds: float = TIMEOUT_SECONDS
) -> Response | NotSent | Ambiguous:
    """Sends `body` to a URL that is not `unsafe`. NotSent: it never left us; Ambiguous: it may have."""
    parts = urlsplit(url)
    connection = _connection(parts, min(timeout_seconds, _CONNECT_SECONDS))
    try:
        try:
            connection.connect()
        except (OSError, HTTPException, UnicodeError) as error:
            return NotSent(f"no connection: {_kind(error)}", None, Blockage.ROUTE)
        connection.sock.settimeout(timeout_seconds)
        with time_limit(lambda: connection.sock, timeout_seconds) as over:
            answer = _answer(connection, parts, body, headers)
        # What was cut off by us may begin like an answer.
        return _LATE if over.is_set() else answer
    finally:
        connection.close()


def send(
    url: str | Rejected,
    body: bytes,
    place: MessagePlace,
    failure: Callable[[Response], NotSent | Ambiguous | Rejected | None],
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Answer:
    """Posts JSON to an `address`; what is sent is at `place`. `failure` tells from the response why not."""
    if isinstance(url, Rejected):
        return url
    response = post(url, body, {"Content-Type": "application/json", **headers})
    if not isinstance(response, Response):
        return response
    return failure(response) or Sent(place)


@contextmanager
def time_limit(connected: Callable[[], socket.socket | None], limit_seconds: float) -> Iterator[Event]:
    """Ends the connection after the time: whoever answers one byte a second keeps within every timeout.

    `connected` gives the socket as it is then: STARTTLS puts another in its place. The event is set when the
    time is over.
    """
    over = Event()
    timer = Timer(limit_seconds, _hang_up, (connected, over))
    timer.daemon = True
    timer.start()
    try:
        yield over
    finally:
        timer.cancel()


def unless_taken(response: Response) -> NotSent | Ambiguous | Rejected | None:
    """What a status means where any success is one."""
    return None if 200 <= response.status < 300 else refusal(response)


def refusal(response: Response) -> NotSent | Ambiguous | Rejected:
    """What a status that is no success means where nothing more is known of a host."""
    status, said = response.status, f"HTTP {response.status}"
    if status == 429 or (status == 503 and response.retry_after_seconds is not None):
        return NotSent(said, response.retry_after_seconds, Blockage.ROUTE)
    if 300 <= status < 400:
        return Rejected(f"{said} sends to another address, which dq does not follow", Blockage.ROUTE)
    if status == 413:
        return Rejected(said, Blockage.MESSAGE)
    return Rejected(said, Blockage.ROUTE) if 400 <= status < 500 and status != 408 else Ambiguous(said)


def seconds(retry_after: str | None) -> float | None:
    """The header's seconds, at most an hour; None when it is missing or is no number of seconds."""
    try:
        wait = float(retry_after or "")
    except ValueError:
        return None
    return min(wait, _MAX_RETRY_AFTER_SECONDS) if math.isfinite(wait) and wait >= 0 else None


def _connection(parts: SplitResult, timeout_seconds: float) -> HTTPConnection:
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "http":  # the loopback alone, which needs no proxy
        return HTTPConnection(host, port or 80, timeout=timeout_seconds)
    context = ssl.create_default_context()
    proxy = urlsplit(getproxies().get("https", "")) if not proxy_bypass(host) else None
    if proxy is None or not proxy.hostname:
        return HTTPSConnection(host, port or 443, timeout=timeout_seconds, context=context)
    through = HTTPSConnection(proxy.hostname, proxy.port or 80, timeout=timeout_seconds, context=context)
    through.set_tunnel(host, port or 443)
    return through


def _answer(
    connection: HTTPConnection, parts: SplitResult, body: bytes, headers: Mapping[str, str]
) -> Response | Ambiguous:
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", path, body, {"User-Agent": "dq", **headers})
        answer = connection.getresponse()
        wait = _wait(answer.headers.get("Retry-After"), answer.headers.get("Date"))
        return Response(answer.status, answer.read(_MOST_BYTES), wait)
    except TimeoutError:
        return _LATE
    except (OSError, HTTPException, ValueError) as error:
        return Ambiguous(f"no answer: {_kind(error)}")


def _wait(retry_after: str | None, date: str | None) -> float | None:
    """Seconds, or an HTTP date by the clock of whoever wrote it (RFC 9110, 10.2.3)."""
    if retry_after is None or date is None or not retry_after[:1].isalpha():
        return seconds(retry_after)
    try:
        length = parsedate_to_datetime(retry_after) - parsedate_to_datetime(date)
    except (ValueError, TypeError):
        return None
    return seconds(str(max(length.total_seconds(), 0.0)))


def _hang_up(connected: Callable[[], socket.socket | None], over: Event) -> None:
    over.set()
    now = connected()
    if now is not None:
        with suppress(OSError):
            # Not SSLSocket's own, which takes the layer away under the thread that reads.
            socket.socket.shutdown(now, socket.SHUT_RDWR)


def _kind(error: Exception) -> str:
    return type(error).__name__


# Targets that contracts name, and whose address or key, a secret, only the operator knows.


def named_secret(name: str, variable: str, what: str) -> ChannelSetting:
    """The setting of a secret that each target has its own of."""
    return ChannelSetting(
        name, variable, f"{what}, by the name that contracts give it.", secret=True, each=True
    )


def values(setting: ChannelSetting, settings: Mapping[str, str]) -> dict[str, str]:
    """The values of a setting that has one for each target, by the target's name."""
    beginning = f"{setting.name}:"
    return {
        name.removeprefix(beginning): value.strip()
        for name, value in settings.items()
        if name.startswith(beginning) and value.strip()
    }


def address(setting: ChannelSetting, urls: Mapping[str, str], target: str) -> str | Rejected:
    """The URL of a target, or why there is none; never with the URL in the words."""
    url = urls.get(target)
    if url is None:
        return Rejected(f"nothing says where {target!r} is. Set {setting.of(target)}", Blockage.ROUTE)
    wrong = unsafe(url)
    return Rejected(f"{wrong}. Mend {setting.of(target)}", Blockage.ROUTE) if wrong else url


def inspecting(
    channel: str,
    make: Callable[[Mapping[str, str], Callable[[str], object]], Sender],
    setting: ChannelSetting,
    why_not: Callable[[str], str] = unsafe,
) -> Callable[[Mapping[str, str]], list[Inspection]]:
    """Tells whether the settings are whole: a look beyond that would send a message.

    `why_not` says what is wrong with a target's value, without showing it.
    """

    def inspect(settings: Mapping[str, str]) -> list[Inspection]:
        make(settings, str)
        return [
            Inspection(False, f"{target}: {wrong}", f"Mend {setting.of(target)}.")
            if (wrong := why_not(value))
            else Inspection(
                None,
                f"{target}: set, not tried",
                f"Test it: dq incidents test --channel {channel}:{target}",
            )
            for target, value in sorted(values(setting, settings).items())
        ]

    return inspect
