"""Formats told by Python's own readers of addresses, dates and bytes."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import re
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dq.contracts.types import DataType

INTEGER_FORMATS = {
    f"{sign}{bits}": (0, 2**bits - 1) if sign == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for sign in "iu"
    for bits in (8, 16, 32, 64, 128)
}
# Beyond what Spark's decimals of 38 digits can hold.
_ALWAYS = ("i128",)


def testable(prop: dict[str, Any], name: str) -> bool:
    """Whether some value could break it, so that there is a result."""
    return prop.get("logicalType") in ("string", "integer") and name not in _ALWAYS


def _reads(read: Callable[[str], object]) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return fits


def _uuid(text: str) -> bool:
    # Python's reader also takes braces and missing hyphens.
    return _reads(uuid.UUID)(text) and [len(part) for part in text.split("-")] == [8, 4, 4, 4, 12]


def _ipv6(text: str) -> bool:
    return "%" not in text and text.isascii() and _reads(ipaddress.IPv6Address)(text)


def _date(text: str) -> bool:
    return bool(re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text)) and _reads(dt.date.fromisoformat)(text)


def _hostname(text: str) -> bool:
    labels = text.split(".")
    return len(text) <= 253 and all(
        re.fullmatch("[A-Za-z0-9-]{1,63}", label) and label[0] != "-" != label[-1] for label in labels
    )


def _byte(text: str) -> bool:
    return text.isascii() and _reads(lambda one: base64.b64decode(one, validate=True))(text)


TEXT_FORMATS: dict[str, Callable[[str], bool]] = {
    "uuid": _uuid,
    "ipv4": lambda text: text.isascii() and _reads(ipaddress.IPv4Address)(text),
    "ipv6": _ipv6,
    "date": _date,
    "hostname": _hostname,
    "byte": _byte,
}
SAMPLES = (
    "123e4567-e89b-12d3-a456-426614174000",
    "{123e4567-e89b-12d3-a456-426614174000}",
    "10.0.0.255",
    "10.0.0.256",
    "010.0.0.1",
    "::1",
    "1::2:3:4:5:6:7:8",
    "::ffff:10.0.0.1",
    "fe80::1%eth0",
    "2024-02-29",
    "2023-02-29",
    "0999-12-31",
    "a-b.example",
    "-a.example",
    "YQ==",
    "YQ=",
    "YQ==\n",
)


def unfit(kind: DataType, name: str) -> Callable[[Any], bool]:
    """Whether a value has not the format."""
    if name in INTEGER_FORMATS:
        least, most = INTEGER_FORMATS[name]
        return lambda value: not least <= value <= most
    fits = TEXT_FORMATS[name]
    return lambda value: not fits(value)


def shortest(value: float, kind: str) -> Fraction:
    """The number with the fewest digits that a float or double is the nearest to."""
    if kind == "double":
        return Fraction(repr(value))
    for digits in range(1, 10):
        shown = Decimal(value) if value == 0 else Decimal(f"{value:.{digits - 1}e}")
        if struct.unpack("f", struct.pack("f", float(shown)))[0] == value:
            return Fraction(shown)
    return Fraction(value)
