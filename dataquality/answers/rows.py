"""Typed rows in memory, with value comparison and predicate evaluation as in Spark."""

from __future__ import annotations

import calendar
import datetime as dt
import decimal
import functools
import math
import re
import struct
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dq.contracts.pattern import TOO_LONG
from dq.contracts.types import DataType
from dq.dataquality.model import predicate as p
from dq.dataquality.model import predicate as t
from dq.dataquality.model.column import element_type, struct_field, type_at
from dq.dataquality.model.predicate import DayShape, UnsupportedPredicate
from dq.lake.types import arrow_type, from_arrow

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


# Comparison and grouping of Python values as in Spark: NULL is None, instants are aware datetimes.

# Enough digits that no remainder or sum of two Spark decimals is rounded.
EXACT = decimal.Context(prec=120, rounding=decimal.ROUND_HALF_UP)


class Incomparable(TypeError):
    """Two values have types that Spark would cast before comparing them."""


def compare(left: object, right: object) -> int:
    """Return a negative number, zero or a positive number, as Spark orders two values.

    NaN equals NaN and is greater than every number; -0.0 equals 0.0. A float and an exact number are compared
    as floats.
    """
    left, right = _alike(left, right)
    if is_nan(left) or is_nan(right):
        return int(is_nan(left)) - int(is_nan(right))
    try:
        return int(left > right) - int(left < right)  # type: ignore[operator]  # they are alike
    except TypeError as error:
        raise Incomparable(
            f"a {type(left).__name__} and a {type(right).__name__} are not compared"
        ) from error


def _alike(left: object, right: object) -> tuple[object, object]:
    numbers = isinstance(left, int | float | Decimal) and isinstance(right, int | float | Decimal)
    if isinstance(left, bool) is not isinstance(right, bool):
        raise Incomparable("a boolean is compared with a value of another type")
    if numbers and (isinstance(left, float) or isinstance(right, float)):
        return float(left), float(right)  # type: ignore[arg-type]  # both are numbers
    if isinstance(left, dt.date) and isinstance(right, str):
        return left, _same_kind(left, right)
    if isinstance(right, dt.date) and isinstance(left, str):
        return _same_kind(right, left), right
    return left, right


def _same_kind(pattern: dt.date, text: str) -> dt.date:
    try:
        return type(pattern).fromisoformat(text)
    except ValueError as error:
        raise Incomparable("a text that is not a date is compared with a date") from error


def is_nan(value: object) -> bool:
    """Return whether the value is a float NaN."""
    return isinstance(value, float) and math.isnan(value)


def group_key(value: object) -> Hashable:
    """Return a hashable value that is equal for values which Spark puts into the same group."""
    if is_nan(value):
        return ("NaN",)
    if isinstance(value, Mapping):
        return tuple(group_key(part) for part in value.values())
    if isinstance(value, list | tuple):
        return tuple(group_key(part) for part in value)
    if isinstance(value, Hashable):
        return value
    raise Incomparable(f"a {type(value).__name__} has no key")


def remainder(left: object, right: object) -> object:
    """Return the remainder of a division with the sign of the dividend; exact for exact numbers."""
    if isinstance(left, float) or isinstance(right, float):
        return math.fmod(float(left), float(right))  # type: ignore[arg-type]  # both are numbers
    if not isinstance(left, int | Decimal) or not isinstance(right, int | Decimal):
        raise Incomparable("a value that is not a number is divided")
    return EXACT.remainder(Decimal(left), Decimal(right))


