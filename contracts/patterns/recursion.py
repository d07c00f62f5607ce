"""How deep Java's matcher calls itself for a pattern, and where it need not.

For each turn of a repeated group `java.util.regex` calls itself, so that a text of a few thousand characters
may exhaust the stack, which ends a Spark task's whole JVM. It does not where the repetition is possessive.
That means the same where each character of a text can be only one place of the pattern: then no turn that was
made could be made in another way, and giving it back leads nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from dq.contracts.patterns.automaton import Automaton
from dq.contracts.patterns.code_points import Ranges
from dq.contracts.patterns.groups import GroupTurns
from dq.contracts.patterns.syntax import Scan

# Without a sign that values are known by: what Spark says of an error is cut there.
TOO_LONG = (
    "a text is too long for a pattern whose repeated group Java matches by calling itself for each turn;"
    " let each turn begin or end with a sign that nothing else in it matches"
)
# Java's stack is a mebibyte for a thread; a call takes up to 145 bytes of it before it is compiled.
_STACK, _CALL = 700_000, 145
# Where characters of one and two units take turns, Java calls itself for a counted set, too.
_COUNTED, _UNITS, _LONGEST_COUNTED = 2_000, 0xFFFF, 5_000


@dataclass(frozen=True, slots=True)
class Recursion:
    """What a search may come to.

    `possessive` has the ends of quantifiers that may be made so, and whether they are lazy. A text may have
    `longest` characters; None where no length is too much.
    """

    possessive: Mapping[int, bool]
    longest: int | None


_FOLDED = "(?i)"


@lru_cache(1024)
def in_sql(pattern: str) -> tuple[str, int | None]:
    """A pattern that is Java's own with what may be possessive, and in how long a text it can be searched.

    Lazy repetitions stay: what is found is not the same then. `(?i)` may begin it.
    """
    if pattern.startswith(_FOLDED):
        return pattern, _recursion(pattern.removeprefix(_FOLDED), may_be_possessive=False).longest
    known = _recursion(pattern, lazy_too=False)
    made = pattern
    for end in sorted(known.possessive, reverse=True):
        made = f"{made[:end]}+{made[end:]}"
    return made, known.longest


@lru_cache(1024)
def recursion(pattern: str) -> Recursion:
    """What is known of a pattern that is not refused, as it is searched for: whether it is found matters."""
    return _recursion(pattern)


def _recursion(pattern: str, *, may_be_possessive: bool = True, lazy_too: bool = True) -> Recursion:
    scan = Scan(pattern, 0)
    whole = scan.run()
    groups = [turns for turns in scan.turns if turns.calls]
    # At a `^` behind them, turns that were given back could lead to a match.
    plain = may_be_possessive and not [at for at in scan.asserting if at or pattern[0] != "^"]
    allowed = [turns for turns in groups if plain and (lazy_too or not turns.lazy)]
    free = [turns for turns in allowed if _forced(scan, turns, whole.first)]
    left = [turns for turns in groups if turns not in free]
    counted = [turns for turns in scan.turns if not turns.calls and _mixed(scan.automaton, turns)]
    lengths = [_LONGEST_COUNTED] if counted else []
    if left:
        deepest = sum(turns.calls for turns in left)
        endless = any(turns.most is None for turns in left)
        calls = 1
        for turns in left:
            calls *= (turns.most or 1) * turns.calls
        if endless or calls * _CALL > _STACK:
            lengths.append(_STACK // (_CALL * deepest))
    return Recursion({turns.end: turns.lazy for turns in free}, min(lengths, default=None))


def _mixed(automaton: Automaton, turns: GroupTurns) -> bool:
    high = max((end for one in automaton.letters[turns.since : turns.until] for _, end in one), default=0)
    return turns.most is not None and turns.most > _COUNTED and high > _UNITS


def _forced(scan: Scan, turns: GroupTurns, first: Mapping[int, int]) -> bool:
    """Whether each character leaves one way only, into a turn, within it, and out of it."""
    inside = range(turns.since, turns.until)
    unclear = [*scan.sparing, *scan.ends]
    if turns.empty or any(turns.begin <= at < turns.end for at in unclear):
        return False
    ways: list[Mapping[int, int]] = [
        follow
        for position, follow in enumerate(scan.automaton.follow)
        if position in inside or any(to in inside for to in follow)
    ]
    ways += [first] if any(to in inside for to in first) else []
    letters = scan.automaton.letters
    return all(
        all(number == 1 for number in way.values()) and _apart(letters[to] for to in way) for way in ways
    )


def _apart(sets: Iterable[Ranges]) -> bool:
    """Whether no character is in two of the sets."""
    ranges = sorted(one for each in sets for one in each)
    return all(before[1] < after[0] for before, after in pairwise(ranges))
