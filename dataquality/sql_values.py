"""Values and formats of texts as Spark SQL: literals, casts, date patterns, ECMA-262 patterns in Java."""

from __future__ import annotations

import datetime as dt
import math
import re
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from dq.contracts import pattern as patterns
from dq.contracts.model import Property
from dq.contracts.pattern import Ranges, recursion
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType, carriers, carries, physical_type
from dq.dataquality.model import predicate
from dq.dataquality.model.run_context import Unusable

# Values as Spark SQL: literals, casts of texts, and tests of logical types.

# Values of a contract as literals of the type that their property has.


def logical(prop: Property) -> str:
    """The logical type; where the contract has only a physical type, the logical one that it stands for."""
    if prop.logical_type is not None:
        return prop.logical_type
    promised = physical_type(prop)
    return _LOGICAL.get(promised.name, promised.name) if promised else ""


_LOGICAL = {
    **dict.fromkeys(predicate.INTEGERS, "integer"),
    **dict.fromkeys(predicate.FLOATS | {"decimal"}, "number"),
    **dict.fromkeys(predicate.TEXTS, "string"),
    "timestamp_ntz": "timestamp",
    "struct": "object",
}


def civil(prop: Property) -> bool:
    """Whether a timestamp property has no zone: physicalType timestamp_ntz, or `timezone: false`."""
    promised = physical_type(prop)
    if promised is not None:
        return promised.name == "timestamp_ntz"
    return prop.logical_type_options is not None and prop.logical_type_options.timezone is False


def literal(prop: Property, value: object) -> predicate.Literal:
    """The value as a literal of the property's type. Raises Unusable, with the reason, for one of another."""
    kind = logical(prop)
    make = _LITERALS.get(kind)
    if make is None:
        raise Unusable(f"values of {'type ' + kind if kind else 'an unknown type'} cannot be compared")
    try:
        return make(prop, value)
    except ValueError as error:
        if isinstance(error, Unusable):
            raise
        raise Unusable(f"{shown(value)} is no {kind}: {error}") from error


def shown(value: object) -> str:
    """The value for a reader."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float | dt.date) else repr(value)


def number(value: int | float) -> int | Decimal:
    """A number of the contract, exactly as it is written: the shortest decimal that names a float.

    Raises ValueError for NaN and infinities, which no contract can mean as a bound.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    return value if isinstance(value, int) else Decimal(repr(value))


def _number(_: Property, value: object) -> predicate.Literal:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number is needed")
    return number(value)


def _text(_: Property, value: object) -> predicate.Literal:
    if not isinstance(value, str):
        raise ValueError("a text is needed; quote it")
    return value


def _boolean(_: Property, value: object) -> predicate.Literal:
    if not isinstance(value, bool):
        raise ValueError("true or false is needed")
    return value


def _date(_: Property, value: object) -> predicate.Literal:
    if isinstance(value, str):
        value = dt.date.fromisoformat(value)
    if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
        raise ValueError("a date such as 2027-01-31 is needed")
    return value


def _timestamp(prop: Property, value: object) -> predicate.Literal:
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    if not isinstance(value, dt.datetime):
        raise ValueError("a timestamp such as 2027-01-31T06:00:00Z is needed")
    if civil(prop):
        return value.replace(tzinfo=None)
    if value.tzinfo is None:
        # ODCS: `defaultTimezone` is the zone of timestamps that name none, UTC by default.
        options = prop.logical_type_options
        zone = (options and options.default_timezone) or "Etc/UTC"
        try:
            value = value.replace(tzinfo=zoneinfo.ZoneInfo(zone))
        except (zoneinfo.ZoneInfoNotFoundError, OSError) as error:
            raise ValueError(f"defaultTimezone {zone!r} is not a time zone") from error
    return value


_LITERALS: dict[str, Callable[[Property, object], predicate.Literal]] = {
    "integer": _number,
    "number": _number,
    "string": _text,
    "time": _text,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _timestamp,
}


# TABLE: a text of a CSV file as a value of the contract's type, as Spark SQL; NULL where it is none.
#
# The sample reads the same texts by `text.text_values`, and a test compares the two.

