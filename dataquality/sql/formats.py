"""Formats of texts: named ones, date patterns of the JDK, and ECMA-262 patterns in Java."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from dq.contracts.patterns import automaton
from dq.contracts.patterns import pattern as shared
from dq.contracts.patterns.automaton import Ranges
from dq.contracts.patterns.pattern import recursion
from dq.dataquality.model.predicate import (
    And,
    Compare,
    DayShape,
    HasDay,
    IsNull,
    Matches,
    Not,
    Predicate,
    any_of,
)
from dq.dataquality.model.term import Length, Path, Remainder
from dq.dataquality.model.threshold import Unusable

# A date pattern of the JDK's DateTimeFormatter as a predicate on texts.
#
# Spark's own parsing (`to_timestamp`) depends on the session: with `spark.sql.legacy.timeParserPolicy` at
# its
# default of Spark 3.5 a text that only the old parser reads stops the query, with try_ or without. So the
# form
# is a regex, and whether the day exists is asked of TRY_CAST, which knows no policy.
#
# ODCS's own examples are no patterns of the JDK: `yyyy-MM-ddTHH:mm:ssZ` for `2024-03-10T14:22:35Z`. They
# are
# read as they are meant: a bare `T` stands for itself, and `Z` for an offset with or without colon, or `Z`.
# Source: https://docs.oracle.com/javase/8/docs/api/java/time/format/DateTimeFormatter.html

_LONG = "January|February|March|April|May|June|July|August|September|October|November|December"
_SHORT = [month[:3] for month in _LONG.split("|")]
_HOURS = "(?:0[0-9]|1[0-9]|2[0-3])"
_SIXTY = "[0-5][0-9]"
_PLUS = f"[+-]{_HOURS}"

# Letters as often as they stand -> the regex. Names of months are English, as Spark reads them.
_FIELDS: dict[str, str] = {
    **dict.fromkeys(("yyyy", "uuuu"), "[0-9]{4}"),
    **dict.fromkeys(("yy", "uu"), "[0-9]{2}"),
    "MM": "0[1-9]|1[0-2]",
    **dict.fromkeys(("M", "L"), "1[0-2]|0?[1-9]"),
    "MMM": "|".join(_SHORT),
    "MMMM": _LONG,
    "dd": "0[1-9]|[12][0-9]|3[01]",
    "d": "[12][0-9]|3[01]|0?[1-9]",
    "HH": _HOURS,
    "H": "1[0-9]|2[0-3]|0?[0-9]",
    "hh": "0[1-9]|1[0-2]",
    "h": "1[0-2]|0?[1-9]",
    "a": "AM|PM",
    "mm": _SIXTY,
    "m": "[1-5][0-9]|0?[0-9]",
    "ss": _SIXTY,
    "s": "[1-5][0-9]|0?[0-9]",
    "X": f"Z|{_PLUS}(?:{_SIXTY})?",
    "XX": f"Z|{_PLUS}{_SIXTY}",
    "XXX": f"Z|{_PLUS}:{_SIXTY}",
    "x": f"{_PLUS}(?:{_SIXTY})?",
    "xx": f"{_PLUS}{_SIXTY}",
    "xxx": f"{_PLUS}:{_SIXTY}",
    **dict.fromkeys(("Z", "ZZ", "ZZZ"), f"Z|{_PLUS}:?{_SIXTY}"),
}
# What is mistaken for something else.
_MEANT = {
    "Y": "is the year of a week; write yyyy",
    "D": "is the day of the year; write dd",
}
_TOKEN = re.compile(r"(?P<letters>([A-Za-z])\2*)|'(?P<quoted>(?:[^']|'')*)'|(?P<sign>.)", re.DOTALL)


def unfit(pattern: str) -> Callable[[Path], Predicate]:
    """From a value to a predicate that is true for a text that the pattern does not read.

    Raises Unusable, with the reason, for a pattern that cannot be tested.
    """
    form, days = _read(pattern)
    shape = rf"\A{form}\z"
    if not days:
        return lambda value: Not(Matches(value, shape))
    named = "".join(_SHORT) if len(days["M"][1]) > 2 else ""
    # The JDK reads two digits as a year from 2000 on.
    century = "20" if len(days["y"][1]) == 2 else ""
    known = DayShape(shape, days["y"][0], days["M"][0], days["d"][0], century, named)
    # NULL has no form, and no day either.
    return lambda value: And((Not(IsNull(value)), Not(HasDay(value, known))))


_Groups = dict[str, tuple[int, str]]


def _read(pattern: str) -> tuple[str, _Groups]:
    """The pattern as a regex; and, where it has a whole day, the groups of its parts with their letters."""
    made, depth, groups = "", 0, dict[str, tuple[int, str]]()
    count = 0
    for token in _TOKEN.finditer(pattern):
        letters, sign = token["letters"], token["sign"]
        if letters and letters != "T":
            count += 1
            made += f"({_field(pattern, letters)})"
            part = {"u": "y", "L": "M"}.get(letters[0], letters[0])
            if part in "yMd" and depth == 0:
                groups[part] = (count, letters)
        elif sign in ("[", "]"):
            depth += 1 if sign == "[" else -1
            made += "(?:" if sign == "[" else ")?"
        elif sign is not None and sign in "#{}'":
            raise Unusable(f"format {pattern!r}: {sign!r} cannot stand there; quote it")
        else:
            # Two quotes are one, inside of a quoted text and outside.
            text = letters or sign or (token["quoted"].replace("''", "'") or "'")
            made += re.sub(r"([^A-Za-z0-9_ ])", r"\\\1", text) if text.isascii() else text
        if depth < 0:
            break
    if depth != 0:
        raise Unusable(f"format {pattern!r}: its brackets do not match")
    if not count:
        raise Unusable(f"format {pattern!r}: it has no field of a date or time")
    return made, groups if set(groups) == set("yMd") else {}


def _field(pattern: str, letters: str) -> str:
    if letters in _FIELDS:
        return _FIELDS[letters]
    if letters[0] == "S" and len(letters) <= 9:
        return f"[0-9]{{{len(letters)}}}"
    reason = _MEANT.get(letters[0], "is not a field that can be tested")
    raise Unusable(f"format {pattern!r}: {letters!r} {reason}")


# An ECMA-262 pattern as the Java pattern that finds the same texts.

_WORD = (r"(?<=\w)", r"(?<!\w)", r"(?=\w)", r"(?!\w)")
# Java's `$` also stands before a last line break, and its \b knows letters beyond ASCII before Java 19.
_ANCHORS = {
    "$": r"\z",
    r"\b": "(?:{0}{3}|{1}{2})".format(*_WORD),
    r"\B": "(?:{0}{2}|{1}{3})".format(*_WORD),
}
# Java's `.` leaves out U+0085 too, and its \s and \S know ASCII alone.
_SETS = {".": automaton.DOT, r"\s": automaton.CLASSES["s"], r"\S": automaton.CLASSES["S"]}
_PATTERN_TOKEN = re.compile(
    r"\\(?:[pP]\{\w+\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.)|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL
)
_ASCII = 128
# So many characters are a table for Java.
_FEW = 32
# Java reads a class in a class by recursion.
_DEEPEST = 12


@dataclass(frozen=True, slots=True)
class JavaPattern:
    """A pattern of Java, and in how long a text it can be searched (None: in any)."""

    text: str
    longest: int | None


def java(pattern: str) -> JavaPattern:
    """The pattern for RLIKE, which searches as JSON Schema's `pattern` does: it is not anchored.

    Raises Unusable, with the position, for what the two languages do not share.
    """
    wrong = shared.refused(pattern)
    if wrong is not None:
        raise Unusable(f"pattern {pattern!r}: {wrong.message}")
    searched = shared.searched(pattern)
    known = recursion(searched)
    made, skipped = "", -1
    for token in _PATTERN_TOKEN.finditer(searched):
        if token.start() == skipped:
            continue
        made += _translated(token.group())
        lazy = known.possessive.get(token.end())
        if lazy is not None:
            made += "+"
            skipped = token.end() if lazy else -1
    return JavaPattern(made, known.longest)


def _translated(token: str) -> str:
    if token in _ANCHORS:
        return _ANCHORS[token]
    matched = shared.class_of(token) if token[0] == "[" else _SETS.get(token)
    return _class(matched) if matched and matched[-1][1] >= _ASCII else token


def _class(matched: Ranges) -> str:
    """The set by what it holds: ASCII first, then the rest, wide ranges before narrow ones.

    Java asks the parts of a class in this order, and single characters last unless they stand alone. A class
    by what it does not hold is asked for all of it at each character, which takes ten times as long.
    """
    plain = [(low, min(high, _ASCII - 1)) for low, high in matched if low < _ASCII]
    rest = [(max(low, _ASCII), high) for low, high in matched if high >= _ASCII]
    few = [code for low, high in plain for code in range(low, high + 1)]
    if len(few) <= _FEW:
        first = [f"[{''.join(_sign(code) for code in few)}]"] if few else []
        ranges = _wide(rest)
    else:
        first, ranges = [], [*_wide(plain), *_wide(rest)]
    nested, flat = ranges[:_DEEPEST], ranges[_DEEPEST:]
    return "[" + "".join(first) + "[".join(nested) + "".join(flat) + "]" * len(nested)


def _wide(ranges: list[tuple[int, int]]) -> list[str]:
    ordered = sorted(ranges, key=lambda one: one[0] - one[1])
    return [f"{_sign(low)}-{_sign(high)}" for low, high in ordered]


def _sign(code: int) -> str:
    shown = chr(code)
    return shown if shown.isascii() and shown.isalnum() else rf"\x{{{code:X}}}"


# TABLE: the named formats of texts, each as a Java pattern of the whole text.
#
# Sources: RFC 5321 (addresses, without quoted parts and literals), RFC 1123 (host names), RFC 3986 (URIs,
# IP
# addresses), RFC 9562 (UUIDs), RFC 3339 (date and time), RFC 4648 (base64). Every pattern is bounded in
# length or repeats single characters only, because Java's regex recurses over repeated groups.

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*"
_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_HEX = "[0-9A-Fa-f]{1,4}"
_LOW = f"(?:{_HEX}:{_HEX}|{_IPV4})"


def _ipv6() -> str:
    """RFC 3986, IPv6address: eight groups, or fewer around one `::`; the last two may be an IPv4 address."""

    def before(most: int) -> str:
        return f"(?:(?:{_HEX}:){{0,{most}}}{_HEX})?" if most else f"(?:{_HEX})?"

    forms = [f"(?:{_HEX}:){{6}}{_LOW}", f"::(?:{_HEX}:){{5}}{_LOW}"]
    forms += [f"{before(most)}::(?:{_HEX}:){{{4 - most}}}{_LOW}" for most in range(5)]
    forms += [f"{before(5)}::{_HEX}", f"{before(6)}::"]
    return f"(?:{'|'.join(forms)})"


_IN_USER = "[A-Za-z0-9._~!$&'()*+,;=:%-]"
_IN_NAME = "[A-Za-z0-9._~!$&'()*+,;=%-]"
_IN_PATH = "[A-Za-z0-9._~!$&'()*+,;=:%@/?-]"
_IN_BRACKETS = rf"\[(?:{_ipv6()}|v[0-9A-Fa-f]+\.{_IN_USER}+)\]"
_AUTHORITY = rf"//(?:{_IN_USER}*@)?(?:{_IN_BRACKETS}|{_IN_NAME}*)(?::[0-9]*)?(?=[/?#]|\z)"
_URI = (
    rf"(?!.*%(?![0-9A-Fa-f]{{2}}))[A-Za-z][A-Za-z0-9+.-]*:(?:{_AUTHORITY}|(?!//)){_IN_PATH}*(?:#{_IN_PATH}*)?"
)

_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DAY = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
# A leap second is written as second 60.
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)(?:\.[0-9]+)?"
_OFFSET = "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"

PATTERNS: dict[str, str] = {
    "email": rf"(?=.{{3,254}}\z)(?=[^@]{{1,64}}@){_ATOM}(?:\.{_ATOM})*@(?=.{{1,253}}\z){_HOST}",
    "uuid": "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}",
    "uri": _URI,
    "hostname": rf"(?=.{{1,253}}\z){_HOST}",
    "ipv4": _IPV4,
    "ipv6": _ipv6(),
    "date": _DAY,
    "date-time": f"{_DAY}[Tt]{_CLOCK}{_OFFSET}",
    # That they come in fours is counted: a repeated group would recurse.
    "byte": "[A-Za-z0-9+/]*+={0,2}",
}
# Formats whose number of characters is a multiple.
MULTIPLES = {"byte": 4}
# Formats that every text has.
ANY_TEXT = {
    "password": "it tells how to show a text; any text is a password",
    "binary": "it tells that the text stands for bytes; any text does",
}


def breaks(name: str, value: Path) -> Predicate:
    """A predicate: the value is a text without this format."""
    unlike = Not(Matches(value, rf"\A(?:{PATTERNS[name]})\z"))
    if name not in MULTIPLES:
        return unlike
    return any_of(unlike, Compare(Remainder(Length(value), MULTIPLES[name]), "<>", 0))
