"""Values and string formats as Spark SQL: literals, casts, date patterns."""

from __future__ import annotations

import datetime as dt
import math
import re
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from dq.contracts.model import Property
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType, carriers, carries, physical_type
from dq.dataquality.model import predicate
from dq.dataquality.model.run_context import Unusable

# Values as Spark SQL: literals, casts of strings, and tests of logical types.

# Contract values as literals of their property's type.


def logical_type_of(prop: Property) -> str:
    """Return the logical type of a property, derived from its physical type if the contract has no other."""
    if prop.logical_type is not None:
        return prop.logical_type
    physical = physical_type(prop)
    return _LOGICAL.get(physical.name, physical.name) if physical else ""


_LOGICAL = {
    **dict.fromkeys(predicate.INTEGERS, "integer"),
    **dict.fromkeys(predicate.FLOATS | {"decimal"}, "number"),
    **dict.fromkeys(predicate.TEXTS, "string"),
    "timestamp_ntz": "timestamp",
    "struct": "object",
}


def is_civil(prop: Property) -> bool:
    """Return True if a timestamp property has no zone: physicalType timestamp_ntz, or `timezone: false`."""
    physical = physical_type(prop)
    if physical is not None:
        return physical.name == "timestamp_ntz"
    return prop.logical_type_options is not None and prop.logical_type_options.timezone is False


def literal(prop: Property, value: object) -> predicate.Literal:
    """Return the value as a literal of the property's type. Raises Unusable, with the reason, if it has
    another.
    """
    logical_type = logical_type_of(prop)
    convert = _LITERALS.get(logical_type)
    if convert is None:
        raise Unusable(
            f"values of {'type ' + logical_type if logical_type else 'an unknown type'} cannot be compared"
        )
    try:
        return convert(prop, value)
    except ValueError as error:
        if isinstance(error, Unusable):
            raise
        raise Unusable(f"{display_text(value)} is not a valid {logical_type}: {error}") from error


def display_text(value: object) -> str:
    """Return the value as text for messages."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float | dt.date) else repr(value)


def number(value: int | float) -> int | Decimal:
    """Return a number of the contract exactly as written: for a float, its shortest decimal.

    Raises ValueError for NaN and infinities, which are not valid bounds.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    return value if isinstance(value, int) else Decimal(repr(value))


def _number(_: Property, value: object) -> predicate.Literal:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("expected a number")
    return number(value)


def _text(_: Property, value: object) -> predicate.Literal:
    if not isinstance(value, str):
        raise ValueError("expected a string; quote it")
    return value


def _boolean(_: Property, value: object) -> predicate.Literal:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def _date(_: Property, value: object) -> predicate.Literal:
    if isinstance(value, str):
        value = dt.date.fromisoformat(value)
    if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
        raise ValueError("expected a date, e.g. 2027-01-31")
    return value


def _timestamp(prop: Property, value: object) -> predicate.Literal:
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    if not isinstance(value, dt.datetime):
        raise ValueError("expected a timestamp, e.g. 2027-01-31T06:00:00Z")
    if is_civil(prop):
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


# TABLE: casts of CSV strings to the contract's types in Spark SQL; NULL for invalid values.
#
# Samples parse the same strings with `dataquality.text`; a test compares both.

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
    """Return the SQL cast of a string expression. Strings stay unchanged; nested types are NULL."""
    if kind.name not in _CASTS:
        return f"CAST(NULL AS {kind})"
    return _CASTS[kind.name](kind, value)


def _match_sql(value: str, pattern: str) -> str:
    anchored = rf"\A(?:{pattern})\z"
    return f"{value} RLIKE {sql.text(anchored)}"


def _cast_if_matching(value: str, pattern: str, kind: DataType) -> str:
    return f"CASE WHEN {_match_sql(value, pattern)} THEN try_cast({value} AS {kind}) END"