MOST_CHARACTERS = 100
INTEGER = r"[+-]?[0-9]{1,100}"
PLAIN = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
EXPONENT = r"[eE][+-]?[0-9]{1,4}"
NO_NUMBER = r"NaN|[+-]?Infinity|[+-]?Inf"
DATE = r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CAST_TIME = r"[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_CAST_ZONE = r"Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9]|[+-]18:00"
CIVIL = f"{DATE}(?:{_CAST_TIME})?"
INSTANT = f"{DATE}(?:{_CAST_TIME}(?:{_CAST_ZONE})?)?"


def cast(kind: DataType, value: str) -> str:
    """The expression; `value` is one of a text. Texts stay as they are, nested types have no value."""
    if kind.name not in _CASTS:
        return f"CAST(NULL AS {kind})"
    return _CASTS[kind.name](kind, value)


def _matches(value: str, pattern: str) -> str:
    whole = rf"\A(?:{pattern})\z"
    return f"{value} RLIKE {sql.text(whole)}"


def _when(value: str, pattern: str, kind: DataType) -> str:
    return f"CASE WHEN {_matches(value, pattern)} THEN try_cast({value} AS {kind}) END"


def _float(kind: DataType, value: str) -> str:
    made = f"try_cast({value} AS {kind})"
    finite = f"abs(try_cast({value} AS {kind})) < CAST('Infinity' AS {kind})"
    number = f"{_matches(value, f'{PLAIN}(?:{EXPONENT})?')} AND {finite}"
    return f"CASE WHEN {_matches(value, NO_NUMBER)} OR ({number}) THEN {made} END"


def _decimal(kind: DataType, value: str) -> str:
    """Exact: a value with more digits than the type holds would be rounded, and so is none of it."""
    precision, scale = kind.numbers
    fits = rf"[+-]?0*[0-9]{{0,{precision - scale}}}(?:\.[0-9]{{0,{scale}}}0*)?"

    def exact(text: str) -> str:
        return f"CASE WHEN {_matches(text, fits)} THEN try_cast({text} AS {kind}) END"

    short = f"length({value}) <= {MOST_CHARACTERS}"
    # A lambda is interpreted, and exponents are rare.
    return (
        f"CASE WHEN {short} AND {_matches(value, PLAIN)} THEN {exact(value)}"
        f" WHEN {short} AND {_matches(value, PLAIN + EXPONENT)}"
        f" THEN transform(array({_written_out(value)}), _dq_t -> {exact('_dq_t')})[0] END"
    )


def _written_out(value: str) -> str:
    """A number with an exponent as one without: its digits, with the point where the exponent puts it."""

    def part(number: int) -> str:
        shape = r"\A([+-]?)([0-9]*)\.?([0-9]*)[eE]([+-]?[0-9]{1,4})\z"
        return f"regexp_extract({value}, {sql.text(shape)}, {number})"

    digits, point = f"concat({part(2)}, {part(3)})", f"(length({part(2)}) + CAST({part(4)} AS INT))"
    return (
        f"concat({part(1)}, CASE WHEN {point} <= 0 THEN concat('0.', repeat('0', -{point}), {digits})"
        f" WHEN {point} >= length({digits}) THEN concat({digits}, repeat('0', {point} - length({digits})))"
        f" ELSE concat(substr({digits}, 1, {point}), '.', substr({digits}, {point} + 1)) END)"
    )


_CASTS: dict[str, Callable[[DataType, str], str]] = {
    **dict.fromkeys(
        ("tinyint", "smallint", "int", "bigint"), lambda kind, value: _when(value, INTEGER, kind)
    ),
    **dict.fromkeys(("float", "double"), _float),
    "decimal": _decimal,
    "boolean": lambda _, value: f"CASE lower({value}) WHEN 'true' THEN true WHEN 'false' THEN false END",
    "date": lambda kind, value: _when(value, DATE, kind),
    "timestamp": lambda kind, value: _when(value, INSTANT, kind),
    "timestamp_ntz": lambda kind, value: _when(value, CIVIL, kind),
    "binary": lambda _, value: f"CAST({value} AS BINARY)",
    "string": lambda _, value: value,
}


