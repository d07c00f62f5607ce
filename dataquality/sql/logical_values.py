"""TABLE: values of a logical type in columns of a physical type that may hold others, too.

A text is a value where a cell of CSV with it would be (`sql.text_cast`), with more freedom where tools write
the same thing in several ways. Sources: ISO 8601 (dates, times), Spark SQL's cast of texts to booleans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dq.contracts.columns import physical_type
from dq.contracts.model import Property
from dq.contracts.types import carriers, carries
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
from dq.dataquality.model.term import FLOATS, INTEGERS, TEXTS, Path
from dq.dataquality.sql.text_cast import EXPONENT, INTEGER, NO_NUMBER, PLAIN

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


def _text(pattern: str) -> Breaks:
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


_TIME = LogicalTest(_text(f"T?{_CLOCK}{_ZONE}"), "are no time of the day (ISO 8601)")
_WHOLE_DECIMAL = LogicalTest(lambda value: Not(MultipleOf(value, 1)), "are no integer")
_FLAG = LogicalTest(lambda value: Not(In(value, (0, 1))), "are neither 0 nor 1")
# By the logical type and the family of the physical one.
_TESTS = {
    ("integer", "text"): LogicalTest(_text(INTEGER), "are no integer"),
    ("integer", "float"): LogicalTest(_float_with_fraction, "are no integer"),
    ("integer", "decimal"): _WHOLE_DECIMAL,
    ("number", "text"): LogicalTest(_text(f"{PLAIN}(?:{EXPONENT})?|{NO_NUMBER}"), "are no number"),
    ("boolean", "text"): LogicalTest(_text(f"(?i:{_WORDS})"), "are neither true nor false"),
    **dict.fromkeys((("boolean", "whole"), ("boolean", "decimal"), ("boolean", "float")), _FLAG),
    ("date", "text"): LogicalTest(_day(""), "are no date (ISO 8601)"),
    ("timestamp", "text"): LogicalTest(_day(f"(?:[Tt ]{_CLOCK}{_ZONE})?"), "are no timestamp (ISO 8601)"),
    ("time", "text"): _TIME,
}
