"""TABLE: a text of a CSV file as a value of the contract's type, as Spark SQL; NULL where it is none.

The sample reads the same texts by `text.text_values`, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable

from dq.contracts.sql import text as sql
from dq.contracts.types import DataType

MOST_CHARACTERS = 100
INTEGER = r"[+-]?[0-9]{1,100}"
PLAIN = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
EXPONENT = r"[eE][+-]?[0-9]{1,4}"
NO_NUMBER = r"NaN|[+-]?Infinity|[+-]?Inf"
DATE = r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_ZONE = r"Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9]|[+-]18:00"
CIVIL = f"{DATE}(?:{_TIME})?"
INSTANT = f"{DATE}(?:{_TIME}(?:{_ZONE})?)?"


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
