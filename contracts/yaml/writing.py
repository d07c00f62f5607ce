"""Texts as YAML that every reader takes for the same text."""

from __future__ import annotations

import re

from dq.contracts.yaml import scalar

_PLAIN = re.compile(r"[A-Za-z][\w./@ -]*")


def quoted(text: str) -> str:
    """The text as a YAML value, in quotes where it could be read as something else."""
    safe = _PLAIN.fullmatch(text) and text == text.strip()
    if safe and scalar.value(text, None, True) == text:
        return text
    return '"' + "".join(_escaped(sign) for sign in text) + '"'


def _escaped(sign: str) -> str:
    if sign in '"\\':
        return f"\\{sign}"
    if sign.isprintable():
        return sign
    code = ord(sign)
    if 0xD800 <= code < 0xE000:
        # Half a sign, as JSON can hold it; YAML has no word for that.
        return "\ufffd"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def commented(text: str) -> str:
    """The text as one line of a comment, without its sign: signs that steer a terminal are spelled out."""
    return "".join(sign if sign.isprintable() else " " for sign in " ".join(text.split()))
