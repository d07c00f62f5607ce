"""Which regular expressions a contract may hold: those that ECMA-262 and Java read alike, and answer soon.

ODCS says that `pattern` is ECMA-262; Spark matches with Java's `java.util.regex`. What only one of them
knows, or what they read differently, is refused, and so is what some text keeps a matcher busy with (see
`backtracking`).
"""

from __future__ import annotations

import re
from functools import lru_cache

from dq.contracts.patterns.automaton import TooAmbiguous
from dq.contracts.patterns.backtracking import judge, steps
from dq.contracts.patterns.code_points import Ranges, either_case
from dq.contracts.patterns.syntax import Misread, Scan
from dq.contracts.shared.fault import TextFault

# Longer ones are programs; numbers in them could not be read either.
MAX_CHARACTERS = 4_000

_ALIKE = "Write what ECMA-262 and Java both read."
_SOONER = (
    "Let every turn of a repetition begin or end with a sign that nothing else in it matches, as in"
    " ^[a-z]+(-[a-z]+)*$, and let neighbours match different signs: [^@]+@[^@]+, not .+@.+."
)


@lru_cache(1024)
def refused(pattern: str) -> TextFault | None:
    """Why a pattern may not be used, with its position, and what to write; None if it may.

    A search for `searched(pattern)` takes Java a second or so at most in a text of 20,000 characters.
    """
    if len(pattern) > MAX_CHARACTERS:
        return TextFault(
            "PATTERN_LONG", f"it has {len(pattern):,} characters, more than {MAX_CHARACTERS:,}", _ALIKE
        )
    unread = _unread(pattern)
    if unread is not None:
        return unread
    kept, end = _leading(pattern)
    found = slow(pattern[:kept] + pattern[end:])
    if found is None:
        return None
    at = ", ".join(str(spot + 1 + (end - kept if spot >= kept else 0)) for spot in found.spots)
    where = f" (position {at})" if at else ""
    return TextFault("PATTERN_AMBIGUOUS", f"{found}{where}", _SOONER)


_FOLDED = "(?i)"


@lru_cache(1024)
def refused_in_sql(pattern: str) -> TextFault | None:
    """As `refused`, of a regular expression in SQL, which Java gets as it stands; `(?i)` may begin it."""
    if len(pattern) > MAX_CHARACTERS:
        return refused(pattern)
    text = pattern.removeprefix(_FOLDED)
    unread = _unread(text)
    found = None if unread else slow(text, folded=text != pattern)
    return TextFault("PATTERN_AMBIGUOUS", str(found), _SOONER) if found else unread


def _unread(pattern: str) -> TextFault | None:
    """Why a pattern cannot be read, or only with too much work."""
    try:
        Scan(pattern, 0).run()
    except Misread as error:
        return TextFault("PATTERN_SYNTAX", str(error), _ALIKE)
    except TooAmbiguous as error:
        return TextFault("PATTERN_AMBIGUOUS", str(error), _SOONER)
    return None


# A repetition as copies, or as a loop: each tells of more ways than there are, and not of the same.
_READINGS = (64, 0)


def slow(pattern: str, *, folded: bool = False) -> TooAmbiguous | None:
    """Why a search for a pattern, whose form is sound, may take too long; `folded` leaves case out."""
    reasons: list[TooAmbiguous] = []
    for most_copied in _READINGS:
        scan = Scan(pattern, most_copied)
        try:
            whole = scan.run()
            if folded:
                scan.automaton.letters = [either_case(one) for one in scan.automaton.letters]
            judge(scan.automaton, whole)
        except TooAmbiguous as error:
            reasons.append(error)
        else:
            return None
    return reasons[0]


@lru_cache(4096)
def most_steps(pattern: str, length: int) -> int | None:
    """Return the most steps that a matcher takes to search a text of `length` characters for a pattern.

    None if they grow exponentially. The pattern is one that `refused_in_sql` lets pass.
    """
    text = pattern.removeprefix(_FOLDED)
    bounds: list[int] = []
    for most_copied in _READINGS:
        scan = Scan(text, most_copied, length)
        try:
            whole = scan.run()
            if text != pattern:
                scan.automaton.letters = [either_case(one) for one in scan.automaton.letters]
            bounds.append(steps(scan.automaton, whole))
        except TooAmbiguous:
            continue
    return min(bounds, default=None)


_ATOM = re.compile(r"(?:\.|\\[dDwWsS]|\[(?:\\.|[^\]\\])*\])(?P<more>[*+])\??")
_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def searched(pattern: str) -> str:
    """The pattern that is found in the same texts, without a repetition that it begins with.

    A search tries every place of a text anyway: with `.*` before it, it would try every place from each.
    """
    kept, end = _leading(pattern)
    return pattern[:kept] + pattern[end:]


def _leading(pattern: str) -> tuple[int, int]:
    """From where to where the pattern begins with a repetition that a search does not need."""
    begin = _ATOM.match(pattern)
    if begin is None:
        return 0, 0
    depth = 0
    for token in _TOKEN.findall(pattern):
        depth += (token == "(") - (token == ")")
        if token == "|" and not depth:
            return 0, 0
    return begin.start("more") if begin["more"] == "+" else 0, begin.end()


def class_of(text: str) -> Ranges | None:
    """What a class such as `[a-z]`, of a pattern that is not refused, matches; None where Unicode decides."""
    return None if r"\p" in text or r"\P" in text else Scan(text, 0).read_class()