def as_decimal(value: object, precision: int, scale: int) -> Decimal | None:
    """Return a number as a decimal of this size, or None if it does not fit.

    A float is converted by its shortest decimal form. Raises Incomparable for other types.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = repr(value)
    if not isinstance(value, int | str | Decimal):
        raise Incomparable("a value that is not a number is cast to decimal")
    try:
        quantized = EXACT.quantize(Decimal(value), Decimal(1).scaleb(-scale))
    except decimal.InvalidOperation:
        return None
    # A float32 NaN arrives as text.
    fits = quantized.is_finite() and quantized.copy_abs() < Decimal(1).scaleb(precision - scale)
    return quantized if fits else None


def is_multiple(value: object, step: int | Decimal, is_float32: bool) -> bool:
    """Return whether a number is a multiple of `step`.

    A float counts as its shortest decimal to 18 places.
    """
    if isinstance(value, float):
        value = as_decimal(float32_text(value) if is_float32 else value, 38, 18)
    return value is not None and remainder(value, step) == 0


def float32_text(value: object) -> str:
    """Return the shortest decimal of a float32 value; checks cast no other type to text."""
    if not isinstance(value, float):
        raise Incomparable(f"a {type(value).__name__} is cast to a string")
    return next(
        text
        for digits in range(1, 18)
        if _float32_bytes(float(text := f"{value:.{digits}g}")) == _float32_bytes(value)
    )


def _float32_bytes(value: float) -> bytes:
    return struct.pack("f", value)


def to_float32(value: float | Decimal) -> float:
    """Return the float32 value nearest to a number; infinity beyond the largest one."""
    wide = float(value)
    if math.isfinite(wide) and not isinstance(value, float) and Fraction(value) != Fraction(wide):
        exact, doubled = Fraction(value), Fraction(wide)
        # If the double lies halfway between two float32 values, the exact number decides.
        low, high = (
            _round_to_float32(math.nextafter(wide, -math.inf)),
            _round_to_float32(math.nextafter(wide, math.inf)),
        )
        if math.isfinite(low) and math.isfinite(high) and Fraction(low) + Fraction(high) == 2 * doubled:
            return high if exact > doubled else low
    return _round_to_float32(wide)


def _round_to_float32(wide: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", wide))[0])
    except OverflowError:
        return math.copysign(math.inf, wide)


_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)


def parse_day(text: str) -> tuple[int, int, int] | None:
    """Return year, month and day of a text, or None if that day does not exist.

    Year 0 exists, as in Spark.
    """
    match = _DAY.fullmatch(text)
    if match is None:
        return None
    year, month, day = (int(part) for part in match.groups())
    # The calendar repeats every 400 years; Python's begins with year 1.
    if not 1 <= month <= 12 or not 1 <= day <= calendar.monthrange(year % 400 + 400, month)[1]:
        return None
    return year, month, day


# Characters that mean the same after a backslash in Java's and Python's patterns.
_ALIKE = frozenset("dDwWbBAntrf")
_TOKEN = re.compile(
    r"\\(?:x\{(?P<code>[0-9A-F]+)\}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|z|.)"
    r"|[\[\]]|(?P<possessive>(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\+)",
    re.DOTALL,
)
# Earlier Python versions have bugs in possessive quantifiers (CPython issues 101955 and 106052). Those that
# dq adds for Java can be dropped without changing the matches.
_POSSESSIVE_IS_RIGHT = sys.version_info >= (3, 11, 5)


def python_pattern(java: str) -> re.Pattern[str] | None:
    """Translate a Java pattern into an equivalent Python pattern; None if Python does not support it."""
    unknown, depth = False, 0

    def translate(match: re.Match[str]) -> str:
        nonlocal unknown, depth
        token = match.group()
        if token in "[]":
            depth += 1 if token == "[" else -1
            # Nested classes form a union in Java; dq only writes them for speed.
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

    translated = _TOKEN.sub(translate, java)
    if unknown:
        return None
    try:
        # Java's classes such as \d and \w are ASCII-only.
        return re.compile(translated, re.ASCII)
    except re.error:
        return None


def bounded_search(pattern: re.Pattern[str], longest: int | None) -> Callable[[str], re.Match[str] | None]:
    """Return the pattern's search; it raises Incomparable for texts that are too long for Spark, too."""

    def search(text: str) -> re.Match[str] | None:
        if longest is not None and len(text) > longest:
            raise Incomparable(TOO_LONG)
        return pattern.search(text)

    return search