def _float_cast(kind: DataType, value: str) -> str:
    cast_sql = f"try_cast({value} AS {kind})"
    finite = f"abs(try_cast({value} AS {kind})) < CAST('Infinity' AS {kind})"
    number = f"{_match_sql(value, f'{PLAIN}(?:{EXPONENT})?')} AND {finite}"
    return f"CASE WHEN {_match_sql(value, NO_NUMBER)} OR ({number}) THEN {cast_sql} END"


def _decimal_cast(kind: DataType, value: str) -> str:
    """Return an exact cast: values with more digits than the type holds are invalid, not rounded."""
    precision, scale = kind.numbers
    fits = rf"[+-]?0*[0-9]{{0,{precision - scale}}}(?:\.[0-9]{{0,{scale}}}0*)?"

    def exact(text: str) -> str:
        return f"CASE WHEN {_match_sql(text, fits)} THEN try_cast({text} AS {kind}) END"

    short = f"length({value}) <= {MOST_CHARACTERS}"
    # The lambda is interpreted by Spark, but exponents are rare.
    return (
        f"CASE WHEN {short} AND {_match_sql(value, PLAIN)} THEN {exact(value)}"
        f" WHEN {short} AND {_match_sql(value, PLAIN + EXPONENT)}"
        f" THEN transform(array({_without_exponent(value)}), _dq_t -> {exact('_dq_t')})[0] END"
    )


def _without_exponent(value: str) -> str:
    """Return SQL that rewrites a number with an exponent without it, moving the decimal point."""

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
        ("tinyint", "smallint", "int", "bigint"), lambda kind, value: _cast_if_matching(value, INTEGER, kind)
    ),
    **dict.fromkeys(("float", "double"), _float_cast),
    "decimal": _decimal_cast,
    "boolean": lambda _, value: f"CASE lower({value}) WHEN 'true' THEN true WHEN 'false' THEN false END",
    "date": lambda kind, value: _cast_if_matching(value, DATE, kind),
    "timestamp": lambda kind, value: _cast_if_matching(value, INSTANT, kind),
    "timestamp_ntz": lambda kind, value: _cast_if_matching(value, CIVIL, kind),
    "binary": lambda _, value: f"CAST({value} AS BINARY)",
    "string": lambda _, value: value,
}


# TABLE: tests of logical types in columns whose physical type may also hold other values.
#
# A string is valid if a CSV cell would be (`cast`), with more freedom where tools write the same value in
# several ways. Sources: ISO 8601 (dates, times), Spark SQL's cast of strings to booleans.

# Time of day with a zone; second 60 is a leap second.
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::(?:[0-5][0-9]|60)(?:[.,][0-9]{1,12})?)?"
_ZONE = r"(?: ?(?:[Zz]|[+-](?:0[0-9]|1[0-8])(?::?[0-5][0-9])?))?"
_DAY = r"(?!0000)([0-9]{4})-([0-9]{2})-([0-9]{2})"
_WORDS = "true|t|yes|y|1|false|f|no|n|0"
# From this number on, every float is an integer.
_ALWAYS_INTEGER_FROM = 1e16
_FIRST_ODCS_WITH_TIMESTAMPS = (3, 1, 0)

Breaks = Callable[[predicate.Path], predicate.Predicate]


@dataclass(frozen=True, slots=True)
class LogicalTest:
    """Predicate that is true for invalid values of a logical type, and the complaint about them."""

    breaks: Breaks
    complaint: str


def logical_test(prop: Property, odcs: tuple[int, int, int]) -> LogicalTest | str | None:
    """Return the test of a property's logical type, or None if the column's physical type implies it.

    A string is the reason why it cannot be tested. Dates and times with a `format` are tested by that format
    instead. `odcs` is the version of the standard: before 3.1 a date may also be a timestamp, which had no
    type of its own.
    """
    logical_type, physical = prop.logical_type, physical_type(prop)
    if logical_type is None or has_text_format(prop):
        return None
    if physical is None:
        # Only strings can hold a time of day.
        return _TIME if logical_type == "time" else None
    if (
        logical_type == "date"
        and "timestamp" in carriers(logical_type, odcs)
        and physical.name in predicate.TEXTS
    ):
        return _TESTS["timestamp", "text"]
    test = _TESTS.get((logical_type, _family(physical.name)))
    if test is not None:
        scale = physical.numbers[1] if physical.name == "decimal" else 0
        return test if test is not _WHOLE_DECIMAL or scale else None
    if carries(physical, logical_type, odcs) and not (
        logical_type in ("object", "map") and physical.name in _OPAQUE_TYPES
    ):
        return None
    unknown = f"values of {physical} cannot be tested for the logical type {logical_type}"
    return _NOT_TESTABLE.get((logical_type, physical.name), unknown)


