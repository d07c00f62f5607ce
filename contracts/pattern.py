"""Validation of regular expressions: same meaning in ECMA-262 and Java, bounded time and stack depth."""

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

from dq.contracts.outcome import ValueProblem

# Sets of characters as ranges of code points.

# Sorted and disjoint; both ends are included.
Ranges = tuple[tuple[int, int], ...]

MAX_CODE_POINT = 0x10FFFF
ANY: Ranges = ((0, MAX_CODE_POINT),)
# Non-ASCII characters.
NON_ASCII: Ranges = ((128, MAX_CODE_POINT),)


def union(*sets: Iterable[tuple[int, int]]) -> Ranges:
    """Return the union of the sets."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(code_range for ranges in sets for code_range in ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """Return the complement of the set."""
    gaps, begin = [], 0
    for low, high in ranges:
        if begin < low:
            gaps.append((begin, low - 1))
        begin = high + 1
    return (*gaps, (begin, MAX_CODE_POINT)) if begin <= MAX_CODE_POINT else tuple(gaps)


def characters(text: str) -> Ranges:
    """Return the set of these characters."""
    return union((ord(character), ord(character)) for character in text)


def category(name: str, *, negated: bool = False) -> Ranges:
    """Return a superset of a Unicode category, or of its complement: all non-ASCII characters are
    included.
    """
    ascii_characters = (chr(code) for code in range(128))
    members = (
        character
        for character in ascii_characters
        if unicodedata.category(character).startswith(name) != negated
    )
    return union(characters("".join(members)), NON_ASCII)


_DIGITS = characters("0123456789")
_WORD = union(_DIGITS, ((65, 90), (97, 122)), characters("_"))
_SPACE = union(characters("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"), ((0x2000, 0x200A),))
# Letter after the backslash -> characters that it matches.
CLASSES = {
    "d": _DIGITS,
    "D": complement(_DIGITS),
    "w": _WORD,
    "W": complement(_WORD),
    "s": _SPACE,
    "S": complement(_SPACE),
}
DOT = complement(characters("\n\r\u2028\u2029"))


def with_both_cases(ranges: Ranges) -> Ranges:
    """Return the set with both cases of its ASCII letters, and all non-ASCII characters if it has any."""
    folded_ranges = [(low, high) for low, high in ranges]
    for begin, end, step in ((65, 90, 32), (97, 122, -32)):
        folded_ranges += [
            (max(low, begin) + step, min(high, end) + step)
            for low, high in ranges
            if low <= end and high >= begin
        ]
    return union(folded_ranges, NON_ASCII if ranges and ranges[-1][1] > 127 else ())


def bit_masks(sets: Sequence[Ranges]) -> list[int]:
    """Return each set as a bit mask: two sets have a character in common if `left & right` is not 0."""
    boundaries = sorted({boundary for ranges in sets for low, high in ranges for boundary in (low, high + 1)})
    return [
        sum(
            (1 << bisect_left(boundaries, high + 1)) - (1 << bisect_left(boundaries, low))
            for low, high in ranges
        )
        for ranges in sets
    ]


# A pattern as a position automaton, with the number of ways from one position to the next.
#
# Large counted repetitions are modelled as loops, and the content of a lookaround as a path that ends there:
# this overestimates the number of ways, and never underestimates it. `_Graph` evaluates them.

# Assumed length of the searched text.
TEXT_LENGTH = 20_000
# Step limit of the analysis itself, about a tenth of a second.
MAX_WORK = 200_000


class TooAmbiguous(Exception):
    """A search may take too long; `offsets` are the positions in the pattern that cause it."""

    def __init__(self, reason: str, *offsets: int) -> None:
        super().__init__(reason)
        self.offsets = tuple(sorted(set(offsets)))


@dataclass(frozen=True, slots=True)
class Fragment:
    """Part of a pattern: its first and last positions, each with the number of ways (1, or 2 for more).

    Attributes:
        empty_ways: Number of ways through it without a character.
        anchored: True if it matches only at the start of the text.
        unconditional_ends: Positions after which it ends without a further assertion.
        ends_unconditionally: True if the empty match ends without a further assertion.
    """

    first: Mapping[int, int] = field(default_factory=dict)
    last: Mapping[int, int] = field(default_factory=dict)
    empty_ways: int = 1
    anchored: bool = False
    unconditional_ends: frozenset[int] = frozenset()
    ends_unconditionally: bool = True


NOTHING = Fragment()
BEGIN = Fragment(anchored=True, ends_unconditionally=False)
# The end of the text, or a word boundary.
ASSERTION = Fragment(ends_unconditionally=False)


class Automaton:
    """The position automaton of a pattern, built while it is parsed."""

    def __init__(self, max_copied: int, text_length: int = TEXT_LENGTH) -> None:
        """Initialize an empty automaton.

        Args:
            max_copied: A repetition is unrolled into at most this many positions, else modelled as a loop.
            text_length: Number of characters of the searched text.
        """
        self.max_copied = max_copied
        self.text_length = text_length
        self.character_sets: list[Ranges] = []
        self.offsets: list[int] = []
        # Maximum number of characters that a position may consume, including nested loops.
        self.max_consumed: list[int] = []
        self.transitions: list[dict[int, int]] = []
        self.work = 0

    def add_character(self, ranges: Ranges, offset: int) -> Fragment:
        """Add a position that matches one character of a set."""
        position = len(self.character_sets)
        self.character_sets.append(ranges)
        self.offsets.append(offset)
        self.max_consumed.append(1)
        self.transitions.append({})
        return Fragment({position: 1}, {position: 1}, 0, False, frozenset([position]), False)

    def add_any_text(self, offset: int) -> Fragment:
        """Add a part that matches any text, e.g. for a back reference."""
        return self.repeat(self.add_character(ANY, offset), len(self.character_sets) - 1, 0, None)

    def concatenate(self, left: Fragment, right: Fragment) -> Fragment:
        """Return the concatenation of two parts."""
        self._link(left, right, 1)
        return Fragment(
            self._add_ways(left.first, right.first, left.empty_ways),
            self._add_ways(right.last, left.last, right.empty_ways),
            min(2, left.empty_ways * right.empty_ways),
            left.anchored or (not left.first and right.anchored),
            right.unconditional_ends | left.unconditional_ends
            if right.ends_unconditionally
            else right.unconditional_ends,
            left.ends_unconditionally and right.ends_unconditionally,
        )

    def alternate(self, parts: Sequence[Fragment]) -> Fragment:
        """Return the alternation of the parts."""
        if len(parts) == 1:
            return parts[0]
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for part in parts:
            first.update(part.first)
            last.update(part.last)
        return Fragment(
            first,
            last,
            min(2, sum(part.empty_ways for part in parts)),
            all(part.anchored for part in parts),
            frozenset().union(*(part.unconditional_ends for part in parts)),
            any(part.ends_unconditionally for part in parts),
        )

    def lookaround(self, part: Fragment) -> Fragment:
        """Return a lookaround: its paths are tried and end there."""
        return Fragment(part.first, ends_unconditionally=False)

    def repeat(self, part: Fragment, first_position: int, minimum: int, maximum: int | None) -> Fragment:
        """Return the part repeated; its positions are those from `first_position` on."""
        size = len(self.character_sets) - first_position
        if maximum is not None and (
            maximum == 1 or maximum * size <= self.max_copied or (size == 1 and minimum == maximum <= 64)
        ):
            return self._unroll(part, first_position, minimum, maximum)
        self._link(part, part, 2 if part.empty_ways and minimum > 1 else 1)
        consumed = (
            self.text_length
            if maximum is None
            else min(self.text_length, maximum * sum(self.max_consumed[first_position:]))
        )
        self.max_consumed[first_position:] = [consumed] * size
        return Fragment(
            part.first,
            self._add_ways(part.last, part.last, part.empty_ways),
            min(2, part.empty_ways if minimum else 1 + part.empty_ways),
            part.anchored and minimum > 0,
            part.unconditional_ends,
            part.ends_unconditionally or not minimum,
        )

    def _unroll(self, part: Fragment, first_position: int, minimum: int, maximum: int) -> Fragment:
        end = len(self.character_sets)
        copies = [part, *(self._copy(part, first_position, end) for _ in range(maximum - 1))][:maximum]
        result = NOTHING
        for number, copy in reversed(list(enumerate(copies))):
            result = self.concatenate(copy, result)
            if number >= minimum:
                result = replace(
                    result,
                    empty_ways=min(2, result.empty_ways + 1),
                    anchored=False,
                    ends_unconditionally=True,
                )
        return result

    def _copy(self, part: Fragment, first_position: int, end: int) -> Fragment:
        shift = len(self.character_sets) - first_position
        self.spend(end - first_position)
        self.character_sets += self.character_sets[first_position:end]
        self.offsets += self.offsets[first_position:end]
        self.max_consumed += self.max_consumed[first_position:end]
        self.transitions += [
            {target + shift: count for target, count in targets.items()}
            for targets in self.transitions[first_position:end]
        ]
        first = {position + shift: count for position, count in part.first.items()}
        last = {position + shift: count for position, count in part.last.items()}
        return replace(
            part,
            first=first,
            last=last,
            unconditional_ends=frozenset(position + shift for position in part.unconditional_ends),
        )

    def _link(self, left: Fragment, right: Fragment, factor: int) -> None:
        self.spend(len(left.last) * len(right.first))
        for position, out in left.last.items():
            targets = self.transitions[position]
            for target, into in right.first.items():
                targets[target] = min(2, targets.get(target, 0) + out * into * factor)

    def _add_ways(
        self, counts: Mapping[int, int], more_counts: Mapping[int, int], factor: int
    ) -> Mapping[int, int]:
        """Return the sum of both, the second multiplied by `factor`, capped at 2."""
        if not factor or not more_counts:
            return counts
        self.spend(len(counts) + len(more_counts))
        total = dict(counts)
        for position, count in more_counts.items():
            total[position] = min(2, total.get(position, 0) + count * factor)
        return total

    def spend(self, steps: int) -> None:
        """Count steps of the analysis. Raises TooAmbiguous if there are too many."""
        self.work += steps
        if self.work > MAX_WORK:
            raise TooAmbiguous("it is too complex to evaluate")


# State of a pattern's groups while it is parsed, and their quantifiers.


@dataclass(frozen=True, slots=True)
class GroupQuantifier:
    """A repeated group: its span with the quantifier (without the `?` of a lazy one), its positions, whether
    an iteration may be empty, and the depth of Java's recursion per iteration.
    """

    begin: int
    end: int
    lazy: bool
    first_position: int
    end_position: int
    maximum: int | None
    may_be_empty: bool
    stack_depth: int


@dataclass(slots=True)
class OpenGroup:
    """A group that is being parsed: its alternatives, the current one, and the last part of that.

    Attributes:
        number: Number of a capturing group, else 0.
        depth: Depth of Java's recursion for the current alternative.
        max_depth: The same for the alternatives before it.
        last_depth: The same for the last part if it is a group.
    """

    offset: int
    text: str
    first_position: int
    number: int = 0
    alternatives: list[Fragment] = field(default_factory=list)
    prefix: Fragment = NOTHING
    last: Fragment = NOTHING
    last_first_position: int = 0
    last_offset: int = 0
    last_depth: int = 0
    depth: int = 0
    max_depth: int = 0


# Parser for the common subset of ECMA-262 and Java regular expressions.
#
# Sources: ECMA-262 section 22.2.1 (with the `u` flag) and the class comment of `java.util.regex.Pattern`.

_QUANTIFIER = re.compile(r"[*+?]|\{(\d+)(?:(,)(\d*))?\}")
_TIMES = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_GROUP = re.compile(r"\((?:\?(?::|=|!|<=|<!|<([A-Za-z_][A-Za-z0-9_]*)>))?")
_LOOK = ("(?=", "(?!", "(?<=", "(?<!")
# Characters allowed after a backslash: classes, boundaries, control letters, and escaped special characters.
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}
_ESCAPABLE = frozenset("^$\\.*+?()[]{}|/-")
_CODE = re.compile(r"x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[pP]\{(?:L|Lu|Ll|Lt|Lm|Lo|M|Mn|N|Nd|P|S|Z|Zs|C)\}")
_NAME = re.compile(r"<([A-Za-z][A-Za-z0-9]*)>")
_JAVA_ONLY = "AZzGQEhHRXvVae"


class AmbiguousSyntax(ValueError):
    """ECMA-262 and Java interpret the pattern differently; the message says why, with the position."""


class PatternParser:
    """Parses a pattern from left to right: linear in its length, and without recursion."""

    def __init__(self, pattern: str, max_copied: int, text_length: int = TEXT_LENGTH) -> None:
        self.text = pattern
        self.offset = 0
        self.automaton = Automaton(max_copied, text_length)
        self.open_groups = [OpenGroup(0, "", 0)]
        self.groups = 0
        self.names: set[str] = set()
        self.references: list[tuple[int | str, int]] = []
        # Spans of groups by number, and their numbers by name.
        self.spans: dict[int, tuple[int, int]] = {}
        self.numbers: dict[str, int] = {}
        # Spans in which a group may not participate in a match, with the reason.
        self.conditional_spans: list[tuple[int, int, str]] = []
        self.quantifiers: list[GroupQuantifier] = []
        # Offsets where Java checks more than the next character, or prefers the shorter match.
        self.assertions: list[int] = []
        self.end_anchors: list[int] = []
        self.lazy_offsets: list[int] = []
        # True if the preceding element may be repeated.
        self.is_repeatable = False

    def parse(self) -> Fragment:
        """Return the whole pattern as a part of the automaton. Raises AmbiguousSyntax and TooAmbiguous."""
        while self.offset < len(self.text):
            self._read_element(self.text[self.offset])
        if len(self.open_groups) > 1:
            raise AmbiguousSyntax(
                f"the group opened at position {self.open_groups[-1].offset + 1} is not closed"
            )
        for name, position in self.references:
            if (name > self.groups) if isinstance(name, int) else (name not in self.names):
                raise AmbiguousSyntax(f"position {position + 1} refers to the unknown group {name!r}")
        if self.open_groups[0].alternatives:
            self.conditional_spans.append((0, len(self.text), "in an alternative"))
        for name, position in self.references:
            self._check_reference(name, position)
        return self._group_fragment(self.open_groups[0])

    def _check_reference(self, name: int | str, position: int) -> None:
        """Raise AmbiguousSyntax for a reference to a group that may not have participated.

        ECMA-262 then matches the empty text, and resets groups at each iteration; Java does neither.
        """
        begin, end = self.spans[name if isinstance(name, int) else self.numbers[name]]
        reason = next(
            (cause for low, high, cause in self.conditional_spans if low <= begin and end <= high), None
        )
        if reason is None and position < end:
            reason = "not closed there"
        if reason is not None:
            problem = f"the group {name!r} is {reason}, where ECMA-262 and Java disagree on its value"
            raise AmbiguousSyntax(f"{problem} (position {position + 1})")

    def _read_element(self, character: str) -> None:
        begin, first_position = self.offset, len(self.automaton.character_sets)
        if character == "\\":
            escaped = self._read_escape(in_class=False)
            self.is_repeatable = escaped is not ASSERTION
            self._append(
                escaped if isinstance(escaped, Fragment) else self.automaton.add_character(escaped, begin),
                first_position,
            )
        elif character == "[":
            self._append(self.automaton.add_character(self.read_class(), begin), first_position)
            self.is_repeatable = True
        elif character == "(":
            self._read_group()
        elif character == ")":
            if len(self.open_groups) == 1:
                self._fail("unmatched ')'")
            group = self.open_groups.pop()
            part, is_lookaround = self._group_fragment(group), group.text in _LOOK
            self._append(
                self.automaton.lookaround(part) if is_lookaround else part, group.first_position, group.offset
            )
            depth = max(group.max_depth, group.depth) + 2 + 2 * bool(group.alternatives)
            self.open_groups[-1].last_depth = depth
            self.open_groups[-1].depth += depth - 1
            self.is_repeatable = not is_lookaround
            self.offset += 1
            self.spans[group.number] = (group.offset, self.offset)
            if is_lookaround:
                self.assertions.append(group.offset)
                self.conditional_spans.append((group.offset, self.offset, "in a lookaround"))
            if group.alternatives:
                self.conditional_spans.append((group.offset, self.offset - 1, "in an alternative"))
        elif character in "*+?{":
            self._read_quantifier()
        elif character in "]}":
            self._fail(f"unmatched {character!r}; escape it as '\\{character}'")
        else:
            self.is_repeatable = character not in "^$|"
            if character == "|":
                group = self.open_groups[-1]
                group.alternatives.append(self._alternative(group))
                group.prefix = group.last = NOTHING
                group.max_depth, group.depth = max(group.max_depth, group.depth), 0
            elif character in "^$":
                (self.end_anchors if character == "$" else self.assertions).append(begin)
                self._append(BEGIN if character == "^" else ASSERTION, first_position)
            else:
                ranges = DOT if character == "." else characters(character)
                self._append(self.automaton.add_character(ranges, begin), first_position)
            self.offset += 1

    def _append(self, part: Fragment, first_position: int, offset: int | None = None) -> None:
        """Append a part to the open group; its positions are those from `first_position` on."""
        group = self.open_groups[-1]
        group.prefix = self._alternative(group)
        group.last, group.last_first_position = part, first_position
        group.last_offset = self.offset if offset is None else offset
        group.last_depth = 0
        group.depth += 1

    def _alternative(self, group: OpenGroup) -> Fragment:
        return self.automaton.concatenate(group.prefix, group.last)

    def _group_fragment(self, group: OpenGroup) -> Fragment:
        parts = [*group.alternatives, self._alternative(group)]
        if len(parts) > 1 and any(part.empty_ways for part in parts):
            self.lazy_offsets.append(group.offset)
        return self.automaton.alternate(parts)

    def _read_group(self) -> None:
        match = _GROUP.match(self.text, self.offset)
        assert match is not None
        if match.end() < len(self.text) and match.group() == "(" and self.text[match.end()] == "?":
            self._fail(
                f"{self.text[self.offset : self.offset + 3]!r} is not supported by both ECMA-262 and Java"
            )
        if match.group(1):
            if match.group(1) in self.names:
                self._fail(f"the group name {match.group(1)!r} is used twice")
            if "_" in match.group(1):
                self._fail(f"the group name {match.group(1)!r} has an underscore, which Java rejects")
            self.names.add(match.group(1))
        number = 0
        if match.group(1) or match.group() == "(":
            self.groups += 1
            number = self.groups
            self.numbers[match.group(1) or ""] = number
        self.open_groups.append(
            OpenGroup(self.offset, match.group(), len(self.automaton.character_sets), number)
        )
        self.is_repeatable = False
        self.offset = match.end()

    def _read_quantifier(self) -> None:
        match = _QUANTIFIER.match(self.text, self.offset)
        if match is None:
            self._fail("unmatched '{'; escape it as '\\{'")
        if not self.is_repeatable:
            self._fail(f"{match.group()!r} has nothing to repeat")
        low, comma, high = match.groups()
        if high and int(low) > int(high):
            self._fail(f"the bounds of {match.group()!r} are reversed")
        self.offset = end = match.end()
        lazy = self.text[self.offset : self.offset + 1] == "?"
        if lazy:
            self.lazy_offsets.append(self.offset)
            self.offset += 1
        elif self.text[self.offset : self.offset + 1] == "+":
            self._fail("ECMA-262 has no possessive '+'")
        self.is_repeatable = False
        group = self.open_groups[-1]
        minimum, maximum = _TIMES.get(match.group()) or (
            int(low),
            int(high) if high else None if comma else int(low),
        )
        part, begin, first_position = group.last, group.last_offset, group.last_first_position
        if (minimum, maximum) != (1, 1):
            self.conditional_spans.append((begin, end, "optional" if maximum == 1 else "repeated"))
        if maximum is None or maximum > 1:
            end_position, stack_depth = (
                len(self.automaton.character_sets),
                group.last_depth and group.last_depth + 1,
            )
            self.quantifiers.append(
                GroupQuantifier(
                    begin, end, lazy, first_position, end_position, maximum, part.empty_ways > 0, stack_depth
                )
            )
        group.last = self.automaton.repeat(part, first_position, minimum, maximum)

    def _read_escape(self, *, in_class: bool) -> Ranges | Fragment:
        """Consume an escape and return the characters that it matches, or its part if it matches no
        character.
        """
        begin = self.offset
        following = self.text[begin + 1 : begin + 2]
        if not following:
            self._fail("a backslash ends the pattern")
        code = _CODE.match(self.text, begin + 1)
        if code is not None:
            self.offset = code.end()
            if following in "pP":
                return category(code.group()[2:-1], negated=following == "P")
            return characters(chr(int(code.group()[1:], 16)))
        self.offset = begin + 2
        if following in CLASSES:
            return CLASSES[following]
        if following in _CONTROLS or following in _ESCAPABLE:
            return characters(_CONTROLS.get(following, following))
        if following in "bB":
            if in_class:
                self._fail(f"'\\{following}' in a class means different things in ECMA-262 and Java", begin)
            self.assertions.append(begin)
            return ASSERTION
        if not in_class and following in "123456789":
            if self.text[self.offset : self.offset + 1].isdecimal():
                self._fail(
                    f"'\\{following}' before a digit refers to different groups in ECMA-262 and Java", begin
                )
            self.references.append((int(following), begin))
            self.assertions.append(begin)
            return self.automaton.add_any_text(begin)
        if not in_class and following == "k":
            name = _NAME.match(self.text, self.offset)
            if name is not None:
                self.references.append((name.group(1), begin))
                self.assertions.append(begin)
                self.offset = name.end()
                return self.automaton.add_any_text(begin)
        reason = "is Java only" if following in _JAVA_ONLY else "means different things in ECMA-262 and Java"
        raise AmbiguousSyntax(f"'\\{following}' {reason} (position {begin + 1})")

    def read_class(self) -> Ranges:
        """Consume a character class and return the characters that it matches."""
        begin = self.offset
        negated = self.text[begin + 1 : begin + 2] == "^"
        self.offset += 2 if negated else 1
        if self.text[self.offset : self.offset + 1] == "]":
            self._fail("an empty class matches nothing in ECMA-262 and is an error in Java", begin)
        ranges: list[Ranges] = []
        has_category = False
        previous: str | None = None
        while self.offset < len(self.text) and self.text[self.offset] != "]":
            if self.text[self.offset] == "[":
                self._fail("'[' in a class opens a nested class in Java; escape it as '\\['")
            if self.text.startswith("&&", self.offset):
                self._fail("'&&' in a class is an intersection in Java; write one '&'")
            is_range = self.text[self.offset] == "-" and previous is not None
            if is_range and self.text[self.offset + 1 : self.offset + 2] not in ("]", ""):
                self.offset += 1
                end, _ = self._read_class_member()
                if not previous or not end:
                    self._fail("a range needs single characters at both ends")
                if previous > end:
                    self._fail(f"the range {previous}-{end} is reversed")
                ranges.append(((ord(previous), ord(end)),))
                previous = None
                continue
            has_category |= self.text[self.offset : self.offset + 2] in ("\\p", "\\P")
            previous, matched = self._read_class_member()
            ranges.append(matched)
        if self.offset >= len(self.text):
            self._fail("'[' is not closed", begin)
        self.offset += 1
        if not negated:
            return union(*ranges)
        # A category is overestimated, so its complement must be overestimated too.
        return union(complement(union(*ranges)), NON_ASCII if has_category else ())

    def _read_class_member(self) -> tuple[str, Ranges]:
        """Consume a member of a class; return its character, or "" for a set, and the characters that it
        matches.
        """
        begin = self.offset
        character = self.text[begin]
        if character != "\\":
            if character == "[":
                self._fail("'[' in a class opens a nested class in Java; escape it as '\\['")
            self.offset += 1
            return character, characters(character)
        ranges = self._read_escape(in_class=True)
        assert not isinstance(ranges, Fragment)
        is_set = self.text[begin + 1] in "dDwWsSpP"
        return "" if is_set else chr(ranges[0][0]), ranges

    def _fail(self, reason: str, position: int | None = None) -> NoReturn:
        raise AmbiguousSyntax(f"{reason} (position {(self.offset if position is None else position) + 1})")


# Running time of a backtracking matcher, from the ambiguity of the automaton.
#
# Java tries one way through a pattern after another. If the same text has many ways, a text that does not
# match takes long: exponentially, if a loop has two ways for one text, and polynomially in the text's length,
# if consecutive loops can split a text between them.
#
# Sources: Weber and Seidl, On the degree of ambiguity of finite automata (1991); Weideman and others,
# Analyzing matching time behavior of backtracking regular expression matchers by using ambiguity (2016).

# Step limit for a text of `TEXT_LENGTH` characters: the square of its length, and a little more.
MAX_STEPS = 2 * TEXT_LENGTH * TEXT_LENGTH
# Larger numbers of ways are capped.
_WAYS_CAP = TEXT_LENGTH**3

Transitions = list[Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class _Loop:
    """Positions that reach each other, the characters that they match, and how many they may consume."""

    positions: frozenset[int]
    character_mask: int
    max_consumed: int


class _Graph:
    """The automaton with a start position, which loops if the search tries every position of a text."""

    def __init__(self, automaton: Automaton, fragment: Fragment) -> None:
        self.automaton = automaton
        self.fragment = fragment
        self.start = len(automaton.character_sets)
        self.character_masks = bit_masks([*automaton.character_sets, ANY])
        self.max_consumed = [*automaton.max_consumed, automaton.text_length]
        start_transitions = dict(fragment.first) if fragment.anchored else {**fragment.first, self.start: 1}
        self.transitions: Transitions = [*automaton.transitions, start_transitions]

    def offsets(self, *positions: int) -> list[int]:
        return [self.automaton.offsets[position] for position in positions if position < self.start]

    def loops(self, transitions: Transitions) -> list[_Loop]:
        """Return the loops, each before those that it leads to."""
        loops = [
            _Loop(
                frozenset(group),
                reduce(or_, (self.character_masks[position] for position in group)),
                max(self.max_consumed[position] for position in group),
            )
            for group in _components(transitions)
            if len(group) > 1 or group[0] in transitions[group[0]]
        ]
        return loops[::-1]

    def reject_ambiguous_loop(self, loop: _Loop) -> None:
        """Raise TooAmbiguous if two ways through the loop for the same text meet again."""
        inner = {
            position: [target for target in self.transitions[position] if target in loop.positions]
            for position in loop.positions
        }
        visited: set[tuple[int, int]] = set()
        pending = [(position, position) for position in loop.positions]
        while pending:
            first, second = pending.pop()
            self.automaton.spend(len(inner[first]) * len(inner[second]))
            if first == second and any(self.transitions[first][target] > 1 for target in inner[first]):
                raise self._exponential(first)
            if first != second and not set(inner[first]).isdisjoint(inner[second]):
                raise self._exponential(first, second)
            for left, right in product(inner[first], inner[second]):
                pair = (min(left, right), max(left, right))
                if (
                    left != right
                    and pair not in visited
                    and self.character_masks[left] & self.character_masks[right]
                ):
                    visited.add(pair)
                    pending.append(pair)

    def _exponential(self, *positions: int) -> TooAmbiguous:
        return TooAmbiguous(
            "the repetition can match the same text in exponentially many ways", *self.offsets(*positions)
        )

    def step_factors(self) -> tuple[int, int, int, tuple[_Loop, ...]]:
        """Return the factors of a search's number of steps, and the loops that split the text between them.

        The factors are the text's length, the ways to split it between loops, and the ways outside of loops.
        Raises TooAmbiguous.
        """
        for loop in self.loops(self.transitions):
            self.reject_ambiguous_loop(loop)
        # The search ends where the pattern has ended.
        transitions: Transitions = [
            {} if position in self.fragment.unconditional_ends else targets
            for position, targets in enumerate(self.transitions)
        ]
        loops = self.loops(transitions)
        splits, splitting_loops = self._split_ways(transitions, loops)
        return (
            max((loop.max_consumed for loop in loops), default=1),
            splits,
            self._loop_free_ways(transitions),
            splitting_loops,
        )

    def max_steps(self) -> int:
        """Return the most steps of a search in a text of the automaton's length.

        Raises TooAmbiguous if they grow exponentially with the text.
        """
        length, splits, loop_free_ways, _ = self.step_factors()
        return length * splits * loop_free_ways

    def reject_slow(self) -> None:
        """Raise TooAmbiguous if a search may take too long on some text."""
        length, splits, loop_free_ways, splitting_loops = self.step_factors()
        if length * splits * loop_free_ways <= MAX_STEPS:
            return
        if splits == 1:
            raise TooAmbiguous(f"there are {min(loop_free_ways, _WAYS_CAP):,} ways to match it")
        raise TooAmbiguous(
            "its repetitions can split the same text in too many ways",
            *(spot for loop in splitting_loops for spot in self.offsets(min(loop.positions))),
        )

    def _split_ways(self, transitions: Transitions, loops: list[_Loop]) -> tuple[int, tuple[_Loop, ...]]:
        """Return the largest number of ways along one path, and its loops."""
        best: list[tuple[int, tuple[_Loop, ...]]] = [(1, ())] * len(loops)
        for index, loop in enumerate(loops):
            reachable = self._reachable(transitions, loop)
            splits, path = best[index]
            for other_index in range(index + 1, len(loops)):
                other = loops[other_index]
                self.automaton.spend(1)
                if reachable.isdisjoint(other.positions):
                    continue
                candidate = (splits, path)
                if loop.character_mask & other.character_mask and self._can_split_text(
                    transitions, loop, other
                ):
                    candidate = (
                        splits * min(loop.max_consumed, other.max_consumed),
                        (*(path or (loop,)), other),
                    )
                best[other_index] = max(best[other_index], candidate, key=lambda option: option[0])
        return max(best, key=lambda option: option[0], default=(1, ()))

    def _reachable(self, transitions: Transitions, loop: _Loop) -> set[int]:
        visited, pending = set(loop.positions), list(loop.positions)
        while pending:
            self.automaton.spend(1)
            for target in transitions[pending.pop()]:
                if target not in visited:
                    visited.add(target)
                    pending.append(target)
        return visited

    def _can_split_text(self, transitions: Transitions, loop: _Loop, other: _Loop) -> bool:
        """Return True if one text leads around both loops, and from the first into the second."""
        for begin, end in product(loop.positions, other.positions):
            visited: set[tuple[int, int, int]] = set()
            pending = [(begin, begin, end)]
            while pending:
                left, middle, right = pending.pop()
                left_targets = [target for target in transitions[left] if target in loop.positions]
                right_targets = [target for target in transitions[right] if target in other.positions]
                self.automaton.spend(len(left_targets) * len(right_targets) * len(transitions[middle]))
                for state in product(left_targets, transitions[middle], right_targets):
                    if (
                        state in visited
                        or not self.character_masks[state[0]]
                        & self.character_masks[state[1]]
                        & self.character_masks[state[2]]
                    ):
                        continue
                    if state == (begin, end, end):
                        return True
                    visited.add(state)
                    pending.append(state)
        return False

    def _loop_free_ways(self, transitions: Transitions) -> int:
        """Return the number of ways outside of loops: at most the product of the choices along one path."""
        ways_from: dict[int, int] = {}
        for group in _components(transitions):
            inside = set(group)
            choices = max(self._choices(transitions[position], inside) for position in group)
            ways_after = max(
                (
                    ways_from[target]
                    for position in group
                    for target in transitions[position]
                    if target not in inside
                ),
                default=1,
            )
            ways_from.update(dict.fromkeys(group, min(_WAYS_CAP, max(1, choices) * ways_after)))
        return ways_from[self.start]

    def _choices(self, targets: Mapping[int, int], inside: set[int]) -> int:
        """Return the largest number of ways out for one character."""
        # Masks of the characters that have at least one way, two, three, and so on.
        levels: list[int] = []
        for target, path_count in targets.items():
            for _ in range(0 if target in inside else path_count):
                mask = self.character_masks[target]
                for index, level in enumerate(levels):
                    levels[index], mask = level | mask, level & mask
                self.automaton.spend(len(levels))
                if mask:
                    levels.append(mask)
        return len(levels)


def _components(transitions: Transitions) -> Iterator[list[int]]:
    """Yield the strongly connected components in reverse topological order (Tarjan)."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    waiting: set[int] = set()
    for root in range(len(transitions)):
        pending = [] if root in number else [(root, iter(transitions[root]))]
        while pending:
            position, targets = pending[-1]
            if position not in number:
                number[position] = low[position] = len(number)
                stack.append(position)
                waiting.add(position)
            for target in targets:
                if target not in number:
                    pending.append((target, iter(transitions[target])))
                    break
                if target in waiting:
                    low[position] = min(low[position], low[target])
            else:
                pending.pop()
                if pending:
                    low[pending[-1][0]] = min(low[pending[-1][0]], low[position])
                if low[position] == number[position]:
                    group: list[int] = []
                    while not group or group[-1] != position:
                        group.append(stack.pop())
                        waiting.discard(group[-1])
                    yield group