# Conversion from and to Arrow tables and pandas frames.


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as Python values by column name; `schema` is a struct of the column types."""

    schema: DataType
    cells: tuple[Mapping[str, object], ...]


def rows_from_arrow(table: pa.Table, promised: DataType) -> Rows:
    """Return the rows of an Arrow table. A column of Arrow's null type gets the promised type.

    Nanoseconds are truncated to microseconds, as in Spark.
    """
    return _rows(((name, table.column(index)) for index, name in enumerate(table.column_names)), promised)


def rows_from_pandas(frame: pd.DataFrame, promised: DataType) -> Rows:
    """Return the rows of a pandas frame. NaN is NULL, except in Arrow-typed columns, which have both.

    A column whose values have no common type gets the type "mixed", which fits no contract type.
    """
    return _rows(
        ((str(name), _series(frame.iloc[:, index])) for index, name in enumerate(frame.columns)), promised
    )


def to_pandas(rows: Rows) -> pd.DataFrame:
    """Return the rows as a pandas frame with Arrow types, which distinguish NULL and NaN."""
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
        kind, cells_of_column = _column(column)
        names.append(name)
        types.append((struct_field(promised, name) or kind) if kind.name == "void" else kind)
        values.append(cells_of_column)
    cells = tuple(dict(zip(names, row, strict=True)) for row in zip(*values, strict=True))
    return Rows(DataType("struct", (), tuple(types), tuple(names)), cells)


def _column(column: Any) -> tuple[DataType, list[object]]:
    import pyarrow as pa

    if isinstance(column, list):
        return DataType("mixed"), column
    try:
        return from_arrow(column.type), _microseconds(column).to_pylist()
    except (ValueError, OverflowError, pa.ArrowInvalid):
        # Instants outside the range of Python's datetime.
        return DataType("mixed"), [None] * len(column)


def _microseconds(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return column


# Predicates and terms as Python functions, with Spark's semantics.

# TABLE: SQL functions computed in memory, NULL if an argument is NULL, and the check for existing days.

Compute = Callable[..., object]


def _add_integers(left: object, right: object) -> object:
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    raise Incomparable("a sum of values that are not integers")


def days_since_1970(type_: str) -> Callable[[dt.date], int]:
    """Return a function from a date to its days since 1970.

    Raises UnsupportedPredicate for other types: the value of a timestamp depends on its zone.
    """
    if type_ != "date":
        raise UnsupportedPredicate("the time since 1970 needs Spark")
    return lambda day: (day - _EPOCH).days


_EPOCH = dt.date(1970, 1, 1)


STRICT: Mapping[str, Compute] = {
    "array_distinct": lambda items: list({group_key(item): item for item in items}.values()),
    "concat": lambda *texts: "".join(texts),
    # Only for small integers.
    "div": lambda dividend, divisor: int(dividend / divisor),
    "endswith": lambda value, part: value.endswith(part),
    "instr": lambda value, part: value.find(part) + 1,
    "left": lambda value, count: value[:count],
    "lower": lambda value: value.lower(),
    "map_keys": lambda pairs: [entry_key for entry_key, _ in pairs],
    "map_values": lambda pairs: [value for _, value in pairs],
    "mod": remainder,
    "negative": lambda value: -value,
    "plus": _add_integers,
    "size": len,
    "startswith": lambda value, part: value.startswith(part),
    "try_date": parse_day,
    "try_decimal": as_decimal,
    "upper": lambda value: value.upper(),
}


def has_day(pattern: re.Pattern[str], shape: DayShape, text: object) -> bool:
    """Return whether a text matches the shape (`pattern` is its pattern) and names a day that exists."""
    match = pattern.search(text) if isinstance(text, str) else None
    if match is None:
        return False
    month = match[shape.month] or ""
    if shape.months:
        month = str((shape.months.find(month[:3]) + 3) // 3)
    return parse_day(f"{shape.century}{match[shape.year]}-{month}-{match[shape.day]}") is not None


# TABLE: predicates as functions on rows in memory, with Spark's semantics.
#
# A node that is not in these tables is unsupported, and its clause is not evaluated, with that reason.
# Guessing could evaluate the same clause differently than Spark.

Cells = Mapping[str, object]
"""A row: each column's value by its name, NULL as None; structs are mappings, maps lists of pairs."""
Reading = Callable[[object], Any]
"""Evaluates a term or predicate for a subject, i.e. a row or an element of a container."""
_Table = Mapping[type, Callable[[Any, "_Context"], Reading]]


@dataclass(frozen=True, slots=True)
class _Context:
    """The subject of a predicate: its type if known, and whether it is the row itself."""

    type: DataType | None
    row: bool = False

    def is_float(self, term: t.Term) -> bool:
        """Return whether the term is a float32 column, which Python's values do not show."""
        kind = type_at(self.type, term)
        return kind is not None and kind.name == "float"


def compile_predicate(predicate: p.Predicate, schema: DataType | None = None) -> Callable[[Cells], bool]:
    """Return the predicate as a function of a row that is True where it is true in Spark, else False.

    The function raises Incomparable for values that Spark would cast first.

    Args:
        schema: The column types, as a struct. Without it, predicates that depend on them may be wrong.

    Raises:
        UnsupportedPredicate: Only Spark can evaluate the predicate.
    """
    evaluate = compile_truth(predicate, schema)
    return lambda cells: evaluate(cells) is True


