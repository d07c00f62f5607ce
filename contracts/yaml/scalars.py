"""Values of single scalars in YAML 1.1, and where YAML 1.2 differs."""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache

# Resolution of plain scalars, exactly as in PyYAML's safe loader. PyYAML itself is imported only for values
# that are seldom written, e.g. 1_000 or 12:30:45: it takes longer to import than most contracts take to read.

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
# First characters of numbers, also in YAML 1.2, and of dates.
_NUMERIC = frozenset("0123456789+-.")
NUMBERS_AND_DATES = {
    "tag:yaml.org,2002:float": re.compile(
        r"""^(?:[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?
                    |\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?
                    |[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*
                    |[-+]?\.(?:inf|Inf|INF)
                    |\.(?:nan|NaN|NAN))$""",
        re.VERBOSE,
    ),
    "tag:yaml.org,2002:int": re.compile(
        r"""^(?:[-+]?0b[0-1_]+
                    |[-+]?0[0-7_]+
                    |[-+]?(?:0|[1-9][0-9_]*)
                    |[-+]?0x[0-9a-fA-F_]+
                    |[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$""",
        re.VERBOSE,
    ),
    "tag:yaml.org,2002:timestamp": re.compile(
        r"""^(?:[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]
                    |[0-9][0-9][0-9][0-9] -[0-9][0-9]? -[0-9][0-9]?
                     (?:[Tt]|[ \t]+)[0-9][0-9]?
                     :[0-9][0-9] :[0-9][0-9] (?:\.[0-9]*)?
                     (?:[ \t]*(?:Z|[-+][0-9][0-9]?(?::[0-9][0-9])?))?)$""",
        re.VERBOSE,
    ),
}
_STR = "tag:yaml.org,2002:str"
_CORE = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp")}

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
        if text in _WORDS:
            return _WORDS[text]
        tag = _cached_tag(text) if len(text) < 64 else _implicit_tag(text)
    if tag == _STR:
        return text
    if tag not in _CORE:
        raise UnusableScalar(f"tag {tag.replace('tag:yaml.org,2002:', '!!')!r} is not allowed")
    return _construct(tag, text)


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
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
_TYPE_NAMES = {"int": "a whole number", "float": "a number", "bool": "true or false", "timestamp": "a date"}


def _implicit_tag(text: str) -> str:
    """Return the tag of a plain scalar that is not one of the words."""
    if text[0] not in _NUMERIC:
        return _STR
    return next((tag for tag, pattern in NUMBERS_AND_DATES.items() if pattern.match(text)), _STR)


# Cached, because contracts repeat the same words and the patterns are slow.
_cached_tag = lru_cache(4096)(_implicit_tag)


def _construct(tag: str, text: str) -> Value:
    kind = tag.rpartition(":")[2]
    type_name = _TYPE_NAMES.get(kind, kind)
    if len(text) > 1000:
        raise UnusableScalar(f"a value that looks like {type_name} has {len(text)} characters")
    try:
        if kind == "timestamp" and _DATE.fullmatch(text):
            return dt.date.fromisoformat(text)
        if kind in ("int", "float") and _ORDINARY.fullmatch(text):
            return int(text) if kind == "int" else float(text)
        return _construct_by_pyyaml(tag, text)
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError) as error:
        raise UnusableScalar(f"{text!r} looks like {type_name}, but is not valid") from error


def _construct_by_pyyaml(tag: str, text: str) -> Value:
    """Return the value. Raises ValueError, KeyError, and other errors of PyYAML's code."""
    from yaml.constructor import ConstructorError, SafeConstructor
    from yaml.nodes import ScalarNode

    constructor, kind = SafeConstructor(), tag.rpartition(":")[2]
    try:
        return getattr(constructor, f"construct_yaml_{kind}")(ScalarNode(tag, text))  # type: ignore[no-any-return]
    except ConstructorError as error:
        raise ValueError from error
