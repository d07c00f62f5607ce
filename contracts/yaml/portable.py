"""YAML text that all readers parse to the same values."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard

from dq.contracts.model import with_point
from dq.contracts.yaml import scalars

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\r": "\\x0d"}
_PLAIN = re.compile(r"[A-Za-z][\w./@ -]*")


def quoted(text: str) -> str:
    """Return the text as a YAML value, quoted if it could be read as something else."""
    safe = _PLAIN.fullmatch(text) and text == text.strip()
    if safe and scalars.value(text, None, True) == text:
        return text
    return '"' + "".join(_escaped(sign) for sign in text) + '"'


def _escaped(sign: str) -> str:
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    if sign.isprintable():
        return sign
    if "\ud800" <= sign < "\ue000":
        # A lone surrogate, which is possible in JSON but not in YAML.
        return "\ufffd"
    return sign.encode("unicode_escape").decode("ascii")


def block(value: object, indent: str) -> Iterator[str]:
    """Yield the lines of a mapping or list in block style, with texts as from `quoted`.

    Values without a YAML type are written as text. An empty mapping or list is one line.
    """
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _entry(f"{indent}{quoted(str(key))}:", inner, indent + "  ")
    elif _is_list(value) and value:
        for inner in value:
            first, *following = block(inner, indent + "  ")
            yield f"{indent}- {first.lstrip(' ')}"
            yield from following
    else:
        yield indent + _scalar(value)


def _entry(head: str, value: object, indent: str) -> Iterator[str]:
    if value and (isinstance(value, Mapping) or _is_list(value)):
        yield head
        yield from block(value, indent)
    else:
        yield f"{head} {_scalar(value)}"


def flow(value: object) -> str:
    """Return the value in one line, in flow style."""
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
    """Return the text as one line of a comment, without prefix; control characters become spaces."""
    return "".join(sign if sign.isprintable() else " " for sign in " ".join(text.split()))