def compile_truth(predicate: p.Predicate, schema: DataType | None = None) -> Callable[[Cells], bool | None]:
    """Return the predicate as `compile_predicate` does, but with None where it is NULL."""
    return _compile_predicate(predicate, _Context(schema, row=True))


@functools.lru_cache(1024)
def compile_term(term: t.Term) -> Callable[[Cells], Any]:
    """Return a term as a function of a row. Raises UnsupportedPredicate if only Spark can compute it."""
    return _compile_term(term, _Context(None, row=True))


def _compile_predicate(node: p.Predicate, context: _Context) -> Reading:
    return _compile(_TRUTHS, node, context)


def _compile_term(node: t.Term | t.Literal | None, context: _Context) -> Reading:
    return _compile(_VALUES, node, context) if isinstance(node, t.Term) else lambda _: node


def _compile(table: _Table, node: object, context: _Context) -> Reading:
    make = table.get(type(node))
    if make is None:
        raise UnsupportedPredicate(f"{_NAMES[type(node)]} needs Spark")
    return make(node, context)


# Spark's names of the operations that only Spark computes.
_NAMES: Mapping[type, str] = {
    p.HasKey: "map_contains_key",
    p.Normalized: "abs",
    t.Present: "a cast to int",
    t.IntegerValue: "a cast to int",
    t.Opaque: "its own SQL",
}


def _null_safe(compute: Callable[..., object], *parts: Reading) -> Reading:
    """Return an evaluator that is NULL if any argument is NULL."""

    def reading(subject: object) -> object:
        values = [part(subject) for part in parts]
        return None if any(value is None for value in values) else compute(*values)

    return reading


def _apply(part: Reading, test: Callable[[object], bool]) -> Reading:
    """Return an evaluator that applies `test` to the value, even if it is NULL."""
    return lambda subject: test(part(subject))


def _path(node: t.Path, _: _Context) -> Reading:
    def reading(subject: object) -> object:
        value = subject
        for step in node.steps:
            value = None if value is None else _field(value, step)
        return value

    return reading


def _field(holder: object, name: str) -> object:
    if not isinstance(holder, Mapping):
        raise Incomparable(f"{name!r} is read from a value that is not a struct")
    if name in holder:
        return holder[name]
    match = next((field_name for field_name in holder if field_name.lower() == name.lower()), None)
    if match is None:
        raise Incomparable(f"column {name!r} is missing")
    return holder[match]


def _exists_truth(truths: Iterable[object], target: bool) -> bool | None:
    """Return `target` if any value is `target`, else None if any is NULL, else the opposite."""
    unknown = False
    for value in truths:
        if value is target:
            return target
        if value is not None and not isinstance(value, bool):
            raise Incomparable("a value that is not a boolean is used as one")
        unknown = unknown or value is None
    return None if unknown else not target


def _connect(parts: Sequence[p.Predicate], target: bool, context: _Context) -> Reading:
    readings = [_compile_predicate(part, context) for part in parts]
    return lambda subject: _exists_truth((reading(subject) for reading in readings), target)


def _not(node: p.Not, context: _Context) -> Reading:
    inner = _compile_predicate(node.part, context)

    def reading(subject: object) -> bool | None:
        is_true = _exists_truth([inner(subject)], True)
        return None if is_true is None else not is_true

    return reading


def _missing(node: p.Missing, context: _Context) -> Reading:
    steps = node.value.steps
    if not steps or (context.row and len(steps) == 1):
        return _apply(_path(node.value, context), lambda value: value is None)
    holder = _path(t.Path(steps[:-1]), context)

    def reading(subject: object) -> bool:
        container = holder(subject)
        return container is not None and _field(container, steps[-1]) is None

    return reading


def _literal(value: t.Literal, context: _Context, term: t.Term) -> t.Literal:
    """Return the literal as Spark compares it with the term, rounded to float32 for float columns."""
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool) and context.is_float(term):
        return to_float32(value)
    return value


_HOLDS: Mapping[str, Callable[[int], bool]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
    "=": lambda order: order == 0,
    "<>": lambda order: order != 0,
}


