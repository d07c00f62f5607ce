"""A pattern's text, as far as ECMA-262 and Java read it alike, as an automaton of its positions."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

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
# more
# ways than there are, never fewer. What follows from them is in `backtracking`.

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
        return Fragment(part.first, {}, 1, False, frozenset(), False)

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
                made = Fragment(made.first, made.last, min(2, made.empty + 1), False, made.sure, True)
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
        return Fragment(
            first, last, part.empty, part.begins, frozenset(one + by for one in part.sure), part.free
        )

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
