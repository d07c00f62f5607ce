"""Values of single scalars in YAML 1.1, and where YAML 1.2 differs."""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache

from yaml.constructor import ConstructorError, SafeConstructor
from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

# Resolution of plain scalars, exactly as in PyYAML's safe loader.

_BY_FIRST_CHARACTER = {
    first: [(tag, pattern.match) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:merge"]
    for first, resolvers in Resolver.yaml_implicit_resolvers.items()
}
_STR = "tag:yaml.org,2002:str"
_CORE = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp")}
_FAST: dict[str, object] = {"true": True, "false": False, "null": None, "~": None, "": None}

Value = str | int | float | bool | None | dt.date | dt.datetime


class UnusableScalar(ValueError):
    """A scalar whose value Python cannot represent, or whose tag is not plain data."""


def value(text: str, tag: str | None, plain: bool) -> Value:
    """Return the Python value of a scalar; `plain` if it was written without quotes.

    Raises UnusableScalar for a value out of range (`2026-13-45`, an integer of a million digits) and for a
    tag that is not plain data.
    """
    if tag is None or tag == "!":
        if not plain:
            return text
        if text in _FAST:
            return _FAST[text]  # type: ignore[return-value]  # the table holds only scalars
        tag = _resolved(text) if len(text) < 64 else _matched(text)
    if tag == _STR:
        return text
    if tag not in _CORE:
        raise UnusableScalar(f"tag {tag.replace('tag:yaml.org,2002:', '!!')!r} is not allowed")
    return _construct(tag, text)


# First characters of numbers in YAML 1.2.
_NUMERIC = frozenset("0123456789+-.")
_ORDINARY = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+][0-9]+)?")
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def other_number(text: str, parsed: Value) -> Value:
    """Return the value in YAML 1.2 of an unquoted scalar that YAML 1.1 reads as `parsed`.

    Returns `parsed` if the two agree, as for all common spellings of numbers. YAML 1.1 has octal `0123`,
    `1_000` and `1:30`, which is 90; YAML 1.2 has `0o17` and `1e3`, and reads `0123` as 123.
    """
    if text[:1] not in _NUMERIC or len(text) > 64 or not isinstance(parsed, (str, int, float)):
        return parsed
    if isinstance(parsed, str) or not _ORDINARY.fullmatch(text):
        if _INTEGER.fullmatch(text):
            return int(text, 0 if text[1:2] in ("o", "x") else 10)
        if _FLOAT.fullmatch(text):
            return float(text)
        return parsed if text.lstrip("+-").lower() in (".inf", ".nan") else text
    return parsed


def undisputed_value(text: str) -> Value:
    """Return the value of an unquoted scalar that is the same in YAML 1.1 and 1.2.

    Raises UnusableScalar as `value`, and if it differs.
    """
    parsed = value(text, None, True)
    other = other_number(text, parsed)
    if other is not parsed and other != parsed:
        raise UnusableScalar(f"{text!r} is {parsed!r} in YAML 1.1 and {other!r} in YAML 1.2")
    return parsed


# YAML's name of a type -> its name in messages.
_WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "timestamp": "a date"}


def _matched(text: str) -> str:
    """Return the tag of a plain scalar."""
    for tag, match in _BY_FIRST_CHARACTER.get(text[0], ()):
        if match(text):
            # A single `=` is YAML 1.1's "default value" type, which is never intended.
            return _STR if tag.endswith(":value") else tag
    return _STR


# Cached, because contracts repeat the same words and the patterns are slow.
_resolved = lru_cache(4096)(_matched)


def _construct(tag: str, text: str) -> Value:
    kind = tag.rpartition(":")[2]
    if len(text) > 1000:
        raise UnusableScalar(f"a value that looks like {_WORDS.get(kind, kind)} has {len(text)} characters")
    if kind == "int" and text.isdecimal() and text.isascii() and text[0] != "0":
        return int(text)
    constructor = SafeConstructor()
    node = ScalarNode(tag, text)
    try:
        return getattr(constructor, f"construct_yaml_{kind}")(node)  # type: ignore[no-any-return]
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError, ConstructorError) as error:
        raise UnusableScalar(f"{text!r} looks like {_WORDS.get(kind, kind)}, but is not valid") from error
