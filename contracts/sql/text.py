"""Spark SQL text from untrusted names and values: quoted, typed, and without escapes."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

# Placeholder table for the rows in a contract's query; the measurement replaces it.
ROWS_VIEW = "_dq_rows"
# Spark's largest decimal; a number with more digits is written as a double.
MAX_DIGITS = 38


def name(identifier: str) -> str:
    """Return one identifier, always back-quoted; a dot in it is part of the name."""
    return "`" + identifier.replace("`", "``") + "`"


def text(value: str) -> str:
    """Return a string literal.

    Backslashes mean different things under `spark.sql.parser.escapedStringLiterals`, and Spark replaces
    `${...}` even inside quotes (`spark.sql.variable.substitute`). A text with such a character is written
    as the hexadecimal form of its UTF-8 bytes, which the optimizer folds into the same constant.
    """
    if value.isprintable() and not any(sign in value for sign in "\\'$"):
        return f"'{value}'"
    # A lone surrogate, which JSON can contain, becomes bytes that equal no text in Spark.
    return f"CAST(X'{value.encode('utf-8', 'surrogatepass').hex().upper()}' AS STRING)"


def number(value: int | float | Decimal) -> str:
    """Return a number literal: an exact integer or decimal if 38 digits suffice, else a double.

    Raises ValueError for NaN and infinities, which are not valid bounds in a contract.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    exact = _exact(value)
    if digits(value) == (0, 0):
        return f"({float(exact)!r}D)"
    literal = format(exact, "f")
    return f"({literal})" if literal.startswith("-") else literal


def digits(value: int | float | Decimal) -> tuple[int, int]:
    """Return the number of digits that `number` writes before and after the point: (0, 0) for a double."""
    figures, exponent = _exact(value).as_tuple().digits, _exact(value).as_tuple().exponent
    assert isinstance(exponent, int)
    integer_digits, fraction_digits = max(len(figures) + exponent, 0), max(-exponent, 0)
    return (
        (integer_digits, fraction_digits)
        if max(len(figures) + max(exponent, 0), fraction_digits) <= MAX_DIGITS
        else (0, 0)
    )


def _exact(value: int | float | Decimal) -> Decimal:
    # `repr` gives the shortest decimal that denotes the float, which is the text in the contract.
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def date(value: dt.date) -> str:
    """Return a date literal in the proleptic Gregorian calendar, as Spark 3 and later use it."""
    return f"DATE'{value.isoformat()}'"


def timestamp(value: dt.datetime) -> str:
    """Return a timestamp literal. `value` must be aware: a naive one would depend on the session's zone."""
    if value.tzinfo is None:
        raise ValueError("a timestamp without zone names no instant")
    return f"TIMESTAMP'{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(' ')}Z'"


def civil_timestamp(value: dt.datetime) -> str:
    """Return a literal of a timestamp without zone (`timestamp_ntz`); the value's own zone is dropped."""
    return f"TIMESTAMP_NTZ'{value.replace(tzinfo=None).isoformat(' ')}'"


def all_of(*predicates: str) -> str:
    """Return the predicates joined with AND; empty ones are left out."""
    return " AND ".join(f"({predicate})" for predicate in predicates if predicate)


def any_of(*predicates: str) -> str:
    """Return the predicates joined with OR; empty ones are left out."""
    return " OR ".join(f"({predicate})" for predicate in predicates if predicate)
