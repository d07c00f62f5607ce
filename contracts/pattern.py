"""Which regular expressions a contract may hold: read alike, answered soon, and not too deep for Java."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from itertools import pairwise, product
from operator import or_
from typing import NoReturn

from dq.contracts.outcome import TextFault

# Sets of characters as ranges of code points: what a class of a pattern may match.

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


# A pattern as an automaton of its positions, with the number of ways from one to the next.
#
# Repetitions that are counted far stand as loops, and what a lookaround holds as a way that ends there:
# more ways than there are, never fewer. What follows from them is in `_Graph`.

# The length of a text that is thought of.
TEXT = 20_000
# Of the decision itself: so many steps take it about a tenth of a second.
MAX_WORK = 200_000


class TooAmbiguous(Exception):
    """A text may take too long; `spots` are where in the pattern."""

    def __init__(self, reason: str, *spots: int) -> None:
        super().__init__(reason)
        self.spots = tuple(sorted(set(spots)))


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of a pattern: positions to enter and to leave by, each with the number of ways (one, or more).

    `empty` is the number of ways through it without a character. `begins` says that no way leads in but past
    the text's begin. After the positions `sure`, or where it is `free`, it ends without asking any more.
    """

    first: Mapping[int, int] = field(default_factory=dict)
    last: Mapping[int, int] = field(default_factory=dict)
    empty: int = 1
    begins: bool = False
    sure: frozenset[int] = frozenset()
    free: bool = True


NOTHING = Fragment()
BEGIN = Fragment(begins=True, free=False)
# The end, or a word's boundary.
ASSERTION = Fragment(free=False)


class Automaton:
    """The positions of a pattern, made part by part as it is read."""

    def __init__(self, most_copied: int, text: int = TEXT) -> None:
        """A repetition stands as copies of so many positions at most, else as a loop.

        `text` is the number of characters of the text that is searched.
        """
        self.most_copied = most_copied
        self.text = text
        self.letters: list[Ranges] = []
        self.spots: list[int] = []
        # How many characters of a text a position may take, one loop counted with another.
        self.takes: list[int] = []
        self.follow: list[dict[int, int]] = []
        self.work = 0

    def read(self, letters: Ranges, spot: int) -> Fragment:
        """One character of a set."""
        position = len(self.letters)
        self.letters.append(letters)
        self.spots.append(spot)
        self.takes.append(1)
        self.follow.append({})
        return Fragment({position: 1}, {position: 1}, 0, False, frozenset([position]), False)

    def anything(self, spot: int) -> Fragment:
        """Any text, as a reference back to a group may be."""
        return self.repeated(self.read(ANY, spot), len(self.letters) - 1, 0, None)

    def then(self, one: Fragment, other: Fragment) -> Fragment:
        """One after the other."""
        self._linked(one, other, 1)
        return Fragment(
            self._added(one.first, other.first, one.empty),
            self._added(other.last, one.last, other.empty),
            min(2, one.empty * other.empty),
            one.begins or (not one.first and other.begins),
            other.sure | one.sure if other.free else other.sure,
            one.free and other.free,
        )

    def either(self, parts: Sequence[Fragment]) -> Fragment:
        """One of them."""
        if len(parts) == 1:
            return parts[0]
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for one in parts:
            first.update(one.first)
            last.update(one.last)
        return Fragment(
            first,
            last,
            min(2, sum(one.empty for one in parts)),
            all(one.begins for one in parts),
            frozenset().union(*(one.sure for one in parts)),
            any(one.free for one in parts),
        )

    def looked(self, part: Fragment) -> Fragment:
        """A lookaround: its ways are tried, and end."""
        return Fragment(part.first, free=False)

    def repeated(self, part: Fragment, since: int, low: int, high: int | None) -> Fragment:
        """The part, whose positions are those since a number, so many times."""
        size = len(self.letters) - since
        if high is not None and (
            high == 1 or high * size <= self.most_copied or (size == 1 and low == high <= 64)
        ):
            return self._counted(part, since, low, high)
        self._linked(part, part, 2 if part.empty and low > 1 else 1)
        taken = self.text if high is None else min(self.text, high * sum(self.takes[since:]))
        self.takes[since:] = [taken] * size
        return Fragment(
            part.first,
            self._added(part.last, part.last, part.empty),
            min(2, part.empty if low else 1 + part.empty),
            part.begins and low > 0,
            part.sure,
            part.free or not low,
        )

    def _counted(self, part: Fragment, since: int, low: int, high: int) -> Fragment:
        end = len(self.letters)
        copies = [part, *(self._copied(part, since, end) for _ in range(high - 1))][:high]
        made = NOTHING
        for number, one in reversed(list(enumerate(copies))):
            made = self.then(one, made)
            if number >= low:
                made = replace(made, empty=min(2, made.empty + 1), begins=False, free=True)
        return made

    def _copied(self, part: Fragment, since: int, end: int) -> Fragment:
        by = len(self.letters) - since
        self.spend(end - since)
        self.letters += self.letters[since:end]
        self.spots += self.spots[since:end]
        self.takes += self.takes[since:end]
        self.follow += [{to + by: ways for to, ways in one.items()} for one in self.follow[since:end]]
        first = {one + by: ways for one, ways in part.first.items()}
        last = {one + by: ways for one, ways in part.last.items()}
        return replace(part, first=first, last=last, sure=frozenset(one + by for one in part.sure))

    def _linked(self, one: Fragment, other: Fragment, ways: int) -> None:
        self.spend(len(one.last) * len(other.first))
        for position, out in one.last.items():
            follow = self.follow[position]
            for target, into in other.first.items():
                follow[target] = min(2, follow.get(target, 0) + out * into * ways)

    def _added(self, one: Mapping[int, int], other: Mapping[int, int], ways: int) -> Mapping[int, int]:
        """The ways of both, the other's as often as said. Two stand for many."""
        if not ways or not other:
            return one
        self.spend(len(one) + len(other))
        made = dict(one)
        for position, more in other.items():
            made[position] = min(2, made.get(position, 0) + more * ways)
        return made

    def spend(self, steps: int) -> None:
        """Counts the steps of the decision. Raises TooAmbiguous where they are too many."""
        self.work += steps
        if self.work > MAX_WORK:
            raise TooAmbiguous("it is too intricate to be judged")