# Recursion depth of Java's matcher, and where possessive quantifiers avoid it.
#
# `java.util.regex` recurses for each iteration of a repeated group, so that a text of a few thousand
# characters may exhaust the stack, which ends the JVM of a Spark task. Possessive repetitions do not recurse.
# They are equivalent if each character of a text fits only one position of the pattern: then no iteration
# could match in another way, and backtracking into it never helps.

# Contains no quotes or other marks of values, at which Spark's error messages are cut.
TOO_LONG = (
    "a text is too long for a pattern with a repeated group, which Java matches recursively;"
    " let each repetition begin or end with a character that nothing else in it matches"
)
# Java's stack is a mebibyte for a thread; a call takes up to 145 bytes of it before it is compiled.
_STACK_BYTES, _CALL_BYTES = 700_000, 145
# If characters of one and two UTF-16 units alternate, Java recurses for a counted set, too.
_MAX_COUNTED, _MAX_ONE_UNIT, _LONGEST_COUNTED = 2_000, 0xFFFF, 5_000


@dataclass(frozen=True, slots=True)
class Recursion:
    """Recursion of a search.

    Attributes:
        possessive: Ends of the quantifiers that may be made possessive, and whether they are lazy.
        max_length: Maximum number of characters of a text, or None if there is no limit.
    """

    possessive: Mapping[int, bool]
    max_length: int | None