def _compare(node: p.Compare, context: _Context) -> Reading:
    left, holds = _compile_term(node.value, context), _HOLDS[node.operator]
    if isinstance(node.other, t.Term):
        right = _compile_term(node.other, context)
        return _null_safe(lambda first, second: holds(compare(first, second)), left, right)
    bound = _literal(node.other, context, node.value)
    return _null_safe(lambda operand: holds(compare(operand, bound)), left)


def _in(node: p.In, context: _Context) -> Reading:
    allowed = [_literal(value, context, node.value) for value in node.values]
    return _null_safe(
        lambda value: any(compare(value, literal) == 0 for literal in allowed),
        _compile_term(node.value, context),
    )


def _matches(node: p.Matches, context: _Context) -> Reading:
    search = bounded_search(_pattern(node.pattern), node.longest)
    return _null_safe(lambda text: search(text) is not None, _compile_term(node.value, context))


def _pattern(java: object) -> Any:
    translated = python_pattern(java) if isinstance(java, str) else None
    if translated is None:
        raise UnsupportedPredicate("its pattern needs Java's regular expressions")
    return translated


def _has_day(node: p.HasDay, context: _Context) -> Reading:
    return _apply(
        _compile_term(node.value, context),
        functools.partial(has_day, _pattern(node.shape.pattern), node.shape),
    )


def _multiple(node: p.MultipleOf, context: _Context) -> Reading:
    is_float32 = context.is_float(node.value)
    return _null_safe(
        lambda value: is_multiple(value, node.step, is_float32), _compile_term(node.value, context)
    )


def _exists(node: p.Exists, context: _Context) -> Reading:
    part = element_type(type_at(context.type, node.value), node.part)
    container, test = _path(node.value, context), _compile_predicate(node.holds, _Context(part))

    def reading(subject: object) -> bool | None:
        parts = container(subject)
        if parts is None:
            return None
        if not isinstance(parts, list):
            raise Incomparable("a value that is not an array is iterated")
        index = {t.Inside.KEY: 0, t.Inside.VALUE: 1}.get(node.part)
        return _exists_truth((test(item if index is None else item[index]) for item in parts), True)

    return reading


def _opaque(node: t.Opaque, context: _Context) -> Reading:
    from dq.dataquality.sql_reading import read_predicate

    return _compile_predicate(read_predicate(node.sql), context)


def _function(node: t.Function, context: _Context) -> Reading:
    parts = [_compile_term(argument, context) for argument in node.arguments]
    if node.name == "coalesce":
        return lambda subject: next((value for part in parts if (value := part(subject)) is not None), None)
    if node.name == "regexp_extract":
        regex = _pattern(node.arguments[1])
        group = node.arguments[2] if len(node.arguments) > 2 else 1
        return _null_safe(functools.partial(_extract, regex, group), parts[0])
    return _null_safe(STRICT[node.name], *parts)


def _extract(pattern: Any, group: Any, text: str) -> str:
    match = pattern.search(text)
    return (match.group(group) or "") if match else ""


_TRUTHS: _Table = {
    p.Constant: lambda node, _: lambda _subject: node.truth,
    p.Holds: lambda node, context: _compile_term(node.value, context),
    p.IsNull: lambda node, context: _apply(_compile_term(node.value, context), lambda value: value is None),
    p.Missing: _missing,
    p.IsNaN: lambda node, context: _apply(_compile_term(node.value, context), is_nan),
    p.Compare: _compare,
    p.In: _in,
    p.Matches: _matches,
    p.HasDay: _has_day,
    p.MultipleOf: _multiple,
    p.Repeats: lambda node, context: _null_safe(
        lambda items: len({group_key(item) for item in items}) < len(items), _path(node.value, context)
    ),
    p.Not: _not,
    p.And: lambda node, context: _connect(node.parts, False, context),
    p.Or: lambda node, context: _connect(node.parts, True, context),
    p.Exists: _exists,
    t.Opaque: _opaque,
}
_VALUES: _Table = {
    t.Path: _path,
    t.Length: lambda node, context: _null_safe(len, _compile_term(node.value, context)),
    t.Remainder: lambda node, context: _null_safe(
        lambda value: remainder(value, node.by), _compile_term(node.value, context)
    ),
    t.Since1970: lambda node, context: _null_safe(days_since_1970(node.type), _path(node.value, context)),
    t.Size: lambda node, context: _null_safe(len, _path(node.value, context)),
    t.Entries: lambda node, context: _null_safe(len, _path(node.value, context)),
    t.Function: _function,
}
