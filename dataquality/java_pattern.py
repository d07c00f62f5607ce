"""ECMA-262 patterns as equivalent Java patterns."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dq.contracts import pattern as patterns
from dq.contracts.pattern import Ranges, analyze_recursion
from dq.dataquality.model.run_context import Unusable

_WORD = (r"(?<=\w)", r"(?<!\w)", r"(?=\w)", r"(?!\w)")
# Java's `$` also matches before a final line break, and before Java 19 its \b includes non-ASCII letters.
_ANCHORS = {
    "$": r"\z",
    r"\b": "(?:{0}{3}|{1}{2})".format(*_WORD),
    r"\B": "(?:{0}{2}|{1}{3})".format(*_WORD),
}
# Java's `.` also excludes U+0085, and its \s and \S only know ASCII.
_SETS = {".": patterns.DOT, r"\s": patterns.CLASSES["s"], r"\S": patterns.CLASSES["S"]}
_PATTERN_TOKEN = re.compile(
    r"\\(?:[pP]\{\w+\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.)|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL
)
_ASCII_END = 128
# Java compiles up to this many characters to a lookup table.
_MAX_LISTED_CHARACTERS = 32
# Java evaluates nested classes recursively.
_MAX_CLASS_DEPTH = 12


@dataclass(frozen=True, slots=True)
class JavaPattern:
    """A Java pattern, and the maximum length of strings to search (None: unlimited)."""

    text: str
    longest: int | None


def to_java(pattern: str) -> JavaPattern:
    """Translate an ECMA-262 pattern for RLIKE, which is unanchored like JSON Schema's `pattern`.

    Raises Unusable, with the position, for syntax that Java does not share.
    """
    problem = patterns.pattern_problem(pattern)
    if problem is not None:
        raise Unusable(f"pattern {pattern!r}: {problem.message}")
    searched = patterns.search_pattern(pattern)
    recursion_info = analyze_recursion(searched)
    translated, skip_at = "", -1
    for token in _PATTERN_TOKEN.finditer(searched):
        if token.start() == skip_at:
            continue
        translated += _translate_token(token.group())
        is_lazy = recursion_info.possessive.get(token.end())
        if is_lazy is not None:
            translated += "+"
            skip_at = token.end() if is_lazy else -1
    return JavaPattern(translated, recursion_info.max_length)


def _translate_token(token: str) -> str:
    if token in _ANCHORS:
        return _ANCHORS[token]
    ranges = patterns.parse_class(token) if token[0] == "[" else _SETS.get(token)
    return _class_pattern(ranges) if ranges and ranges[-1][1] >= _ASCII_END else token


def _class_pattern(ranges: Ranges) -> str:
    """Return the character class of the ranges: ASCII first, then the others, wide ranges before narrow ones.

    Java tests the parts of a class in this order, and single characters last unless they are the only part. A
    negated class tests all parts for each character, which takes ten times as long.
    """
    ascii_ranges = [(low, min(high, _ASCII_END - 1)) for low, high in ranges if low < _ASCII_END]
    other_ranges = [(max(low, _ASCII_END), high) for low, high in ranges if high >= _ASCII_END]
    codes = [code for low, high in ascii_ranges for code in range(low, high + 1)]
    if len(codes) <= _MAX_LISTED_CHARACTERS:
        listed = [f"[{''.join(_char_pattern(code) for code in codes)}]"] if codes else []
        wide_ranges = _wide_first(other_ranges)
    else:
        listed, wide_ranges = [], [*_wide_first(ascii_ranges), *_wide_first(other_ranges)]
    nested, flat = wide_ranges[:_MAX_CLASS_DEPTH], wide_ranges[_MAX_CLASS_DEPTH:]
    return "[" + "".join(listed) + "[".join(nested) + "".join(flat) + "]" * len(nested)


def _wide_first(ranges: list[tuple[int, int]]) -> list[str]:
    ordered = sorted(ranges, key=lambda bounds: bounds[0] - bounds[1])
    return [f"{_char_pattern(low)}-{_char_pattern(high)}" for low, high in ordered]


def _char_pattern(code: int) -> str:
    character = chr(code)
    return character if character.isascii() and character.isalnum() else rf"\x{{{code:X}}}"