def has_text_format(prop: Property) -> bool:
    """Return True if the property is a date or time stored as a string with a `format`."""
    options, physical = prop.logical_type_options, physical_type(prop)
    is_text = physical.name in predicate.TEXTS if physical else prop.logical_type == "time"
    return bool(options and options.format) and is_text and prop.logical_type in ("date", "timestamp", "time")


def _family(name: str) -> str:
    return next((family for family, names in _FAMILIES.items() if name in names), name)


_FAMILIES = {"text": predicate.TEXTS, "float": predicate.FLOATS, "whole": predicate.INTEGERS}
# Types without visible structure.
_OPAQUE_TYPES = ("string", "variant")
_NOT_TESTABLE = {
    (
        "object",
        "string",
    ): "the fields of an object stored as a string are not visible; use a pattern or a SQL rule",
    ("object", "variant"): "the fields of a variant are not visible",
}


def _matching_text(pattern: str) -> Breaks:
    return lambda value: predicate.Not(predicate.Matches(value, rf"\A(?:{pattern})\z"))


def _day(suffix: str) -> Breaks:
    shape = predicate.DayShape(rf"\A{_DAY}{suffix}\z", 1, 2, 3)
    return lambda value: predicate.And(
        (predicate.Not(predicate.IsNull(value)), predicate.Not(predicate.HasDay(value, shape)))
    )


def _float_with_fraction(value: predicate.Path) -> predicate.Predicate:
    infinite = predicate.In(value, (float("inf"), float("-inf")))
    # MultipleOf is exact to 18 decimal places only.
    fractional = predicate.And(
        (
            predicate.Compare(value, ">", -1.0),
            predicate.Compare(value, "<", 1.0),
            predicate.Compare(value, "<>", 0.0),
        )
    )
    large = (
        predicate.Compare(value, ">", -_ALWAYS_INTEGER_FROM),
        predicate.Compare(value, "<", _ALWAYS_INTEGER_FROM),
        predicate.Not(predicate.MultipleOf(value, 1)),
    )
    return predicate.any_of(predicate.IsNaN(value), infinite, fractional, predicate.And(large))


_TIME = LogicalTest(_matching_text(f"T?{_CLOCK}{_ZONE}"), "are not times of day (ISO 8601)")
_WHOLE_DECIMAL = LogicalTest(lambda value: predicate.Not(predicate.MultipleOf(value, 1)), "are not integers")
_FLAG = LogicalTest(lambda value: predicate.Not(predicate.In(value, (0, 1))), "are neither 0 nor 1")
# Keyed by the logical type and the family of the physical type.
_TESTS = {
    ("integer", "text"): LogicalTest(_matching_text(INTEGER), "are not integers"),
    ("integer", "float"): LogicalTest(_float_with_fraction, "are not integers"),
    ("integer", "decimal"): _WHOLE_DECIMAL,
    ("number", "text"): LogicalTest(_matching_text(f"{PLAIN}(?:{EXPONENT})?|{NO_NUMBER}"), "are not numbers"),
    ("boolean", "text"): LogicalTest(_matching_text(f"(?i:{_WORDS})"), "are neither true nor false"),
    **dict.fromkeys((("boolean", "whole"), ("boolean", "decimal"), ("boolean", "float")), _FLAG),
    ("date", "text"): LogicalTest(_day(""), "are not dates (ISO 8601)"),
    ("timestamp", "text"): LogicalTest(_day(f"(?:[Tt ]{_CLOCK}{_ZONE})?"), "are not timestamps (ISO 8601)"),
    ("time", "text"): _TIME,
}