# What is known of a pattern's groups while it is read, and of those that may be repeated.


@dataclass(frozen=True, slots=True)
class GroupTurns:
    """A group that may be repeated: from where to where it stands with its quantifier (the `?` of a lazy one
    left out), the positions in it, whether a turn may be empty, and how deep Java calls itself for a turn.
    """

    begin: int
    end: int
    lazy: bool
    since: int
    until: int
    most: int | None
    empty: bool
    calls: int


@dataclass(slots=True)
class OpenGroup:
    """A group that is being read: its alternatives, what stands in this one, and the last piece of it.

    `number` is that of a group that can be referred to. `calls` is how deep Java calls itself for this
    alternative, `deepest` for those before it, `last_calls` for the last piece where it is a group.
    """

    at: int
    text: str
    since: int
    number: int = 0
    alternatives: list[Fragment] = field(default_factory=list)
    before: Fragment = NOTHING
    last: Fragment = NOTHING
    last_since: int = 0
    last_at: int = 0
    last_calls: int = 0
    calls: int = 0
    deepest: int = 0


# A pattern's text, as far as ECMA-262 and Java read it alike, as an automaton.
#
# Sources: ECMA-262 section 22.2.1 (with the `u` flag) and the class comment of `java.util.regex.Pattern`.

_QUANTIFIER = re.compile(r"[*+?]|\{(\d+)(?:(,)(\d*))?\}")
_TIMES = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_GROUP = re.compile(r"\((?:\?(?::|=|!|<=|<!|<([A-Za-z_][A-Za-z0-9_]*)>))?")
_LOOK = ("(?=", "(?!", "(?<=", "(?<!")
# What may follow a backslash: classes, boundaries, control letters, and signs that mean something else bare.
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}
_SIGNS = frozenset("^$\\.*+?()[]{}|/-")
_CODE = re.compile(r"x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[pP]\{(?:L|Lu|Ll|Lt|Lm|Lo|M|Mn|N|Nd|P|S|Z|Zs|C)\}")
_NAME = re.compile(r"<([A-Za-z][A-Za-z0-9]*)>")
_JAVA_ONLY = "AZzGQEhHRXvVae"


class Misread(ValueError):
    """The two do not both read it; the message says why, with the position."""


