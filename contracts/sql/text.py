"""Spark SQL text from names and values that nobody vouches for: quoted, typed, and without escapes."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

# What stands for the rows in a query of a contract; the measurement puts a name of its own there.
ROWS_VIEW = "_dq_rows"
# Spark's largest decimal; a number with more digits is written as a double.
MAX_DIGITS = 38


def name(identifier: str) -> str:
    """One identifier, always back-quoted; a dot in it is part of the name."""
    return "`" + identifier.replace("`", "``") + "`"


def text(value: str) -> str:
    """A string literal.

    Backslashes mean different things under `spark.sql.parser.escapedStringLiterals`, and Spark replaces
    `${...}` even inside quotes (`spark.sql.variable.substitute`). A text with a sign of this kind is written
    as the hexadecimal form of its UTF-8 bytes, which the optimizer folds into the same constant.
    """
    if value.isprintable() and not any(sign in value for sign in "\\'$"):
        return f"'{value}'"
    # Half a character, which JSON can hold, becomes bytes that no text of Spark's equals.
    return f"CAST(X'{value.encode('utf-8', 'surrogatepass').hex().upper()}' AS STRING)"


def number(value: int | float | Decimal) -> str:
    """A number: exact as an integer or decimal where 38 digits hold it, else a double.

    Raises ValueError for NaN and infinities, which no contract can mean as a bound.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    exact = _exact(value)
    if digits(value) == (0, 0):
        return f"({float(exact)!r}D)"
    shown = format(exact, "f")
    return f"({shown})" if shown.startswith("-") else shown


def digits(value: int | float | Decimal) -> tuple[int, int]:
    """How many digits `number` writes before and after the point; none of a double."""
    figures, exponent = _exact(value).as_tuple().digits, _exact(value).as_tuple().exponent
    assert isinstance(exponent, int)
    before, after = max(len(figures) + exponent, 0), max(-exponent, 0)
    return (before, after) if max(len(figures) + max(exponent, 0), after) <= MAX_DIGITS else (0, 0)


def _exact(value: int | float | Decimal) -> Decimal:
    # `repr` gives the shortest decimal that names the float, which is what stands in the contract.
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def date(value: dt.date) -> str:
    """A date literal in the proleptic Gregorian calendar, as Spark 3 and later count."""
    return f"DATE'{value.isoformat()}'"


def timestamp(value: dt.datetime) -> str:
    """A timestamp literal. `value` must be aware: a naive one would depend on the session's zone."""
    if value.tzinfo is None:
        raise ValueError("a timestamp without zone names no instant")
    return f"TIMESTAMP'{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(' ')}Z'"


def civil_timestamp(value: dt.datetime) -> str:
    """A literal of a timestamp without zone (`timestamp_ntz`); the value's own zone is dropped."""
    return f"TIMESTAMP_NTZ'{value.replace(tzinfo=None).isoformat(' ')}'"


def all_of(*predicates: str) -> str:
    """The predicates joined with AND; empty ones are left out."""
    return " AND ".join(f"({one})" for one in predicates if one)


def any_of(*predicates: str) -> str:
    """The predicates joined with OR; empty ones are left out."""
    return " OR ".join(f"({one})" for one in predicates if one)
