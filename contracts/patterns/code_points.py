"""Sets of characters as ranges of code points: what a class of a pattern may match."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Sequence

# Sorted and apart; both ends are included.
Ranges = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
ANY: Ranges = ((0, LAST),)
# What is not ASCII.
BEYOND: Ranges = ((128, LAST),)


def joined(*sets: Iterable[tuple[int, int]]) -> Ranges:
    """What is in at least one of the sets."""
    made: list[tuple[int, int]] = []
    for low, high in sorted(one for each in sets for one in each):
        if made and low <= made[-1][1] + 1:
            made[-1] = (made[-1][0], max(made[-1][1], high))
        else:
            made.append((low, high))
    return tuple(made)


def others(ranges: Ranges) -> Ranges:
    """What is not in the set."""
    made, begin = [], 0
    for low, high in ranges:
        if begin < low:
            made.append((begin, low - 1))
        begin = high + 1
    return (*made, (begin, LAST)) if begin <= LAST else tuple(made)


def signs(text: str) -> Ranges:
    """These characters."""
    return joined((ord(one), ord(one)) for one in text)


def category(name: str, *, without: bool = False) -> Ranges:
    """At least the characters of a category of Unicode, or those without it: beyond ASCII, all."""
    ascii_ones = (chr(code) for code in range(128))
    found = (one for one in ascii_ones if unicodedata.category(one).startswith(name) != without)
    return joined(signs("".join(found)), BEYOND)


_DIGITS = signs("0123456789")
_WORD = joined(_DIGITS, ((65, 90), (97, 122)), signs("_"))
_SPACE = joined(signs("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"), ((0x2000, 0x200A),))
# What stands after the backslash -> what it matches.
CLASSES = {
    "d": _DIGITS,
    "D": others(_DIGITS),
    "w": _WORD,
    "W": others(_WORD),
    "s": _SPACE,
    "S": others(_SPACE),
}
DOT = others(signs("\n\r\u2028\u2029"))


def either_case(ranges: Ranges) -> Ranges:
    """The set with the other case of its letters of ASCII; beyond, with all characters if it has any."""
    found = [(low, high) for low, high in ranges]
    for begin, end, step in ((65, 90, 32), (97, 122, -32)):
        found += [
            (max(low, begin) + step, min(high, end) + step)
            for low, high in ranges
            if low <= end and high >= begin
        ]
    return joined(found, BEYOND if ranges and ranges[-1][1] > 127 else ())


def masks(sets: Sequence[Ranges]) -> list[int]:
    """Each set as a number, so that two of them have a character in common where `one & other` is not 0."""
    cuts = sorted({cut for ranges in sets for low, high in ranges for cut in (low, high + 1)})
    return [
        sum((1 << bisect_left(cuts, high + 1)) - (1 << bisect_left(cuts, low)) for low, high in ranges)
        for ranges in sets
    ]
