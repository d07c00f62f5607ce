"""A pattern's text, as far as ECMA-262 and Java read it alike, as an automaton.

Sources: ECMA-262 section 22.2.1 (with the `u` flag) and the class comment of `java.util.regex.Pattern`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from dq.contracts.patterns import code_points
from dq.contracts.patterns.automaton import ASSERTION, BEGIN, NOTHING, Automaton, Fragment
from dq.contracts.patterns.code_points import Ranges

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


@dataclass(slots=True)
class _Open:
    """A group that is being read: its alternatives, what stands in this one, and the last piece of it."""

    at: int
    text: str
    since: int
    alternatives: list[Fragment] = field(default_factory=list)
    before: Fragment = NOTHING
    last: Fragment = NOTHING
    last_since: int = 0


class Scan:
    """A pattern read from left to right: linear in its length, and without recursion."""

    def __init__(self, pattern: str, most_copied: int) -> None:
        self.text = pattern
        self.at = 0
        self.automaton = Automaton(most_copied)
        self.open = [_Open(0, "", 0)]
        self.groups = 0
        self.names: set[str] = set()
        self.used: list[tuple[int | str, int]] = []
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
        return self._closed(self.open[0])

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
            self._put(self.automaton.looked(part) if looks else part, group.since)
            self.repeatable = not looks
            self.at += 1
        elif character in "*+?{":
            self._quantifier()
        elif character in "]}":
            self._refuse(f"{character!r} stands alone; escape it as '\\{character}'")
        else:
            self.repeatable = character not in "^$|"
            if character == "|":
                self.open[-1].alternatives.append(self._ended(self.open[-1]))
                self.open[-1].before = self.open[-1].last = NOTHING
            elif character in "^$":
                self._put(BEGIN if character == "^" else ASSERTION, since)
            else:
                read = code_points.DOT if character == "." else code_points.signs(character)
                self._put(self.automaton.read(read, begin), since)
            self.at += 1

    def _put(self, part: Fragment, since: int) -> None:
        """The next piece of the group that is open; its positions are those since a number."""
        group = self.open[-1]
        group.before = self._ended(group)
        group.last, group.last_since = part, since

    def _ended(self, group: _Open) -> Fragment:
        return self.automaton.then(group.before, group.last)

    def _closed(self, group: _Open) -> Fragment:
        return self.automaton.either([*group.alternatives, self._ended(group)])

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
        if match.group(1) or match.group() == "(":
            self.groups += 1
        self.open.append(_Open(self.at, match.group(), len(self.automaton.letters)))
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
        self.at = match.end()
        if self.text[self.at : self.at + 1] == "?":
            self.at += 1
        elif self.text[self.at : self.at + 1] == "+":
            self._refuse("a possessive '+' is not known to ECMA-262")
        self.repeatable = False
        group = self.open[-1]
        least, most = _TIMES.get(match.group()) or (
            int(low),
            int(high) if high else None if comma else int(low),
        )
        group.last = self.automaton.repeated(group.last, group.last_since, least, most)

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
                return code_points.category(code.group()[2:-1], without=following == "P")
            return code_points.signs(chr(int(code.group()[1:], 16)))
        self.at = begin + 2
        if following in code_points.CLASSES:
            return code_points.CLASSES[following]
        if following in _CONTROLS or following in _SIGNS:
            return code_points.signs(_CONTROLS.get(following, following))
        if following in "bB":
            if in_class:
                self._refuse(f"'\\{following}' in a class is read differently by the two", begin)
            return ASSERTION
        if not in_class and following in "123456789":
            self.used.append((int(following), begin))
            return self.automaton.anything(begin)
        if not in_class and following == "k":
            name = _NAME.match(self.text, self.at)
            if name is not None:
                self.used.append((name.group(1), begin))
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
            return code_points.joined(*found)
        # Of a category, more is told than there is; without it, more has to be told too.
        return code_points.joined(
            code_points.others(code_points.joined(*found)), code_points.BEYOND if loose else ()
        )

    def _member(self) -> tuple[str, Ranges]:
        """Steps over one member of a class; its character, empty for a set of them, and what it matches."""
        begin = self.at
        character = self.text[begin]
        if character != "\\":
            if character == "[":
                self._refuse("'[' in a class opens another one in Java; escape it as '\\['")
            self.at += 1
            return character, code_points.signs(character)
        found = self._escape(in_class=True)
        assert not isinstance(found, Fragment)
        is_set = self.text[begin + 1] in "dDwWsSpP"
        return "" if is_set else chr(found[0][0]), found

    def _refuse(self, reason: str, position: int | None = None) -> NoReturn:
        raise Misread(f"{reason} (position {(self.at if position is None else position) + 1})")
