"""Rows in memory with their types, and their values as Spark compares them."""

from __future__ import annotations

import calendar
import datetime as dt
import decimal
import math
import re
import struct
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dq.contracts.patterns.pattern import TOO_LONG
from dq.contracts.types import DataType
from dq.dataquality.model.column import field
from dq.lake.types import arrow_type, from_arrow

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


# How Spark compares and counts values, for values of Python: NULL is None, an instant is aware.

# Enough digits that no remainder or sum of two of Spark's decimals is rounded.
EXACT = decimal.Context(prec=120, rounding=decimal.ROUND_HALF_UP)


class Incomparable(TypeError):
    """Two values of types that Spark would cast before it compares them."""


def order(one: object, other: object) -> int:
    """Below zero, zero or above zero. NaN equals NaN and stands above every number; -0.0 equals 0.0.

    A float and an exact number are compared as floats, as Spark does.
    """
    one, other = _alike(one, other)
    if is_nan(one) or is_nan(other):
        return int(is_nan(one)) - int(is_nan(other))
    try:
        return int(one > other) - int(one < other)  # type: ignore[operator]  # they are alike
    except TypeError as error:
        raise Incomparable(f"a {type(one).__name__} and a {type(other).__name__} are not compared") from error


def _alike(one: object, other: object) -> tuple[object, object]:
    numbers = isinstance(one, int | float | Decimal) and isinstance(other, int | float | Decimal)
    if isinstance(one, bool) is not isinstance(other, bool):
        raise Incomparable("a boolean is compared with something else")
    if numbers and (isinstance(one, float) or isinstance(other, float)):
        return float(one), float(other)  # type: ignore[arg-type]  # both are numbers
    if isinstance(one, dt.date) and isinstance(other, str):
        return one, _same_kind(one, other)
    if isinstance(other, dt.date) and isinstance(one, str):
        return _same_kind(other, one), other
    return one, other


def _same_kind(pattern: dt.date, text: str) -> dt.date:
    try:
        return type(pattern).fromisoformat(text)
    except ValueError as error:
        raise Incomparable("a text that is no date is compared with one") from error


def is_nan(value: object) -> bool:
    """Whether it is a float that is NaN."""
    return isinstance(value, float) and math.isnan(value)


def key(value: object) -> Hashable:
    """Something hashable that is equal for values which Spark groups together."""
    if is_nan(value):
        return ("NaN",)
    if isinstance(value, Mapping):
        return tuple(key(part) for part in value.values())
    if isinstance(value, list | tuple):
        return tuple(key(part) for part in value)
    if isinstance(value, Hashable):
        return value
    raise Incomparable(f"a {type(value).__name__} has no key")


def remainder(one: object, other: object) -> object:
    """The rest of a division, with the sign of the dividend; exact for exact numbers."""
    if isinstance(one, float) or isinstance(other, float):
        return math.fmod(float(one), float(other))  # type: ignore[arg-type]  # both are numbers
    if not isinstance(one, int | Decimal) or not isinstance(other, int | Decimal):
        raise Incomparable("something that is no number is divided")
    return EXACT.remainder(Decimal(one), Decimal(other))