_IGNORE_CASE = "(?i)"


@lru_cache(1024)
def to_spark_pattern(pattern: str) -> tuple[str, int | None]:
    """Return a Java pattern with possessive repetitions where possible, and the maximum length of a text.

    Lazy repetitions are kept, because they change the match. The pattern may begin with `(?i)`.
    """
    if pattern.startswith(_IGNORE_CASE):
        return pattern, analyze_recursion(
            pattern.removeprefix(_IGNORE_CASE), may_be_possessive=False
        ).max_length
    usage = analyze_recursion(pattern, include_lazy=False)
    result = pattern
    for end in sorted(usage.possessive, reverse=True):
        result = f"{result[:end]}+{result[end:]}"
    return result, usage.max_length


@lru_cache(1024)
def analyze_recursion(
    pattern: str, *, may_be_possessive: bool = True, include_lazy: bool = True
) -> Recursion:
    """Analyze a valid pattern for a search that only needs to know whether it matches."""
    scan = PatternParser(pattern, 0)
    fragment = scan.parse()
    groups = [quantifier for quantifier in scan.quantifiers if quantifier.stack_depth]
    # Before a `^`, backtracking into iterations could lead to a match.
    is_allowed = may_be_possessive and not [
        offset for offset in scan.assertions if offset or pattern[0] != "^"
    ]
    candidates = [quantifier for quantifier in groups if is_allowed and (include_lazy or not quantifier.lazy)]
    possessive = [
        quantifier for quantifier in candidates if _is_deterministic(scan, quantifier, fragment.first)
    ]
    recursive = [quantifier for quantifier in groups if quantifier not in possessive]
    counted = [
        quantifier
        for quantifier in scan.quantifiers
        if not quantifier.stack_depth and _mixes_unit_lengths(scan.automaton, quantifier)
    ]
    lengths = [_LONGEST_COUNTED] if counted else []
    if recursive:
        depth = sum(quantifier.stack_depth for quantifier in recursive)
        is_unbounded = any(quantifier.maximum is None for quantifier in recursive)
        calls = 1
        for quantifier in recursive:
            calls *= (quantifier.maximum or 1) * quantifier.stack_depth
        if is_unbounded or calls * _CALL_BYTES > _STACK_BYTES:
            lengths.append(_STACK_BYTES // (_CALL_BYTES * depth))
    return Recursion(
        {quantifier.end: quantifier.lazy for quantifier in possessive}, min(lengths, default=None)
    )


def _mixes_unit_lengths(automaton: Automaton, quantifier: GroupQuantifier) -> bool:
    highest = max(
        (
            end
            for ranges in automaton.character_sets[quantifier.first_position : quantifier.end_position]
            for _, end in ranges
        ),
        default=0,
    )
    return quantifier.maximum is not None and quantifier.maximum > _MAX_COUNTED and highest > _MAX_ONE_UNIT


def _is_deterministic(scan: PatternParser, quantifier: GroupQuantifier, first: Mapping[int, int]) -> bool:
    """Return True if each character leaves only one way into an iteration, within it, and out of it."""
    inside = range(quantifier.first_position, quantifier.end_position)
    ambiguous_offsets = [*scan.lazy_offsets, *scan.end_anchors]
    if quantifier.may_be_empty or any(
        quantifier.begin <= offset < quantifier.end for offset in ambiguous_offsets
    ):
        return False
    transitions: list[Mapping[int, int]] = [
        targets
        for position, targets in enumerate(scan.automaton.transitions)
        if position in inside or any(target in inside for target in targets)
    ]
    transitions += [first] if any(target in inside for target in first) else []
    character_sets = scan.automaton.character_sets
    return all(
        all(number == 1 for number in targets.values())
        and _are_disjoint(character_sets[target] for target in targets)
        for targets in transitions
    )


def _are_disjoint(sets: Iterable[Ranges]) -> bool:
    """Return True if no character is in two of the sets."""
    ranges = sorted(code_range for character_set in sets for code_range in character_set)
    return all(left[1] < right[0] for left, right in pairwise(ranges))


# Public checks: a pattern must mean the same in ECMA-262 and Java, and must be fast to match.
#
# ODCS says that `pattern` is ECMA-262; Spark matches with Java's `java.util.regex`. Syntax that only one of
# them supports, or that they interpret differently, is rejected, and so are patterns that may match slowly
# (see `_Graph`).

# Longer ones are not maintainable, and could hold numbers too long to parse.
MAX_CHARACTERS = 4_000

_PORTABLE_HINT = "Use only syntax that means the same in ECMA-262 and Java."
_AMBIGUOUS_HINT = (
    "Let each repetition begin or end with a character that nothing else in it matches, e.g."
    " ^[a-z]+(-[a-z]+)*$, and let adjacent parts match different characters: [^@]+@[^@]+, not .+@.+."
)


@lru_cache(1024)
def pattern_problem(pattern: str) -> ValueProblem | None:
    """Return the problem of a pattern with its position, or None if it may be used.

    A search for `search_pattern(pattern)` takes Java at most about a second in a text of 20,000 characters.
    """
    if len(pattern) > MAX_CHARACTERS:
        return ValueProblem(
            "PATTERN_LONG",
            f"it has {len(pattern):,} characters, more than {MAX_CHARACTERS:,}",
            _PORTABLE_HINT,
        )
    problem = _syntax_problem(pattern)
    if problem is not None:
        return problem
    start, end = _leading_repetition(pattern)
    ambiguity = find_ambiguity(search_pattern(pattern))
    if ambiguity is None:
        return None
    positions = ", ".join(
        str(offset + 1 + (end - start if offset >= start else 0)) for offset in ambiguity.offsets
    )
    suffix = f" (position {positions})" if positions else ""
    return ValueProblem("PATTERN_AMBIGUOUS", f"{ambiguity}{suffix}", _AMBIGUOUS_HINT)


@lru_cache(1024)
def sql_pattern_problem(pattern: str) -> ValueProblem | None:
    """Return the problem of a regular expression in SQL, which is passed to Java as is; it may begin with
    `(?i)`.
    """
    if len(pattern) > MAX_CHARACTERS:
        return pattern_problem(pattern)
    text = pattern.removeprefix(_IGNORE_CASE)
    problem = _syntax_problem(text)
    ambiguity = None if problem else find_ambiguity(text, ignore_case=text != pattern)
    return ValueProblem("PATTERN_AMBIGUOUS", str(ambiguity), _AMBIGUOUS_HINT) if ambiguity else problem


def _syntax_problem(pattern: str) -> ValueProblem | None:
    """Return why a pattern cannot be parsed, or only with too much work."""
    try:
        PatternParser(pattern, 0).parse()
    except AmbiguousSyntax as error:
        return ValueProblem("PATTERN_SYNTAX", str(error), _PORTABLE_HINT)
    except TooAmbiguous as error:
        return ValueProblem("PATTERN_AMBIGUOUS", str(error), _AMBIGUOUS_HINT)
    return None


# Repetitions as copies, or as loops: both overestimate the number of ways, but differently.
_COPY_LIMITS = (64, 0)


def find_ambiguity(pattern: str, *, ignore_case: bool = False) -> TooAmbiguous | None:
    """Return why a search for a syntactically valid pattern may take too long, or None."""
    reasons: list[TooAmbiguous] = []
    for max_copied in _COPY_LIMITS:
        try:
            _graph(pattern, max_copied, TEXT_LENGTH, ignore_case).reject_slow()
        except TooAmbiguous as error:
            reasons.append(error)
        else:
            return None
    return reasons[0]


@lru_cache(4096)
def max_search_steps(pattern: str, length: int) -> int | None:
    """Return the most steps that a matcher takes to search a text of `length` characters for a pattern.

    None if they grow exponentially. The pattern must have passed `sql_pattern_problem`.
    """
    text = pattern.removeprefix(_IGNORE_CASE)
    bounds: list[int] = []
    for max_copied in _COPY_LIMITS:
        with suppress(TooAmbiguous):
            bounds.append(_graph(text, max_copied, length, ignore_case=text != pattern).max_steps())
    return min(bounds, default=None)


def _graph(pattern: str, max_copied: int, length: int, ignore_case: bool) -> _Graph:
    scan = PatternParser(pattern, max_copied, length)
    fragment = scan.parse()
    if ignore_case:
        scan.automaton.character_sets = [with_both_cases(ranges) for ranges in scan.automaton.character_sets]
    return _Graph(scan.automaton, fragment)


_ATOM = re.compile(r"(?:\.|\\[dDwWsS]|\[(?:\\.|[^\]\\])*\])(?P<more>[*+])\??")
_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def search_pattern(pattern: str) -> str:
    """Return a pattern that is found in the same texts, without a leading repetition.

    A search tries every position of a text anyway: with a leading `.*` it would try every position from each.
    """
    start, end = _leading_repetition(pattern)
    return pattern[:start] + pattern[end:]


def _leading_repetition(pattern: str) -> tuple[int, int]:
    """Return the span of a leading repetition that a search does not need."""
    begin = _ATOM.match(pattern)
    if begin is None:
        return 0, 0
    depth = 0
    for token in _TOKEN.findall(pattern):
        depth += (token == "(") - (token == ")")
        if token == "|" and not depth:
            return 0, 0
    return begin.start("more") if begin["more"] == "+" else 0, begin.end()


def parse_class(text: str) -> Ranges | None:
    """Return the characters of a class such as `[a-z]` of a valid pattern, or None if it has a Unicode
    category.
    """
    return None if r"\p" in text or r"\P" in text else PatternParser(text, 0).read_class()