# String formats: date patterns of the JDK, ECMA-262 patterns in Java, and named formats.

# A date pattern of the JDK's DateTimeFormatter as a predicate on strings.
#
# Spark's own parsing (`to_timestamp`) depends on the session: with the default of
# `spark.sql.legacy.timeParserPolicy` in Spark 3.5, a string that only the old parser reads fails the query,
# with or without try_. So the form is tested with a regex, and the existence of the day with TRY_CAST, which
# has no policy.
#
# ODCS's own examples are not valid JDK patterns: `yyyy-MM-ddTHH:mm:ssZ` for `2024-03-10T14:22:35Z`. They are
# read as intended: a bare `T` stands for itself, and `Z` for an offset with or without colon, or `Z`. Source:
# https://docs.oracle.com/javase/8/docs/api/java/time/format/DateTimeFormatter.html

_MONTH_NAMES = "January|February|March|April|May|June|July|August|September|October|November|December"
_MONTH_ABBREVIATIONS = [month[:3] for month in _MONTH_NAMES.split("|")]
_HOURS = "(?:0[0-9]|1[0-9]|2[0-3])"
_SIXTY = "[0-5][0-9]"
_OFFSET_HOURS = f"[+-]{_HOURS}"

# Repeated pattern letters -> regex. Month names are English, as in Spark.
_FIELD_PATTERNS: dict[str, str] = {
    **dict.fromkeys(("yyyy", "uuuu"), "[0-9]{4}"),
    **dict.fromkeys(("yy", "uu"), "[0-9]{2}"),
    "MM": "0[1-9]|1[0-2]",
    **dict.fromkeys(("M", "L"), "1[0-2]|0?[1-9]"),
    "MMM": "|".join(_MONTH_ABBREVIATIONS),
    "MMMM": _MONTH_NAMES,
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
    "X": f"Z|{_OFFSET_HOURS}(?:{_SIXTY})?",
    "XX": f"Z|{_OFFSET_HOURS}{_SIXTY}",
    "XXX": f"Z|{_OFFSET_HOURS}:{_SIXTY}",
    "x": f"{_OFFSET_HOURS}(?:{_SIXTY})?",
    "xx": f"{_OFFSET_HOURS}{_SIXTY}",
    "xxx": f"{_OFFSET_HOURS}:{_SIXTY}",
    **dict.fromkeys(("Z", "ZZ", "ZZZ"), f"Z|{_OFFSET_HOURS}:?{_SIXTY}"),
}
# Letters that are often mistaken for others.
_COMMON_MISTAKES = {
    "Y": "is the week-based year; use yyyy",
    "D": "is the day of the year; use dd",
}
_TOKEN = re.compile(r"(?P<letters>([A-Za-z])\2*)|'(?P<quoted>(?:[^']|'')*)'|(?P<sign>.)", re.DOTALL)


def violates_date_pattern(pattern: str) -> Callable[[predicate.Path], predicate.Predicate]:
    """Return a function from a value to a predicate that is true if it does not match the date pattern.

    Raises Unusable, with the reason, for a pattern that cannot be tested.
    """
    regex, day_groups = _parse_date_pattern(pattern)
    shape = rf"\A{regex}\z"
    if not day_groups:
        return lambda value: predicate.Not(predicate.Matches(value, shape))
    month_names = "".join(_MONTH_ABBREVIATIONS) if len(day_groups["M"][1]) > 2 else ""
    # The JDK reads two-digit years as 2000 to 2099.
    century = "20" if len(day_groups["y"][1]) == 2 else ""
    day_shape = predicate.DayShape(
        shape, day_groups["y"][0], day_groups["M"][0], day_groups["d"][0], century, month_names
    )
    # HasDay is false for NULL, which must not be a violation.
    return lambda value: predicate.And(
        (predicate.Not(predicate.IsNull(value)), predicate.Not(predicate.HasDay(value, day_shape)))
    )


_Groups = dict[str, tuple[int, str]]


