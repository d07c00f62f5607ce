"""Addresses of the web, taken only where every program reads the same host in them.

The WHATWG's URL standard, RFC 3986 and their many readers part ways at users, backslashes, blanks, empty
labels and odd spellings of numbers. Whoever checks a host, sends to one or shows a link asks here.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

HTTPS = frozenset({"https"})
WEB = frozenset({"https", "http"})
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_PORTS = {"https": 443, "http": 80, "wss": 443, "ws": 80}

_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_\-]{0,61}[A-Za-z0-9_])?"
_ADDRESS = re.compile(
    rf"(?P<scheme>[a-z]+)://(?:(?P<name>{_LABEL}(?:\.{_LABEL})*)|\[(?P<six>[0-9A-Fa-f:.]+)\])"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?#].*)?"
)
# In the path and behind it: what ends an address in a text, or is a slash to some.
_NEVER = frozenset('\\"<>`^{|}')
_LONGEST_NAME = 253
# The WHATWG's standard takes such a last label for a number, and the whole for an IPv4 address.
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")


@dataclass(frozen=True, slots=True)
class WebAddress:
    """An address whose `host`, in lower case, is the same to all readers; `rest` is what follows it."""

    scheme: str
    host: str
    port: int
    rest: str

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK

    @property
    def has_usual_port(self) -> bool:
        return self.port == _PORTS.get(self.scheme)

    @property
    def authority(self) -> str:
        """The host, with its port where that is not the usual one of the scheme."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.has_usual_port else f"{host}:{self.port}"


def web_address(text: str, schemes: Container[str] = HTTPS) -> WebAddress | None:
    """The address that a text is, or None where it is none of these schemes, or is read in several ways."""
    match = _ADDRESS.fullmatch(text) if text.isprintable() and " " not in text else None
    if match is None or match["scheme"] not in schemes:
        return None
    rest = match["rest"] or ""
    host = _host(match["name"], match["six"])
    port = int(match["port"]) if match["port"] else _PORTS[match["scheme"]]
    if host is None or not 0 < port < 65_536 or _NEVER & set(rest):
        return None
    return WebAddress(match["scheme"], host, port, rest)


def _host(name: str | None, six: str | None) -> str | None:
    try:
        if name is None:
            return IPv6Address(six or "").compressed
        if _NUMBER.fullmatch(name.rpartition(".")[2]):
            return str(IPv4Address(name))
    except AddressValueError:
        return None
    return name.lower() if len(name) <= _LONGEST_NAME else None
