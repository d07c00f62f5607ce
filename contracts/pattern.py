"""Which regular expressions a contract may hold: those that ECMA-262 and Java read alike.

ODCS says that `pattern` is ECMA-262; Spark matches with Java's `java.util.regex`. What only one of them
knows, or what they read differently, is refused. Sources: ECMA-262 section 22.2.1 (with the `u` flag) and
the class comment of `java.util.regex.Pattern`.
"""

from __future__ import annotations

import re

# Longer ones are programs; numbers in them could not be read either.
MAX_CHARACTERS = 4_000

_QUANTIFIER = re.compile(r"[*+?]|\{(\d+)(?:(,)(\d*))?\}")
_GROUP = re.compile(r"\((?:\?(?::|=|!|<=|<!|<([A-Za-z_][A-Za-z0-9_]*)>))?")
_LOOK = ("(?=", "(?!", "(?<=", "(?<!")
# What may follow a backslash: classes, boundaries, control letters, and signs that mean something else bare.
_LETTERS = frozenset("dDwWsSbBnrtf")
_SIGNS = frozenset("^$\\.*+?()[]{}|/-")
_CODE = re.compile(r"x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[pP]\{(?:L|Lu|Ll|Lt|Lm|Lo|M|Mn|N|Nd|P|S|Z|Zs|C)\}")
_JAVA_ONLY = "AZzGQEhHRXvVae"


def refused(pattern: str) -> str | None:
    """Why Java and ECMA-262 do not both read a pattern, as a clause with its position; None if they do."""
    if len(pattern) > MAX_CHARACTERS:
        return f"it has {len(pattern):,} characters, more than {MAX_CHARACTERS:,}"
    try:
        _Scan(pattern).run()
    except _Refused as error:
        return str(error)
    return None


class _Refused(ValueError):
    pass


class _Scan:
    """One pass from left to right: linear in the pattern's length, and without recursion."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.open: list[tuple[int, bool]] = []
        self.groups = 0
        self.names: set[str] = set()
        self.used: list[tuple[int | str, int]] = []
        # Whether what stands before may be repeated.
        self.repeatable = False

    def run(self) -> None:
        while self.at < len(self.text):
            self._one(self.text[self.at])
        if self.open:
            raise _Refused(f"the group opened at position {self.open[-1][0] + 1} is not closed")
        for name, position in self.used:
            if (name > self.groups) if isinstance(name, int) else (name not in self.names):
                raise _Refused(f"there is no group {name!r}, which position {position + 1} refers to")

    def _one(self, character: str) -> None:
        if character == "\\":
            self.repeatable = self._escape(in_class=False)
        elif character == "[":
            self._class()
            self.repeatable = True
        elif character == "(":
            self._group()
        elif character == ")":
            if not self.open:
                self._refuse("')' closes nothing")
            _, self.repeatable = self.open.pop()
            self.at += 1
        elif character in "*+?{":
            self._quantifier()
        elif character in "]}":
            self._refuse(f"{character!r} stands alone; escape it as '\\{character}'")
        else:
            self.repeatable = character not in "^$|"
            self.at += 1

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
        self.open.append((self.at, match.group() not in _LOOK))
        self.repeatable = False
        self.at = match.end()

    def _quantifier(self) -> None:
        match = _QUANTIFIER.match(self.text, self.at)
        if match is None:
            self._refuse("'{' stands alone; escape it as '\\{'")
            return
        if not self.repeatable:
            self._refuse(f"{match.group()!r} repeats nothing")
        low, _, high = match.groups()
        if high and int(low) > int(high):
            self._refuse(f"{match.group()!r} counts down")
        self.at = match.end()
        if self.text[self.at : self.at + 1] == "?":
            self.at += 1
        elif self.text[self.at : self.at + 1] == "+":
            self._refuse("a possessive '+' is not known to ECMA-262")
        self.repeatable = False

    def _escape(self, *, in_class: bool) -> bool:
        """Steps over an escape; whether it may be repeated."""
        begin = self.at
        following = self.text[begin + 1 : begin + 2]
        if not following:
            self._refuse("a backslash ends the pattern")
        code = _CODE.match(self.text, begin + 1)
        if code is not None:
            self.at = code.end()
            return True
        self.at = begin + 2
        if following in _LETTERS or following in _SIGNS:
            if in_class and following in "bB":
                self._refuse(f"'\\{following}' in a class is read differently by the two", begin)
            return following not in "bB"
        if not in_class and following in "123456789":
            self.used.append((int(following), begin))
            return True
        if not in_class and following == "k":
            name = re.compile(r"<([A-Za-z][A-Za-z0-9]*)>").match(self.text, self.at)
            if name is not None:
                self.used.append((name.group(1), begin))
                self.at = name.end()
                return True
        known = "Java" if following in _JAVA_ONLY else "both"
        only = "is known to Java alone" if known == "Java" else "does not mean the same to both"
        self._refuse(f"'\\{following}' {only}", begin)
        return False

    def _class(self) -> None:
        begin = self.at
        self.at += 2 if self.text[begin + 1 : begin + 2] == "^" else 1
        if self.text[self.at : self.at + 1] == "]":
            self._refuse("an empty class matches nothing in one and is an error in the other", begin)
        last: str | None = None
        while self.at < len(self.text) and self.text[self.at] != "]":
            if self.text[self.at] == "[":
                self._refuse("'[' in a class opens another one in Java; escape it as '\\['")
            if self.text.startswith("&&", self.at):
                self._refuse("'&&' in a class is an intersection in Java; write one '&'")
            ranged = self.text[self.at] == "-" and last is not None
            if ranged and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                end = self._member()
                if not last or not end:
                    self._refuse("a range ends in a class of characters")
                elif last > end:
                    self._refuse(f"the range {last}-{end} counts down")
                last = None
                continue
            last = self._member()
        if self.at >= len(self.text):
            self._refuse("'[' is not closed", begin)
        self.at += 1

    def _member(self) -> str:
        """Steps over one member of a class; the character it stands for, or empty for a set of them."""
        begin = self.at
        if self.text[begin] != "\\":
            if self.text[begin] == "[":
                self._refuse("'[' in a class opens another one in Java; escape it as '\\['")
            self.at += 1
            return self.text[begin]
        self._escape(in_class=True)
        written = self.text[begin + 1 : self.at]
        if written[0] in "xu":
            return chr(int(written[1:], 16))
        if written in _LETTERS or written[0] in "pP":
            return {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}.get(written, "")
        return written

    def _refuse(self, reason: str, position: int | None = None) -> None:
        raise _Refused(f"{reason} (position {(self.at if position is None else position) + 1})")