def _parse_date_pattern(pattern: str) -> tuple[str, _Groups]:
    """Return the pattern as a regex, and the groups of year, month and day if it has all of them."""
    regex, depth, groups = "", 0, dict[str, tuple[int, str]]()
    count = 0
    for token in _TOKEN.finditer(pattern):
        letters, sign = token["letters"], token["sign"]
        if letters and letters != "T":
            count += 1
            regex += f"({_field_pattern(pattern, letters)})"
            part = {"u": "y", "L": "M"}.get(letters[0], letters[0])
            if part in "yMd" and depth == 0:
                groups[part] = (count, letters)
        elif sign in ("[", "]"):
            depth += 1 if sign == "[" else -1
            regex += "(?:" if sign == "[" else ")?"
        elif sign is not None and sign in "#{}'":
            raise Unusable(f"format {pattern!r}: {sign!r} must be quoted")
        else:
            # Two quotes stand for one, inside and outside of quoted text.
            text = letters or sign or (token["quoted"].replace("''", "'") or "'")
            regex += re.sub(r"([^A-Za-z0-9_ ])", r"\\\1", text) if text.isascii() else text
        if depth < 0:
            break
    if depth != 0:
        raise Unusable(f"format {pattern!r}: unbalanced brackets")
    if not count:
        raise Unusable(f"format {pattern!r}: no date or time field")
    return regex, groups if set(groups) == set("yMd") else {}


def _field_pattern(pattern: str, letters: str) -> str:
    if letters in _FIELD_PATTERNS:
        return _FIELD_PATTERNS[letters]
    if letters[0] == "S" and len(letters) <= 9:
        return f"[0-9]{{{len(letters)}}}"
    reason = _COMMON_MISTAKES.get(letters[0], "is not a field that can be tested")
    raise Unusable(f"format {pattern!r}: {letters!r} {reason}")


# TABLE: the named string formats, each as a Java pattern of the whole string.
#
# Sources: RFC 5321 (addresses, without quoted parts and literals), RFC 1123 (host names), RFC 3986 (URIs, IP
# addresses), RFC 9562 (UUIDs), RFC 3339 (date and time), RFC 4648 (base64). Every pattern is bounded in
# length or repeats single characters only, because Java's regex engine recurses over repeated groups.

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*"
_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_HEX = "[0-9A-Fa-f]{1,4}"
_LAST_32_BITS = f"(?:{_HEX}:{_HEX}|{_IPV4})"


def _ipv6() -> str:
    """RFC 3986, IPv6address: eight groups, or fewer around one `::`; the last two may be an IPv4 address."""

    def groups_before(max_groups: int) -> str:
        return f"(?:(?:{_HEX}:){{0,{max_groups}}}{_HEX})?" if max_groups else f"(?:{_HEX})?"

    forms = [f"(?:{_HEX}:){{6}}{_LAST_32_BITS}", f"::(?:{_HEX}:){{5}}{_LAST_32_BITS}"]
    forms += [
        f"{groups_before(group_count)}::(?:{_HEX}:){{{4 - group_count}}}{_LAST_32_BITS}"
        for group_count in range(5)
    ]
    forms += [f"{groups_before(5)}::{_HEX}", f"{groups_before(6)}::"]
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
    # The multiple of four is tested by MULTIPLES, because a repeated group would recurse.
    "byte": "[A-Za-z0-9+/]*+={0,2}",
}
# Format -> number that the string length is a multiple of.
MULTIPLES = {"byte": 4}
# Formats that every string satisfies.
UNCHECKED_FORMATS = {
    "password": "it is a display hint; any text is a password",
    "binary": "it marks text as encoded bytes; any text is valid",
}


def violates_format(name: str, value: predicate.Path) -> predicate.Predicate:
    """Return a predicate that is true for a string without this format."""
    mismatch = predicate.Not(predicate.Matches(value, rf"\A(?:{PATTERNS[name]})\z"))
    if name not in MULTIPLES:
        return mismatch
    return predicate.any_of(
        mismatch, predicate.Compare(predicate.Remainder(predicate.Length(value), MULTIPLES[name]), "<>", 0)
    )