# TABLE: values of a logical type in columns of a physical type that may hold others, too.
#
# A text is a value where a cell of CSV with it would be (`sql.text_cast`), with more freedom where tools
# write
# the same thing in several ways. Sources: ISO 8601 (dates, times), Spark SQL's cast of texts to booleans.

# The clock of a day with a zone; 60 is a leap second.
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::(?:[0-5][0-9]|60)(?:[.,][0-9]{1,12})?)?"
_ZONE = r"(?: ?(?:[Zz]|[+-](?:0[0-9]|1[0-8])(?::?[0-5][0-9])?))?"
_DAY = r"(?!0000)([0-9]{4})-([0-9]{2})-([0-9]{2})"
_WORDS = "true|t|yes|y|1|false|f|no|n|0"
# From here on every float is a whole number.
_WHOLE_FROM = 1e16
_WITH_TIMESTAMPS = (3, 1, 0)

Breaks = Callable[[predicate.Path], predicate.Predicate]


@dataclass(frozen=True, slots=True)
class LogicalTest:
    """What is true of a value that is none of the logical type, and how that is said."""

    breaks: Breaks
    complaint: str


def logical_test(prop: Property, odcs: tuple[int, int, int]) -> LogicalTest | str | None:
    """How values of the property are told from others; None where the type of the column says all.

    A text is the reason why it cannot be told. Dates and times with a `format` are told by that. `odcs` is
    the version of the standard: before 3.1 a date may also be a timestamp, which had no type of its own.
    """
    logical, physical = prop.logical_type, physical_type(prop)
    if logical is None or told_by_format(prop):
        return None
    if physical is None:
        # Nothing but a text holds a time of the day.
        return _TIME if logical == "time" else None
    if logical == "date" and "timestamp" in carriers(logical, odcs) and physical.name in predicate.TEXTS:
        return _TESTS["timestamp", "text"]
    made = _TESTS.get((logical, _family(physical.name)))
    if made is not None:
        places = physical.numbers[1] if physical.name == "decimal" else 0
        return made if made is not _WHOLE_DECIMAL or places else None
    if carries(physical, logical, odcs) and not (logical in ("object", "map") and physical.name in _SHUT):
        return None
    unknown = f"it cannot be told which values of {physical} are of the logical type {logical}"
    return _WHY_NOT.get((logical, physical.name), unknown)


def told_by_format(prop: Property) -> bool:
    """Whether the property is a date or time as a text, whose form its `format` gives."""
    options, physical = prop.logical_type_options, physical_type(prop)
    text = physical.name in predicate.TEXTS if physical else prop.logical_type == "time"
    return bool(options and options.format) and text and prop.logical_type in ("date", "timestamp", "time")


def _family(name: str) -> str:
    return next((family for family, names in _FAMILIES.items() if name in names), name)


_FAMILIES = {"text": predicate.TEXTS, "float": predicate.FLOATS, "whole": predicate.INTEGERS}
# Their inside does not show.
_SHUT = ("string", "variant")
_WHY_NOT = {
    ("object", "string"): "an object as a text shows no fields; write a pattern or a SQL rule for it",
    ("object", "variant"): "a variant does not show its fields",
}


def _matching_text(pattern: str) -> Breaks:
    return lambda value: predicate.Not(predicate.Matches(value, rf"\A(?:{pattern})\z"))


def _day(rest: str) -> Breaks:
    shape = predicate.DayShape(rf"\A{_DAY}{rest}\z", 1, 2, 3)
    return lambda value: predicate.And(
        (predicate.Not(predicate.IsNull(value)), predicate.Not(predicate.HasDay(value, shape)))
    )


def _float_with_fraction(value: predicate.Path) -> predicate.Predicate:
    endless = predicate.In(value, (float("inf"), float("-inf")))
    # A multiple is told to 18 places.
    small = predicate.And(
        (
            predicate.Compare(value, ">", -1.0),
            predicate.Compare(value, "<", 1.0),
            predicate.Compare(value, "<>", 0.0),
        )
    )
    among = (
        predicate.Compare(value, ">", -_WHOLE_FROM),
        predicate.Compare(value, "<", _WHOLE_FROM),
        predicate.Not(predicate.MultipleOf(value, 1)),
    )
    return predicate.any_of(predicate.IsNaN(value), endless, small, predicate.And(among))


