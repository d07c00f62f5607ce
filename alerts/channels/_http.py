"""HTTP POST for channels, and targets whose secret URL is configured by the operator."""

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
    ChannelHealth,
    ChannelSetting,
    FailureScope,
    MessageRef,
    PermanentFailure,
    RetryableFailure,
    Sender,
    SendResult,
    Sent,
    UnconfirmedSend,
)
from dq.contracts.access.access_policy import WEB, web_address

# POST: TLS is verified, redirects are not followed, and the whole call has a time limit.

# For one address of a host, which may have several.
_CONNECT_SECONDS = 5.0
TIMEOUT_SECONDS = 10.0
"""Time limit of a whole call; shorter than the outbox lease."""

_MAX_RETRY_AFTER_SECONDS = 3600.0
_MAX_BYTES = 64 * 1024
# The limits of the whole call and of one read are equal, so either may expire first.
_TIMED_OUT = UnconfirmedSend("no answer in time")


@dataclass(frozen=True, slots=True)
class Response:
    """Response of a host: status, the first 64 KiB of its body, and Retry-After in seconds, if given."""

    status: int
    body: bytes
    retry_after_seconds: float | None


def unsafe_reason(url: str) -> str:
    """Return why a URL must not be used, without quoting it, or "" if it may be used."""
    address = web_address(url, WEB)
    if address is None or "#" in address.suffix:
        return "URL must be a plain https:// URL"
    if address.scheme != "https" and not address.is_loopback:
        return "URL without https:// would be sent in the clear"
    return ""


def post(
    url: str, body: bytes, headers: Mapping[str, str], timeout_seconds: float = TIMEOUT_SECONDS
) -> Response | RetryableFailure | UnconfirmedSend:
    """Post `body` to a URL without `unsafe_reason`.

    Returns RetryableFailure if the request was not sent, UnconfirmedSend if it may have been.
    """
    parts = urlsplit(url)
    connection = _connection(parts, min(timeout_seconds, _CONNECT_SECONDS))
    try:
        try:
            connection.connect()
        except (OSError, HTTPException, UnicodeError) as error:
            return RetryableFailure(f"no connection: {_error_name(error)}", None, FailureScope.ROUTE)
        connection.sock.settimeout(timeout_seconds)
        with time_limit(lambda: connection.sock, timeout_seconds) as expired:
            answer = _answer(connection, parts, body, headers)
        # A connection closed by the timer may still give a partial response.
        return _TIMED_OUT if expired.is_set() else answer
    finally:
        connection.close()


def send(
    url: str | PermanentFailure,
    body: bytes,
    message_ref: MessageRef,
    failure: Callable[[Response], RetryableFailure | UnconfirmedSend | PermanentFailure | None],
    headers: Mapping[str, str] = MappingProxyType({}),
) -> SendResult:
    """Post JSON to a `target_url`.

    The message is then at `message_ref`, unless `failure` returns a failure.
    """
    if isinstance(url, PermanentFailure):
        return url
    response = post(url, body, {"Content-Type": "application/json", **headers})
    if not isinstance(response, Response):
        return response
    return failure(response) or Sent(message_ref)


@contextmanager
def time_limit(current_socket: Callable[[], socket.socket | None], limit_seconds: float) -> Iterator[Event]:
    """Close the connection after the time limit, because a slow response can stay within every read timeout.

    `current_socket` returns the socket at that time; STARTTLS replaces it. The event is set when the time is
    over.
    """
    expired = Event()
    timer = Timer(limit_seconds, _shut_down, (current_socket, expired))
    timer.daemon = True
    timer.start()
    try:
        yield expired
    finally:
        timer.cancel()


def status_failure(response: Response) -> RetryableFailure | UnconfirmedSend | PermanentFailure | None:
    """Return the failure of a response, or None for any 2xx status."""
    return None if 200 <= response.status < 300 else failure_for_status(response)


def failure_for_status(response: Response) -> RetryableFailure | UnconfirmedSend | PermanentFailure:
    """Return the failure for an unsuccessful status, by general HTTP rules."""
    status, reason = response.status, f"HTTP {response.status}"
    if status == 429 or (status == 503 and response.retry_after_seconds is not None):
        return RetryableFailure(reason, response.retry_after_seconds, FailureScope.ROUTE)
    if 300 <= status < 400:
        return PermanentFailure(
            f"{reason} redirects to another URL; dq does not follow redirects", FailureScope.ROUTE
        )
    if status == 413:
        return PermanentFailure(reason, FailureScope.MESSAGE)
    return (
        PermanentFailure(reason, FailureScope.ROUTE)
        if 400 <= status < 500 and status != 408
        else UnconfirmedSend(reason)
    )