class Scan:
    """A pattern read from left to right: linear in its length, and without recursion."""

    def __init__(self, pattern: str, most_copied: int, length: int = TEXT) -> None:
        self.text = pattern
        self.at = 0
        self.automaton = Automaton(most_copied, length)
        self.open = [OpenGroup(0, "", 0)]
        self.groups = 0
        self.names: set[str] = set()
        self.used: list[tuple[int | str, int]] = []
        # Groups by number: where they stand, and their names.
        self.spans: dict[int, tuple[int, int]] = {}
        self.numbers: dict[str, int] = {}
        # Where a group may take no part: its spans, with the reason.
        self.unsure: list[tuple[int, int, str]] = []
        self.turns: list[GroupTurns] = []
        # Where Java asks for more than the next character, or would rather take less than it can.
        self.asserting: list[int] = []
        self.ends: list[int] = []
        self.sparing: list[int] = []
        # Whether what stands before may be repeated.
        self.repeatable = False

    def run(self) -> Fragment:
        """The whole pattern as a part of the automaton. Raises Misread and TooAmbiguous."""
        while self.at < len(self.text):
            self._one(self.text[self.at])
        if len(self.open) > 1:
            raise Misread(f"the group opened at position {self.open[-1].at + 1} is not closed")
        for name, position in self.used:
            if (name > self.groups) if isinstance(name, int) else (name not in self.names):
                raise Misread(f"there is no group {name!r}, which position {position + 1} refers to")
        if self.open[0].alternatives:
            self.unsure.append((0, len(self.text), "in an alternative"))
        for name, position in self.used:
            self._refuse_unsure(name, position)
        return self._closed(self.open[0])

    def _refuse_unsure(self, name: int | str, position: int) -> None:
        """Raises Misread for a reference to a group that may have taken no part.

        ECMA-262 matches the empty text for it, and forgets groups at each turn; Java does neither.
        """
        begin, end = self.spans[name if isinstance(name, int) else self.numbers[name]]
        reason = next((why for low, high, why in self.unsure if low <= begin and end <= high), None)
        if reason is None and position < end:
            reason = "not closed there"
        if reason is not None:
            told = f"the group {name!r} is {reason}, and the two do not agree on what it holds then"
            raise Misread(f"{told} (position {position + 1})")

    def _one(self, character: str) -> None:
        begin, since = self.at, len(self.automaton.letters)
        if character == "\\":
            found = self._escape(in_class=False)
            self.repeatable = found is not ASSERTION
            self._put(found if isinstance(found, Fragment) else self.automaton.read(found, begin), since)
        elif character == "[":
            self._put(self.automaton.read(self.read_class(), begin), since)
            self.repeatable = True
        elif character == "(":
            self._group()
        elif character == ")":
            if len(self.open) == 1:
                self._refuse("')' closes nothing")
            group = self.open.pop()
            part, looks = self._closed(group), group.text in _LOOK
            self._put(self.automaton.looked(part) if looks else part, group.since, group.at)
            own = max(group.deepest, group.calls) + 2 + 2 * bool(group.alternatives)
            self.open[-1].last_calls = own
            self.open[-1].calls += own - 1
            self.repeatable = not looks
            self.at += 1
            self.spans[group.number] = (group.at, self.at)
            if looks:
                self.asserting.append(group.at)
                self.unsure.append((group.at, self.at, "in a lookaround"))
            if group.alternatives:
                self.unsure.append((group.at, self.at - 1, "in an alternative"))
        elif character in "*+?{":
            self._quantifier()
        elif character in "]}":
            self._refuse(f"{character!r} stands alone; escape it as '\\{character}'")
        else:
            self.repeatable = character not in "^$|"
            if character == "|":
                group = self.open[-1]
                group.alternatives.append(self._ended(group))
                group.before = group.last = NOTHING
                group.deepest, group.calls = max(group.deepest, group.calls), 0
            elif character in "^$":
                (self.ends if character == "$" else self.asserting).append(begin)
                self._put(BEGIN if character == "^" else ASSERTION, since)
            else:
                read = DOT if character == "." else signs(character)
                self._put(self.automaton.read(read, begin), since)
            self.at += 1

    def _put(self, part: Fragment, since: int, at: int | None = None) -> None:
        """The next piece of the group that is open; its positions are those since a number."""
        group = self.open[-1]
        group.before = self._ended(group)
        group.last, group.last_since = part, since
        group.last_at = self.at if at is None else at
        group.last_calls = 0
        group.calls += 1

    def _ended(self, group: OpenGroup) -> Fragment:
        return self.automaton.then(group.before, group.last)

    def _closed(self, group: OpenGroup) -> Fragment:
        parts = [*group.alternatives, self._ended(group)]
        if len(parts) > 1 and any(part.empty for part in parts):
            self.sparing.append(group.at)
        return self.automaton.either(parts)

    def _group(self) -> None:
        match = _GROUP.match(self.text, self.at)
        assert match is not None
        if match.end() < len(self.text) and match.group() == "(" and self.text[match.end()] == "?":
            self._refuse(f"{self.text[self.at : self.at + 3]!r} is not known to both")
        if match.group(1):
            if match.group(1) in self.names:
                self._refuse(f"the group name {match.group(1)!r} is used twice")
            if "_" in match.group(1):
                self._refuse(f"the group name {match.group(1)!r} has an underscore, which Java refuses")
            self.names.add(match.group(1))
        number = 0
        if match.group(1) or match.group() == "(":
            self.groups += 1
            number = self.groups
            self.numbers[match.group(1) or ""] = number
        self.open.append(OpenGroup(self.at, match.group(), len(self.automaton.letters), number))
        self.repeatable = False
        self.at = match.end()

    def _quantifier(self) -> None:
        match = _QUANTIFIER.match(self.text, self.at)
        if match is None:
            self._refuse("'{' stands alone; escape it as '\\{'")
        if not self.repeatable:
            self._refuse(f"{match.group()!r} repeats nothing")
        low, comma, high = match.groups()
        if high and int(low) > int(high):
            self._refuse(f"{match.group()!r} counts down")
        self.at = end = match.end()
        lazy = self.text[self.at : self.at + 1] == "?"
        if lazy:
            self.sparing.append(self.at)
            self.at += 1
        elif self.text[self.at : self.at + 1] == "+":
            self._refuse("a possessive '+' is not known to ECMA-262")
        self.repeatable = False
        group = self.open[-1]
        least, most = _TIMES.get(match.group()) or (
            int(low),
            int(high) if high else None if comma else int(low),
        )
        part, begin, since = group.last, group.last_at, group.last_since
        if (least, most) != (1, 1):
            self.unsure.append((begin, end, "optional" if most == 1 else "repeated"))
        if most is None or most > 1:
            until, calls = len(self.automaton.letters), group.last_calls and group.last_calls + 1
            self.turns.append(GroupTurns(begin, end, lazy, since, until, most, part.empty > 0, calls))
        group.last = self.automaton.repeated(part, since, least, most)

    def _escape(self, *, in_class: bool) -> Ranges | Fragment:
        """Steps over an escape; what it matches, or the part that it is where that is no character."""
        begin = self.at
        following = self.text[begin + 1 : begin + 2]
        if not following:
            self._refuse("a backslash ends the pattern")
        code = _CODE.match(self.text, begin + 1)
        if code is not None:
            self.at = code.end()
            if following in "pP":
                return category(code.group()[2:-1], without=following == "P")
            return signs(chr(int(code.group()[1:], 16)))
        self.at = begin + 2
        if following in CLASSES:
            return CLASSES[following]
        if following in _CONTROLS or following in _SIGNS:
            return signs(_CONTROLS.get(following, following))
        if following in "bB":
            if in_class:
                self._refuse(f"'\\{following}' in a class is read differently by the two", begin)
            self.asserting.append(begin)
            return ASSERTION
        if not in_class and following in "123456789":
            if self.text[self.at : self.at + 1].isdecimal():
                self._refuse(f"'\\{following}' before a digit is another group to one of the two", begin)
            self.used.append((int(following), begin))
            self.asserting.append(begin)
            return self.automaton.anything(begin)
        if not in_class and following == "k":
            name = _NAME.match(self.text, self.at)
            if name is not None:
                self.used.append((name.group(1), begin))
                self.asserting.append(begin)
                self.at = name.end()
                return self.automaton.anything(begin)
        only = "is known to Java alone" if following in _JAVA_ONLY else "does not mean the same to both"
        raise Misread(f"'\\{following}' {only} (position {begin + 1})")

    def read_class(self) -> Ranges:
        """Steps over a class; what it matches."""
        begin = self.at
        negated = self.text[begin + 1 : begin + 2] == "^"
        self.at += 2 if negated else 1
        if self.text[self.at : self.at + 1] == "]":
            self._refuse("an empty class matches nothing in one and is an error in the other", begin)
        found: list[Ranges] = []
        loose = False
        last: str | None = None
        while self.at < len(self.text) and self.text[self.at] != "]":
            if self.text[self.at] == "[":
                self._refuse("'[' in a class opens another one in Java; escape it as '\\['")
            if self.text.startswith("&&", self.at):
                self._refuse("'&&' in a class is an intersection in Java; write one '&'")
            ranged = self.text[self.at] == "-" and last is not None
            if ranged and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                end, _ = self._member()
                if not last or not end:
                    self._refuse("a range ends in a class of characters")
                if last > end:
                    self._refuse(f"the range {last}-{end} counts down")
                found.append(((ord(last), ord(end)),))
                last = None
                continue
            loose |= self.text[self.at : self.at + 2] in ("\\p", "\\P")
            last, matched = self._member()
            found.append(matched)
        if self.at >= len(self.text):
            self._refuse("'[' is not closed", begin)
        self.at += 1
        if not negated:
            return joined(*found)
        # Of a category, more is told than there is; without it, more has to be told too.
        return joined(others(joined(*found)), BEYOND if loose else ())

    def _member(self) -> tuple[str, Ranges]:
        """Steps over one member of a class; its character, empty for a set of them, and what it matches."""
        begin = self.at
        character = self.text[begin]
        if character != "\\":
            if character == "[":
                self._refuse("'[' in a class opens another one in Java; escape it as '\\['")
            self.at += 1
            return character, signs(character)
        found = self._escape(in_class=True)
        assert not isinstance(found, Fragment)
        is_set = self.text[begin + 1] in "dDwWsSpP"
        return "" if is_set else chr(found[0][0]), found

    def _refuse(self, reason: str, position: int | None = None) -> NoReturn:
        raise Misread(f"{reason} (position {(self.at if position is None else position) + 1})")