def as_decimal(value: object, precision: int, scale: int) -> Decimal | None:
    """A number as a decimal of this size, None where it does not fit; of a float, its shortest decimal."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = repr(value)
    if not isinstance(value, int | str | Decimal):
        raise Incomparable("something that is no number is cast to decimal")
    try:
        made = EXACT.quantize(Decimal(value), Decimal(1).scaleb(-scale))
    except decimal.InvalidOperation:
        return None
    # NaN of a float of 32 bits comes as a text.
    fits = made.is_finite() and made.copy_abs() < Decimal(1).scaleb(precision - scale)
    return made if fits else None


def multiple(value: object, step: int | Decimal, short: bool) -> bool:
    """Whether a number is a multiple; a float, `short` or a double, is its shortest decimal to 18 places."""
    if isinstance(value, float):
        value = as_decimal(narrow_text(value) if short else value, 38, 18)
    return value is not None and remainder(value, step) == 0


def narrow_text(value: object) -> str:
    """The shortest decimal of a float of 32 bits; checks cast no other column to a text."""
    if not isinstance(value, float):
        raise Incomparable(f"a {type(value).__name__} is cast to a text")
    return next(
        text for digits in range(1, 18) if _bits(float(text := f"{value:.{digits}g}")) == _bits(value)
    )


def _bits(value: float) -> bytes:
    return struct.pack("f", value)


def narrow(value: float | Decimal) -> float:
    """The float of 32 bits nearest to a number; beyond the largest one there is infinity."""
    wide = float(value)
    if math.isfinite(wide) and not isinstance(value, float) and Fraction(value) != Fraction(wide):
        exact, doubled = Fraction(value), Fraction(wide)
        # In the middle of two floats, what the double has lost decides.
        low, high = _cut(math.nextafter(wide, -math.inf)), _cut(math.nextafter(wide, math.inf))
        if math.isfinite(low) and math.isfinite(high) and Fraction(low) + Fraction(high) == 2 * doubled:
            return high if exact > doubled else low
    return _cut(wide)


def _cut(wide: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", wide))[0])
    except OverflowError:
        return math.copysign(math.inf, wide)


_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)


def as_day(text: str) -> tuple[int, int, int] | None:
    """Year, month and day of a text, None where there is no such day. The year 0 exists, as in Spark."""
    match = _DAY.fullmatch(text)
    if match is None:
        return None
    year, month, day = (int(part) for part in match.groups())
    # Years repeat after 400; the calendar begins with year 1.
    if not 1 <= month <= 12 or not 1 <= day <= calendar.monthrange(year % 400 + 400, month)[1]:
        return None
    return year, month, day


# What one character after a backslash may be in a pattern of Java, so that Python reads it alike.
_ALIKE = frozenset("dDwWbBAntrf")
_TOKEN = re.compile(
    r"\\(?:x\{(?P<code>[0-9A-F]+)\}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|z|.)"
    r"|[\[\]]|(?P<possessive>(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\+)",
    re.DOTALL,
)
# Before, possessive groups missed texts that they match (CPython's issues 101955 and 106052). What is made
# possessive for Java's sake finds the same without.
_POSSESSIVE_IS_RIGHT = sys.version_info >= (3, 11, 5)


def pattern(java: str) -> re.Pattern[str] | None:
    """The pattern of Java as one of Python that finds the same texts; None for what Python does not know."""
    unknown, depth = False, 0

    def same(match: re.Match[str]) -> str:
        nonlocal unknown, depth
        token = match.group()
        if token in "[]":
            depth += 1 if token == "[" else -1
            # Classes in a class are joined, and stand there for Java's speed alone.
            return token if depth == (token == "[") else ""
        if token == r"\z":
            return r"\Z"
        if match["possessive"]:
            return token if depth or _POSSESSIVE_IS_RIGHT else token[:-1]
        if match["code"]:
            return rf"\U{int(match['code'], 16):08x}"
        letter = token[1]
        unknown = unknown or (letter.isalnum() and len(token) == 2 and letter not in _ALIKE)
        return token

    made = _TOKEN.sub(same, java)
    if unknown:
        return None
    try:
        # Classes of Java such as \d and \w are those of ASCII.
        return re.compile(made, re.ASCII)
    except re.error:
        return None


def bounded(found: re.Pattern[str], longest: int | None) -> Callable[[str], re.Match[str] | None]:
    """The search of a pattern; of a text that is too long for Spark, Incomparable is raised here too."""

    def search(text: str) -> re.Match[str] | None:
        if longest is not None and len(text) > longest:
            raise Incomparable(TOO_LONG)
        return found.search(text)

    return search


# Rows in memory with their types, from any frame that Arrow understands.


@dataclass(frozen=True, slots=True)
class Rows:
    """The types of the columns (a struct), and each row as values of Python by the columns' names."""

    schema: DataType
    cells: tuple[Mapping[str, object], ...]


def of_arrow(table: pa.Table, promised: DataType) -> Rows:
    """The rows of an Arrow table. A column of nothing but NULL has the promised type, as it shows none.

    Nanoseconds are cut to microseconds, which is what Spark keeps.
    """
    return _rows(((name, table.column(at)) for at, name in enumerate(table.column_names)), promised)


def of_pandas(frame: pd.DataFrame, promised: DataType) -> Rows:
    """The rows of a pandas frame. NaN is NULL, but in columns with a type of Arrow, which know both.

    A column whose values have no common type is of the type "mixed", which carries no promise.
    """
    return _rows(((str(name), _series(frame.iloc[:, at])) for at, name in enumerate(frame.columns)), promised)


def to_pandas(rows: Rows) -> pd.DataFrame:
    """The rows as a pandas frame with types of Arrow, which keep NULL and NaN apart."""
    import pandas as pd
    import pyarrow as pa

    kinds = zip(rows.schema.names, rows.schema.parts, strict=True)
    arrays = [pa.array([cells[name] for cells in rows.cells], type=arrow_type(kind)) for name, kind in kinds]
    return pa.table(arrays, names=list(rows.schema.names)).to_pandas(types_mapper=pd.ArrowDtype)


def _series(series: pd.Series[Any]) -> pa.ChunkedArray | pa.Array | list[object]:
    import pyarrow as pa

    try:
        return pa.Array.from_pandas(series)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return [None if value is None or value != value else value for value in series]


def _rows(columns: Iterable[tuple[str, Any]], promised: DataType) -> Rows:
    names, types, values = [], [], []
    for name, column in columns:
        kind, listed = _column(column)
        names.append(name)
        types.append((field(promised, name) or kind) if kind.name == "void" else kind)
        values.append(listed)
    cells = tuple(dict(zip(names, row, strict=True)) for row in zip(*values, strict=True))
    return Rows(DataType("struct", (), tuple(types), tuple(names)), cells)


def _column(column: Any) -> tuple[DataType, list[object]]:
    import pyarrow as pa

    if isinstance(column, list):
        return DataType("mixed"), column
    try:
        return from_arrow(column.type), _microseconds(column).to_pylist()
    except (ValueError, OverflowError, pa.ArrowInvalid):
        # Instants that no datetime of Python can hold.
        return DataType("mixed"), [None] * len(column)


def _microseconds(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return column
