"""What the model of AWS says of a request and botocore does not check: sizes, patterns, enumerations.

botocore itself refuses what is missing, unknown, of a wrong type, or too small.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

Raw = Mapping[str, Any]
Rule = Callable[[Raw], Iterable[str]]
"""What AWS keeps to itself about a request of one operation."""

_SHOWN = 60
# Java's words in the patterns of the model -> Python's.
_TRANSLATED = (
    (r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010FFFF"),
    (r"\p{L}\p{N}\p{P}", r"\x21-\x7e\u00a1-\uFFFD"),
    (r"\p{Graph}", r"\x21-\x7e"),
    (r"\p{L}\p{Z}\p{N}", r"\w\x20\xa0\u2000-\u200a\u3000"),
)


def refusals(operation: Any, params: Raw, rules: Mapping[str, Rule]) -> list[str]:
    """All that AWS would refuse of a request, each once: by its model, then by the rule of the operation."""
    shape, own = operation.input_shape, rules.get(operation.name)
    wrong = list(faults(shape, params)) if shape is not None else []
    return list(dict.fromkeys([*wrong, *(own(params) if own is not None else ())]))


def faults(shape: Any, value: Any, path: str = "") -> Iterator[str]:
    """What AWS would refuse in `value` by its shape, each as a text that begins with the place."""
    limits = shape.metadata
    if shape.type_name == "structure" and isinstance(value, dict):
        for name, inner in value.items():
            if name in shape.members:
                yield from faults(shape.members[name], inner, f"{path}.{name}" if path else name)
    elif shape.type_name == "list" and isinstance(value, (list, tuple)):
        yield from _size(path, len(value), limits, "items")
        for index, inner in enumerate(value):
            yield from faults(shape.member, inner, f"{path}[{index}]")
    elif shape.type_name == "map" and isinstance(value, dict):
        yield from _size(path, len(value), limits, "entries")
        for key, inner in value.items():
            yield from faults(shape.key, key, f"{path} key {_shown(key)}")
            yield from faults(shape.value, inner, f"{path}[{_shown(key)}]")
    elif shape.type_name == "string" and isinstance(value, str):
        yield from _text(path, value, limits)
    elif shape.type_name in ("integer", "long") and isinstance(value, int):
        low, high = limits.get("min", value), limits.get("max", value)
        if not low <= value <= high:
            yield f"{path}: {value} is not within {low} and {high}"


def _size(path: str, size: int, limits: Any, what: str) -> Iterator[str]:
    low, high = limits.get("min", 0), limits.get("max", size)
    if not low <= size <= high:
        yield f"{path}: {size} {what}, where AWS takes {low} to {high}"


def _text(path: str, text: str, limits: Any) -> Iterator[str]:
    # Java counts what lies beyond the basic plane as two.
    size = len(text.encode("utf-16-le", "surrogatepass")) // 2
    yield from _size(path, size, limits, "characters")
    choices = limits.get("enum")
    if choices and text not in choices:
        yield f"{path}: {_shown(text)} is none of {', '.join(choices)}"
    pattern = limits.get("pattern")
    if pattern and not compiled(pattern).fullmatch(text):
        yield f"{path}: {_shown(text)} has a character that AWS does not take there, such as a line end"


@lru_cache(256)
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of the model for Python. Raises re.error for one that we cannot translate."""
    for java, python in _TRANSLATED:
        pattern = pattern.replace(java, python)
    return re.compile(pattern)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")
