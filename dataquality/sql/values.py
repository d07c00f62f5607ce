"""Values as Spark SQL: literals, casts of texts, and tests of logical types."""

from __future__ import annotations

import datetime as dt
import math
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from dq.contracts.model import Property
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType, carriers, carries, physical_type
from dq.dataquality.model.predicate import (
    And,
    Compare,
    DayShape,
    HasDay,
    In,
    IsNaN,
    IsNull,
    Matches,
    MultipleOf,
    Not,
    Predicate,
    any_of,
)
from dq.dataquality.model.term import FLOATS, INTEGERS, TEXTS, Literal, Path
from dq.dataquality.model.threshold import Unusable

# Values of a contract as literals of the type that their property has.


def logical(prop: Property) -> str:
    """The logical type; where the contract has only a physical type, the logical one that it stands for."""
    if prop.logical_type is not None:
        return prop.logical_type
    promised = physical_type(prop)
    return _LOGICAL.get(promised.name, promised.name) if promised else ""


_LOGICAL = {
    **dict.fromkeys(INTEGERS, "integer"),
    **dict.fromkeys(FLOATS | {"decimal"}, "number"),
    **dict.fromkeys(TEXTS, "string"),
    "timestamp_ntz": "timestamp",
    "struct": "object",
}


def civil(prop: Property) -> bool:
    """Whether a timestamp property has no zone: physicalType timestamp_ntz, or `timezone: false`."""
    promised = physical_type(prop)
    if promised is not None:
        return promised.name == "timestamp_ntz"
    return prop.logical_type_options is not None and prop.logical_type_options.timezone is False


def literal(prop: Property, value: object) -> Literal:
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


def _number(_: Property, value: object) -> Literal:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number is needed")
    return number(value)


def _text(_: Property, value: object) -> Literal:
    if not isinstance(value, str):
        raise ValueError("a text is needed; quote it")
    return value


def _boolean(_: Property, value: object) -> Literal:
    if not isinstance(value, bool):
        raise ValueError("true or false is needed")
    return value


def _date(_: Property, value: object) -> Literal:
    if isinstance(value, str):
        value = dt.date.fromisoformat(value)
    if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
        raise ValueError("a date such as 2027-01-31 is needed")
    return value


def _timestamp(prop: Property, value: object) -> Literal:
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


_LITERALS: dict[str, Callable[[Property, object], Literal]] = {
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

Breaks = Callable[[Path], Predicate]


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
    if logical == "date" and "timestamp" in carriers(logical, odcs) and physical.name in TEXTS:
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
    text = physical.name in TEXTS if physical else prop.logical_type == "time"
    return bool(options and options.format) and text and prop.logical_type in ("date", "timestamp", "time")


def _family(name: str) -> str:
    return next((family for family, names in _FAMILIES.items() if name in names), name)


_FAMILIES = {"text": TEXTS, "float": FLOATS, "whole": INTEGERS}
# Their inside does not show.
_SHUT = ("string", "variant")
_WHY_NOT = {
    ("object", "string"): "an object as a text shows no fields; write a pattern or a SQL rule for it",
    ("object", "variant"): "a variant does not show its fields",
}


def _matching_text(pattern: str) -> Breaks:
    return lambda value: Not(Matches(value, rf"\A(?:{pattern})\z"))


def _day(rest: str) -> Breaks:
    shape = DayShape(rf"\A{_DAY}{rest}\z", 1, 2, 3)
    return lambda value: And((Not(IsNull(value)), Not(HasDay(value, shape))))


def _float_with_fraction(value: Path) -> Predicate:
    endless = In(value, (float("inf"), float("-inf")))
    # A multiple is told to 18 places.
    small = And((Compare(value, ">", -1.0), Compare(value, "<", 1.0), Compare(value, "<>", 0.0)))
    among = Compare(value, ">", -_WHOLE_FROM), Compare(value, "<", _WHOLE_FROM), Not(MultipleOf(value, 1))
    return any_of(IsNaN(value), endless, small, And(among))


_TIME = LogicalTest(_matching_text(f"T?{_CLOCK}{_ZONE}"), "are no time of the day (ISO 8601)")
_WHOLE_DECIMAL = LogicalTest(lambda value: Not(MultipleOf(value, 1)), "are no integer")
_FLAG = LogicalTest(lambda value: Not(In(value, (0, 1))), "are neither 0 nor 1")
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
