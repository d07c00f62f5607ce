"""An ECMA-262 pattern as the Java pattern that finds the same texts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dq.contracts.patterns import code_points
from dq.contracts.patterns import pattern as shared
from dq.contracts.patterns.code_points import Ranges
from dq.contracts.patterns.recursion import recursion
from dq.dataquality.model.threshold import Unusable

_WORD = (r"(?<=\w)", r"(?<!\w)", r"(?=\w)", r"(?!\w)")
# Java's `$` also stands before a last line break, and its \b knows letters beyond ASCII before Java 19.
_ANCHORS = {
    "$": r"\z",
    r"\b": "(?:{0}{3}|{1}{2})".format(*_WORD),
    r"\B": "(?:{0}{2}|{1}{3})".format(*_WORD),
}
# Java's `.` leaves out U+0085 too, and its \s and \S know ASCII alone.
_SETS = {".": code_points.DOT, r"\s": code_points.CLASSES["s"], r"\S": code_points.CLASSES["S"]}
_TOKEN = re.compile(r"\\(?:[pP]\{\w+\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.)|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_ASCII = 128
# So many characters are a table for Java.
_FEW = 32
# Java reads a class in a class by recursion.
_DEEPEST = 12


@dataclass(frozen=True, slots=True)
class JavaPattern:
    """A pattern of Java, and in how long a text it can be searched (None: in any)."""

    text: str
    longest: int | None


def java(pattern: str) -> JavaPattern:
    """The pattern for RLIKE, which searches as JSON Schema's `pattern` does: it is not anchored.

    Raises Unusable, with the position, for what the two languages do not share.
    """
    wrong = shared.refused(pattern)
    if wrong is not None:
        raise Unusable(f"pattern {pattern!r}: {wrong.message}")
    searched = shared.searched(pattern)
    known = recursion(searched)
    made, skipped = "", -1
    for token in _TOKEN.finditer(searched):
        if token.start() == skipped:
            continue
        made += _translated(token.group())
        lazy = known.possessive.get(token.end())
        if lazy is not None:
            made += "+"
            skipped = token.end() if lazy else -1
    return JavaPattern(made, known.longest)


def _translated(token: str) -> str:
    if token in _ANCHORS:
        return _ANCHORS[token]
    matched = shared.class_of(token) if token[0] == "[" else _SETS.get(token)
    return _class(matched) if matched and matched[-1][1] >= _ASCII else token


def _class(matched: Ranges) -> str:
    """The set by what it holds: ASCII first, then the rest, wide ranges before narrow ones.

    Java asks the parts of a class in this order, and single characters last unless they stand alone. A class
    by what it does not hold is asked for all of it at each character, which takes ten times as long.
    """
    plain = [(low, min(high, _ASCII - 1)) for low, high in matched if low < _ASCII]
    rest = [(max(low, _ASCII), high) for low, high in matched if high >= _ASCII]
    few = [code for low, high in plain for code in range(low, high + 1)]
    if len(few) <= _FEW:
        first = [f"[{''.join(_sign(code) for code in few)}]"] if few else []
        ranges = _wide(rest)
    else:
        first, ranges = [], [*_wide(plain), *_wide(rest)]
    nested, flat = ranges[:_DEEPEST], ranges[_DEEPEST:]
    return "[" + "".join(first) + "[".join(nested) + "".join(flat) + "]" * len(nested)


def _wide(ranges: list[tuple[int, int]]) -> list[str]:
    ordered = sorted(ranges, key=lambda one: one[0] - one[1])
    return [f"{_sign(low)}-{_sign(high)}" for low, high in ordered]


def _sign(code: int) -> str:
    shown = chr(code)
    return shown if shown.isascii() and shown.isalnum() else rf"\x{{{code:X}}}"
