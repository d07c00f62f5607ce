"""A date pattern of the JDK's DateTimeFormatter as a predicate on texts.

Spark's own parsing (`to_timestamp`) depends on the session: with `spark.sql.legacy.timeParserPolicy` at its
default of Spark 3.5 a text that only the old parser reads stops the query, with try_ or without. So the form
is a regex, and whether the day exists is asked of TRY_CAST, which knows no policy.

ODCS's own examples are no patterns of the JDK: `yyyy-MM-ddTHH:mm:ssZ` for `2024-03-10T14:22:35Z`. They are
read as they are meant: a bare `T` stands for itself, and `Z` for an offset with or without colon, or `Z`.
Source: https://docs.oracle.com/javase/8/docs/api/java/time/format/DateTimeFormatter.html
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dq.dataquality.model.predicate import And, DayShape, HasDay, IsNull, Matches, Not, Predicate
from dq.dataquality.model.term import Path
from dq.dataquality.model.threshold import Unusable

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