# How long a matcher that backtracks may try a pattern: how ambiguous its automaton is.
#
# Java tries one way through a pattern after another. Where the same text has ever more ways, a text that
# does not match takes ever longer: exponentially, when a loop can be walked in two ways on one text, and as
# a power of the text's length, when loops behind each other can share a text out.
#
# Sources: Weber and Seidl, On the degree of ambiguity of finite automata (1991); Weideman and others,
# Analyzing matching time behavior of backtracking regular expression matchers by using ambiguity (2016).

# A text of `TEXT` characters is answered within so many steps: the square of its length, and little beside.
MAX_STEPS = 2 * TEXT * TEXT
# More is not told apart.
_MANY = TEXT**3

Follow = list[Mapping[int, int]]


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
                reduce(or_, (self.letters[one] for one in group)),
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

    def steps(self) -> int:
        """Return the most steps of a search in a text of the automaton's length.

        Raises TooAmbiguous where they grow exponentially with the text.
        """
        length, ways, straight, _ = self.shares()
        return length * ways * straight

    def refuse_steps(self) -> None:
        """Raises TooAmbiguous where a search may take too long on some text."""
        length, ways, straight, sharing = self.shares()
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
# characters may exhaust the stack, which ends a Spark task's whole JVM. It does not where the repetition is
# possessive. That means the same where each character of a text can be only one place of the pattern: then
# no turn that was made could be made in another way, and giving it back leads nowhere.

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
        return pattern, recursion(pattern.removeprefix(_FOLDED), may_be_possessive=False).longest
    known = recursion(pattern, lazy_too=False)
    made = pattern
    for end in sorted(known.possessive, reverse=True):
        made = f"{made[:end]}+{made[end:]}"
    return made, known.longest


@lru_cache(1024)
def recursion(pattern: str, *, may_be_possessive: bool = True, lazy_too: bool = True) -> Recursion:
    """What is known of a pattern that is not refused, as it is searched for: whether it is found matters."""
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
# `_Graph`).

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
    found = slow(searched(pattern))
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
        try:
            _graph(pattern, most_copied, TEXT, folded).refuse_steps()
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
        with suppress(TooAmbiguous):
            bounds.append(_graph(text, most_copied, length, folded=text != pattern).steps())
    return min(bounds, default=None)


def _graph(pattern: str, most_copied: int, length: int, folded: bool) -> _Graph:
    scan = Scan(pattern, most_copied, length)
    whole = scan.run()
    if folded:
        scan.automaton.letters = [either_case(one) for one in scan.automaton.letters]
    return _Graph(scan.automaton, whole)


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
