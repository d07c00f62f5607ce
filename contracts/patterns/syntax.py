"""A pattern's text, as far as ECMA-262 and Java read it alike, as an automaton.

Sources: ECMA-262 section 22.2.1 (with the `u` flag) and the class comment of `java.util.regex.Pattern`.
"""

from __future__ import annotations

import re
from typing import NoReturn

from dq.contracts.patterns import code_points
from dq.contracts.patterns.automaton import ASSERTION, BEGIN, NOTHING, TEXT, Automaton, Fragment
from dq.contracts.patterns.code_points import Ranges
from dq.contracts.patterns.groups import GroupTurns, OpenGroup

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
                read = code_points.DOT if character == "." else code_points.signs(character)
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
