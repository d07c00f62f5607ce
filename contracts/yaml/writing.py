"""Texts as YAML that every reader takes for the same text."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard

from dq.contracts.typed import with_point
from dq.contracts.yaml import source

_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
_PLAIN = re.compile(r"[A-Za-z][\w./@ -]*")


def quoted(text: str) -> str:
    """The text as a YAML value, in quotes where it could be read as something else."""
    safe = _PLAIN.fullmatch(text) and text == text.strip()
    if safe and source.value(text, None, True) == text:
        return text
    return '"' + "".join(_escaped(sign) for sign in text) + '"'


def _escaped(sign: str) -> str:
    if sign in _SHORT:
        return _SHORT[sign]
    if sign.isprintable():
        return sign
    code = ord(sign)
    if 0xD800 <= code < 0xE000:
        # Half a sign, as JSON can hold it; YAML has no word for that.
        return "\ufffd"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def block(value: object, indent: str) -> Iterator[str]:
    """The lines of a mapping or list in block style, its texts as `quoted` writes them.

    What YAML has no plain word for is written as its text. An empty mapping or list is one line.
    """
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _entry(f"{indent}{quoted(str(key))}:", inner, indent + "  ")
    elif _is_list(value) and value:
        for inner in value:
            first, *rest = block(inner, indent + "  ")
            yield f"{indent}- {first.lstrip(' ')}"
            yield from rest
    else:
        yield indent + _scalar(value)


def _entry(head: str, value: object, indent: str) -> Iterator[str]:
    if value and (isinstance(value, Mapping) or _is_list(value)):
        yield head
        yield from block(value, indent)
    else:
        yield f"{head} {_scalar(value)}"


def flow(value: object) -> str:
    """The value in one line, mappings and lists in brackets."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{quoted(str(key))}: {flow(inner)}" for key, inner in value.items()) + "}"
    if _is_list(value):
        return "[" + ", ".join(flow(inner) for inner in value) + "]"
    return _scalar(value)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _scalar(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return with_point(repr(value))
        case dt.date():
            return value.isoformat()
        case Mapping():
            return "{}"
    return "[]" if _is_list(value) and not value else quoted(str(value))


def commented(text: str) -> str:
    """The text as one line of a comment, without its sign: signs that steer a terminal are spelled out."""
    return "".join(sign if sign.isprintable() else " " for sign in " ".join(text.split()))