def parse_retry_after(retry_after: str | None) -> float | None:
    """Parse Retry-After seconds, limited to an hour; None if the header is missing or not a number."""
    try:
        delay = float(retry_after or "")
    except ValueError:
        return None
    return min(delay, _MAX_RETRY_AFTER_SECONDS) if math.isfinite(delay) and delay >= 0 else None


def _connection(parts: SplitResult, timeout_seconds: float) -> HTTPConnection:
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "http":  # loopback only, which needs no proxy
        return HTTPConnection(host, port or 80, timeout=timeout_seconds)
    context = ssl.create_default_context()
    proxy = urlsplit(getproxies().get("https", "")) if not proxy_bypass(host) else None
    if proxy is None or not proxy.hostname:
        return HTTPSConnection(host, port or 443, timeout=timeout_seconds, context=context)
    proxied = HTTPSConnection(proxy.hostname, proxy.port or 80, timeout=timeout_seconds, context=context)
    proxied.set_tunnel(host, port or 443)
    return proxied


def _answer(
    connection: HTTPConnection, parts: SplitResult, body: bytes, headers: Mapping[str, str]
) -> Response | UnconfirmedSend:
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", path, body, {"User-Agent": "dq", **headers})
        answer = connection.getresponse()
        retry_after_seconds = _retry_after_seconds(
            answer.headers.get("Retry-After"), answer.headers.get("Date")
        )
        return Response(answer.status, answer.read(_MAX_BYTES), retry_after_seconds)
    except TimeoutError:
        return _TIMED_OUT
    except (OSError, HTTPException, ValueError) as error:
        return UnconfirmedSend(f"no answer: {_error_name(error)}")


def _retry_after_seconds(retry_after: str | None, date: str | None) -> float | None:
    """Parse Retry-After as seconds, or as an HTTP date by the server's clock (RFC 9110, 10.2.3)."""
    if retry_after is None or date is None or not retry_after[:1].isalpha():
        return parse_retry_after(retry_after)
    try:
        length = parsedate_to_datetime(retry_after) - parsedate_to_datetime(date)
    except (ValueError, TypeError):
        return None
    return parse_retry_after(str(max(length.total_seconds(), 0.0)))


def _shut_down(current_socket: Callable[[], socket.socket | None], expired: Event) -> None:
    expired.set()
    active_socket = current_socket()
    if active_socket is not None:
        with suppress(OSError):
            # Not SSLSocket.shutdown, which removes the TLS layer while another thread reads.
            socket.socket.shutdown(active_socket, socket.SHUT_RDWR)


def _error_name(error: Exception) -> str:
    return type(error).__name__


# Targets that contracts name, whose secret URL or key is configured by the operator.


def per_target_secret(name: str, variable: str, description: str) -> ChannelSetting:
    """Return the setting of a secret with one value per target."""
    return ChannelSetting(
        name, variable, f"{description}, by the target name in contracts.", secret=True, per_target=True
    )


def values_by_target(setting: ChannelSetting, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the values of a per-target setting by target."""
    prefix = f"{setting.name}:"
    return {
        name.removeprefix(prefix): value.strip()
        for name, value in settings.items()
        if name.startswith(prefix) and value.strip()
    }


def target_url(setting: ChannelSetting, urls: Mapping[str, str], target: str) -> str | PermanentFailure:
    """Return the URL of a target, or a failure that does not quote the URL."""
    url = urls.get(target)
    if url is None:
        return PermanentFailure(
            f"no URL for {target!r}. Set {setting.variable_for(target)}", FailureScope.ROUTE
        )
    problem = unsafe_reason(url)
    return (
        PermanentFailure(f"{problem}. Fix {setting.variable_for(target)}", FailureScope.ROUTE)
        if problem
        else url
    )


def settings_inspection(
    channel: str,
    make: Callable[[Mapping[str, str], Callable[[str], object]], Sender],
    setting: ChannelSetting,
    problem_of: Callable[[str], str] = unsafe_reason,
) -> Callable[[Mapping[str, str]], list[ChannelHealth]]:
    """Return a health check that only validates the settings, because more would send a message.

    `problem_of` returns the problem of a target's value without quoting it, or "".
    """

    def inspect(settings: Mapping[str, str]) -> list[ChannelHealth]:
        make(settings, str)
        return [
            ChannelHealth(False, f"{target}: {problem}", f"Fix {setting.variable_for(target)}.")
            if (problem := problem_of(value))
            else ChannelHealth(
                None,
                f"{target}: set, not tried",
                f"Test it: dq incidents test --channel {channel}:{target}",
            )
            for target, value in sorted(values_by_target(setting, settings).items())
        ]

    return inspect