_TIME = LogicalTest(_matching_text(f"T?{_CLOCK}{_ZONE}"), "are no time of the day (ISO 8601)")
_WHOLE_DECIMAL = LogicalTest(lambda value: predicate.Not(predicate.MultipleOf(value, 1)), "are no integer")
_FLAG = LogicalTest(lambda value: predicate.Not(predicate.In(value, (0, 1))), "are neither 0 nor 1")
# By the logical type and the family of the physical one.
_TESTS = {
    ("integer", "text"): LogicalTest(_matching_text(INTEGER), "are no integer"),
    ("integer", "float"): LogicalTest(_float_with_fraction, "are no integer"),
    ("integer", "decimal"): _WHOLE_DECIMAL,
    ("number", "text"): LogicalTest(_matching_text(f"{PLAIN}(?:{EXPONENT})?|{NO_NUMBER}"), "are no number"),
    ("boolean", "text"): LogicalTest(_matching_text(f"(?i:{_WORDS})"), "are neither true nor false"),
    **dict.fromkeys((("boolean", "whole"), ("boolean", "decimal"), ("boolean", "float")), _FLAG),
    ("date", "text"): LogicalTest(_day(""), "are no date (ISO 8601)"),
    ("timestamp", "text"): LogicalTest(_day(f"(?:[Tt ]{_CLOCK}{_ZONE})?"), "are no timestamp (ISO 8601)"),
    ("time", "text"): _TIME,
}


# Formats of texts: named ones, date patterns of the JDK, and ECMA-262 patterns in Java.

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


def unfit(pattern: str) -> Callable[[predicate.Path], predicate.Predicate]:
    """From a value to a predicate that is true for a text that the pattern does not read.

    Raises Unusable, with the reason, for a pattern that cannot be tested.
    """
    form, days = _read(pattern)
    shape = rf"\A{form}\z"
    if not days:
        return lambda value: predicate.Not(predicate.Matches(value, shape))
    named = "".join(_SHORT) if len(days["M"][1]) > 2 else ""
    # The JDK reads two digits as a year from 2000 on.
    century = "20" if len(days["y"][1]) == 2 else ""
    known = predicate.DayShape(shape, days["y"][0], days["M"][0], days["d"][0], century, named)
    # NULL has no form, and no day either.
    return lambda value: predicate.And(
        (predicate.Not(predicate.IsNull(value)), predicate.Not(predicate.HasDay(value, known)))
    )


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
_SETS = {".": patterns.DOT, r"\s": patterns.CLASSES["s"], r"\S": patterns.CLASSES["S"]}
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
    wrong = patterns.refused(pattern)
    if wrong is not None:
        raise Unusable(f"pattern {pattern!r}: {wrong.message}")
    searched = patterns.searched(pattern)
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
    matched = patterns.class_of(token) if token[0] == "[" else _SETS.get(token)
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
_RFC3339_DAY = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
# A leap second is written as second 60.
_RFC3339_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)(?:\.[0-9]+)?"
_OFFSET = "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"

PATTERNS: dict[str, str] = {
    "email": rf"(?=.{{3,254}}\z)(?=[^@]{{1,64}}@){_ATOM}(?:\.{_ATOM})*@(?=.{{1,253}}\z){_HOST}",
    "uuid": "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}",
    "uri": _URI,
    "hostname": rf"(?=.{{1,253}}\z){_HOST}",
    "ipv4": _IPV4,
    "ipv6": _ipv6(),
    "date": _RFC3339_DAY,
    "date-time": f"{_RFC3339_DAY}[Tt]{_RFC3339_CLOCK}{_OFFSET}",
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


def breaks(name: str, value: predicate.Path) -> predicate.Predicate:
    """A predicate: the value is a text without this format."""
    unlike = predicate.Not(predicate.Matches(value, rf"\A(?:{PATTERNS[name]})\z"))
    if name not in MULTIPLES:
        return unlike
    return predicate.any_of(
        unlike, predicate.Compare(predicate.Remainder(predicate.Length(value), MULTIPLES[name]), "<>", 0)
    )
