"""Which regular expressions a contract may hold: read alike, answered soon, and not too deep for Java."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product

from dq.contracts.automaton import (
    ANY,
    TEXT,
    Automaton,
    Fragment,
    GroupTurns,
    Misread,
    Ranges,
    Scan,
    TooAmbiguous,
    either_case,
    masks,
)
from dq.contracts.shared.outcome import TextFault

# How long a matcher that backtracks may try a pattern: how ambiguous its automaton is.
#
# Java tries one way through a pattern after another. Where the same text has ever more ways, a text that
# does
# not match takes ever longer: exponentially, when a loop can be walked in two ways on one text, and as a
# power
# of the text's length, when loops behind each other can share a text out.
#
# Sources: Weber and Seidl, On the degree of ambiguity of finite automata (1991); Weideman and others,
# Analyzing matching time behavior of backtracking regular expression matchers by using ambiguity (2016).

# A text of `TEXT` characters is answered within so many steps: the square of its length, and little beside.
MAX_STEPS = 2 * TEXT * TEXT
# More is not told apart.
_MANY = TEXT**3

Follow = list[Mapping[int, int]]


def judge(automaton: Automaton, whole: Fragment) -> None:
    """Raises TooAmbiguous where a search for the pattern may take too long on some text."""
    graph = _Graph(automaton, whole)
    graph.refuse_steps(*graph.shares())


def steps(automaton: Automaton, whole: Fragment) -> int:
    """Return the most steps that a search for the pattern takes in a text of the automaton's length.

    Raises TooAmbiguous where they grow exponentially with the text.
    """
    length, ways, straight, _ = _Graph(automaton, whole).shares()
    return length * ways * straight


@dataclass(frozen=True, slots=True)
class _Loop:
    """Positions that lead to each other, the characters of one of them at least, and of how long a text."""

    inside: frozenset[int]
    letters: int
    takes: int


class _Graph:
    """The automaton with a start, and the search that tries every place of a text, where it is one."""

    def __init__(self, automaton: Automaton, whole: Fragment) -> None:
        self.automaton = automaton
        self.whole = whole
        self.start = len(automaton.letters)
        self.letters = masks([*automaton.letters, ANY])
        self.takes = [*automaton.takes, automaton.text]
        begin = dict(whole.first) if whole.begins else {**whole.first, self.start: 1}
        self.follow: Follow = [*automaton.follow, begin]

    def spots(self, *positions: int) -> list[int]:
        return [self.automaton.spots[one] for one in positions if one < self.start]

    def loops(self, follow: Follow) -> list[_Loop]:
        """The loops, each before those that it leads to."""
        found = [
            _Loop(
                frozenset(group),
                _either(self.letters[one] for one in group),
                max(self.takes[one] for one in group),
            )
            for group in _components(follow)
            if len(group) > 1 or group[0] in follow[group[0]]
        ]
        return found[::-1]

    def refuse_two_ways_round(self, loop: _Loop) -> None:
        """Two ways apart, from one position on one text, that come together again inside of the loop."""
        inside = {one: [to for to in self.follow[one] if to in loop.inside] for one in loop.inside}
        seen: set[tuple[int, int]] = set()
        todo = [(one, one) for one in loop.inside]
        while todo:
            one, other = todo.pop()
            self.automaton.spend(len(inside[one]) * len(inside[other]))
            if one == other and any(self.follow[one][to] > 1 for to in inside[one]):
                raise self._twice(one)
            if one != other and not set(inside[one]).isdisjoint(inside[other]):
                raise self._twice(one, other)
            for left, right in product(inside[one], inside[other]):
                pair = (min(left, right), max(left, right))
                if left != right and pair not in seen and self.letters[left] & self.letters[right]:
                    seen.add(pair)
                    todo.append(pair)

    def _twice(self, *positions: int) -> TooAmbiguous:
        return TooAmbiguous(
            "what is repeated there can match one text in ever more ways", *self.spots(*positions)
        )

    def shares(self) -> tuple[int, int, int, tuple[_Loop, ...]]:
        """Return the factors of a search's steps, and the loops that share the text out.

        They are the text's length, the ways to share it out among loops, and the ways that no loop
        multiplies. Raises TooAmbiguous.
        """
        for loop in self.loops(self.follow):
            self.refuse_two_ways_round(loop)
        # Where the pattern has ended, the search has: nothing is tried behind it.
        follow: Follow = [{} if one in self.whole.sure else to for one, to in enumerate(self.follow)]
        loops = self.loops(follow)
        ways, sharing = self._shared_out(follow, loops)
        return max((one.takes for one in loops), default=1), ways, self._straight(follow), sharing

    def refuse_steps(self, length: int, ways: int, straight: int, sharing: tuple[_Loop, ...]) -> None:
        """Raises TooAmbiguous where the steps are too many."""
        if length * ways * straight <= MAX_STEPS:
            return
        if ways == 1:
            raise TooAmbiguous(f"there are {min(straight, _MANY):,} ways through it")
        raise TooAmbiguous(
            "one text can be shared out in too many ways among what is repeated there",
            *(spot for loop in sharing for spot in self.spots(min(loop.inside))),
        )

    def _shared_out(self, follow: Follow, loops: list[_Loop]) -> tuple[int, tuple[_Loop, ...]]:
        """The largest number of ways along one path, and the loops that make it."""
        found: list[tuple[int, tuple[_Loop, ...]]] = [(1, ())] * len(loops)
        for at, one in enumerate(loops):
            behind = self._reached(follow, one)
            ways, path = found[at]
            for then in range(at + 1, len(loops)):
                other = loops[then]
                self.automaton.spend(1)
                if behind.isdisjoint(other.inside):
                    continue
                made = (ways, path)
                if one.letters & other.letters and self._share(follow, one, other):
                    made = (ways * min(one.takes, other.takes), (*(path or (one,)), other))
                found[then] = max(found[then], made, key=lambda each: each[0])
        return max(found, key=lambda each: each[0], default=(1, ()))

    def _reached(self, follow: Follow, loop: _Loop) -> set[int]:
        seen, todo = set(loop.inside), list(loop.inside)
        while todo:
            self.automaton.spend(1)
            for to in follow[todo.pop()]:
                if to not in seen:
                    seen.add(to)
                    todo.append(to)
        return seen

    def _share(self, follow: Follow, one: _Loop, other: _Loop) -> bool:
        """Whether a text leads round the one, round the other, and from the one into the other."""
        for begin, end in product(one.inside, other.inside):
            seen: set[tuple[int, int, int]] = set()
            todo = [(begin, begin, end)]
            while todo:
                left, middle, right = todo.pop()
                lefts = [to for to in follow[left] if to in one.inside]
                rights = [to for to in follow[right] if to in other.inside]
                self.automaton.spend(len(lefts) * len(rights) * len(follow[middle]))
                for each in product(lefts, follow[middle], rights):
                    if (
                        each in seen
                        or not self.letters[each[0]] & self.letters[each[1]] & self.letters[each[2]]
                    ):
                        continue
                    if each == (begin, end, end):
                        return True
                    seen.add(each)
                    todo.append(each)
        return False

    def _straight(self, follow: Follow) -> int:
        """The ways that one text has besides the loops: at most the product of the choices on one path."""
        ways: dict[int, int] = {}
        for group in _components(follow):
            inside = set(group)
            choices = max(self._choices(follow[one], inside) for one in group)
            after = max((ways[to] for one in group for to in follow[one] if to not in inside), default=1)
            ways.update(dict.fromkeys(group, min(_MANY, max(1, choices) * after)))
        return ways[self.start]

    def _choices(self, follow: Mapping[int, int], inside: set[int]) -> int:
        """The most ways out on one character."""
        # The characters for which there is one way at least, two, three, and so on.
        levels: list[int] = []
        for to, number in follow.items():
            for _ in range(0 if to in inside else number):
                left = self.letters[to]
                for at, level in enumerate(levels):
                    levels[at], left = level | left, level & left
                self.automaton.spend(len(levels))
                if left:
                    levels.append(left)
        return len(levels)


def _either(numbers: Iterable[int]) -> int:
    made = 0
    for one in numbers:
        made |= one
    return made


def _components(follow: Follow) -> Iterator[list[int]]:
    """Positions that lead to each other, as groups; a group comes after all that it leads to (Tarjan)."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    waiting: set[int] = set()
    for root in range(len(follow)):
        todo = [] if root in number else [(root, iter(follow[root]))]
        while todo:
            one, further = todo[-1]
            if one not in number:
                number[one] = low[one] = len(number)
                stack.append(one)
                waiting.add(one)
            for to in further:
                if to not in number:
                    todo.append((to, iter(follow[to])))
                    break
                if to in waiting:
                    low[one] = min(low[one], low[to])
            else:
                todo.pop()
                if todo:
                    low[todo[-1][0]] = min(low[todo[-1][0]], low[one])
                if low[one] == number[one]:
                    group: list[int] = []
                    while not group or group[-1] != one:
                        group.append(stack.pop())
                        waiting.discard(group[-1])
                    yield group


# How deep Java's matcher calls itself for a pattern, and where it need not.
#
# For each turn of a repeated group `java.util.regex` calls itself, so that a text of a few thousand
# characters
# may exhaust the stack, which ends a Spark task's whole JVM. It does not where the repetition is
# possessive.
# That means the same where each character of a text can be only one place of the pattern: then no turn that
# was
# made could be made in another way, and giving it back leads nowhere.

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


# Which regular expressions a contract may hold: those that ECMA-262 and Java read alike, and answer soon.
#
# ODCS says that `pattern` is ECMA-262; Spark matches with Java's `java.util.regex`. What only one of them
# knows, or what they read differently, is refused, and so is what some text keeps a matcher busy with (see
# `backtracking`).

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
