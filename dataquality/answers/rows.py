"""Rows in memory with their types: values as Spark compares them, and predicates as it means them."""

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
from dq.dataquality.model.column import field, part_of, type_below
from dq.dataquality.model.predicate import DayShape, NoReading
from dq.lake.types import arrow_type, from_arrow

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


# Rows in memory with their types, and their values as Spark compares them.

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


# Predicates and terms in Python, with the meaning that Spark gives them.

# TABLE: what functions of users' SQL compute in memory, NULL where an argument is, and which days exist.

Compute = Callable[..., object]


def _added(one: object, other: object) -> object:
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    raise Incomparable("a sum of something else than integers")


def since_1970(type_: str) -> Callable[[dt.date], int]:
    """The days of a date. Raises NoReading for other types: how a timestamp counts depends on its zone."""
    if type_ != "date":
        raise NoReading("the time since 1970 needs Spark")
    return lambda day: (day - _EPOCH).days


_EPOCH = dt.date(1970, 1, 1)


STRICT: Mapping[str, Compute] = {
    "array_distinct": lambda items: list({key(item): item for item in items}.values()),
    "concat": lambda *texts: "".join(texts),
    # Of small integers alone.
    "div": lambda one, other: int(one / other),
    "endswith": lambda value, part: value.endswith(part),
    "instr": lambda value, part: value.find(part) + 1,
    "left": lambda value, count: value[:count],
    "lower": lambda value: value.lower(),
    "map_keys": lambda pairs: [one for one, _ in pairs],
    "map_values": lambda pairs: [value for _, value in pairs],
    "mod": remainder,
    "negative": lambda value: -value,
    "plus": _added,
    "size": len,
    "startswith": lambda value, part: value.startswith(part),
    "try_date": as_day,
    "try_decimal": as_decimal,
    "upper": lambda value: value.upper(),
}


def has_day(pattern: re.Pattern[str], shape: DayShape, text: object) -> bool:
    """Whether a text has the shape, whose pattern this is, and names a day that exists."""
    match = pattern.search(text) if isinstance(text, str) else None
    if match is None:
        return False
    month = match[shape.month] or ""
    if shape.months:
        month = str((shape.months.find(month[:3]) + 3) // 3)
    return as_day(f"{shape.century}{match[shape.year]}-{month}-{match[shape.day]}") is not None


# TABLE: predicates as functions on rows in memory, with the meaning that they have in Spark.
#
# What is not in the tables here has no reading, and a clause with it is left out with that reason: a guess
# would be a second meaning for one promise.

Cells = Mapping[str, object]
"""A row: each column's value by its name, NULL as None; structs are mappings, maps lists of pairs."""
Reading = Callable[[object], Any]
"""The value of a term, or the truth of a predicate, for a subject: a row, or a part of a container."""
_Table = Mapping[type, Callable[[Any, "_Subject"], Reading]]


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a predicate speaks about: its type where that is known, and whether it is the row."""

    type: DataType | None
    row: bool = False

    def is_float(self, term: t.Term) -> bool:
        """Whether the term is a column of floats of 32 bits, which Python's values do not show."""
        kind = type_below(self.type, term)
        return kind is not None and kind.name == "float"


def predicate(asked: p.Predicate, schema: DataType | None = None) -> Callable[[Cells], bool]:
    """The predicate as a function that is true where Spark's is (false and NULL are not).

    `schema` are the types of the columns (a struct); without it only what does not depend on them is right.

    Raises NoReading for what is not understood. The function raises Incomparable for values that Spark
    would cast first.
    """
    made = truth(asked, schema)
    return lambda cells: made(cells) is True


def truth(asked: p.Predicate, schema: DataType | None = None) -> Callable[[Cells], bool | None]:
    """As `predicate`, with None where it is NULL."""
    return _truth(asked, _Subject(schema, row=True))


@functools.lru_cache(1024)
def value(term: t.Term) -> Callable[[Cells], Any]:
    """The value of a term as a function of a row. Raises NoReading for what is not understood."""
    return _value(term, _Subject(None, row=True))


def _truth(node: p.Predicate, here: _Subject) -> Reading:
    return _read(_TRUTHS, node, here)


def _value(node: t.Term | t.Literal | None, here: _Subject) -> Reading:
    return _read(_VALUES, node, here) if isinstance(node, t.Term) else lambda _: node


def _read(table: _Table, node: object, here: _Subject) -> Reading:
    make = table.get(type(node))
    if make is None:
        raise NoReading(f"{_NAMES[type(node)]} needs Spark")
    return make(node, here)


# How Spark calls what only Spark computes.
_NAMES: Mapping[type, str] = {
    p.HasKey: "map_contains_key",
    p.Normalized: "abs",
    t.Present: "a cast to int",
    t.Whole: "a cast to int",
    t.Opaque: "its own SQL",
}


def _strict(compute: Callable[..., object], *parts: Reading) -> Reading:
    """A function that is NULL as soon as one of its arguments is."""

    def reading(subject: object) -> object:
        given = [part(subject) for part in parts]
        return None if any(value is None for value in given) else compute(*given)

    return reading


def _of(part: Reading, told: Callable[[object], bool]) -> Reading:
    """What is told of a value, NULL or not."""
    return lambda subject: told(part(subject))


def _path(node: t.Path, _: _Subject) -> Reading:
    def reading(subject: object) -> object:
        value = subject
        for step in node.steps:
            value = None if value is None else _field(value, step)
        return value

    return reading


def _field(holder: object, name: str) -> object:
    if not isinstance(holder, Mapping):
        raise Incomparable(f"{name!r} is looked for in something that is no struct")
    if name in holder:
        return holder[name]
    found = next((known for known in holder if known.lower() == name.lower()), None)
    if found is None:
        raise Incomparable(f"column {name!r} is missing")
    return holder[found]


def _any(found: Iterable[object], wanted: bool) -> bool | None:
    """The wanted truth when one has it, NULL when none has and one is NULL, else the opposite."""
    unknown = False
    for value in found:
        if value is wanted:
            return wanted
        if value is not None and not isinstance(value, bool):
            raise Incomparable("something that is no flag is taken for one")
        unknown = unknown or value is None
    return None if unknown else not wanted


def _joined(parts: Sequence[p.Predicate], wanted: bool, here: _Subject) -> Reading:
    readings = [_truth(part, here) for part in parts]
    return lambda subject: _any((reading(subject) for reading in readings), wanted)


def _not(node: p.Not, here: _Subject) -> Reading:
    inner = _truth(node.part, here)

    def reading(subject: object) -> bool | None:
        found = _any([inner(subject)], True)
        return None if found is None else not found

    return reading


def _missing(node: p.Missing, here: _Subject) -> Reading:
    steps = node.value.steps
    if not steps or (here.row and len(steps) == 1):
        return _of(_path(node.value, here), lambda value: value is None)
    holder = _path(t.Path(steps[:-1]), here)

    def reading(subject: object) -> bool:
        held = holder(subject)
        return held is not None and _field(held, steps[-1]) is None

    return reading


def _literal(value: t.Literal, here: _Subject, term: t.Term) -> t.Literal:
    """The literal as values of the term are compared with it."""
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool) and here.is_float(term):
        return narrow(value)
    return value


_HOLDS: Mapping[str, Callable[[int], bool]] = {
    "<": lambda found: found < 0,
    "<=": lambda found: found <= 0,
    ">": lambda found: found > 0,
    ">=": lambda found: found >= 0,
    "=": lambda found: found == 0,
    "<>": lambda found: found != 0,
}


def _compare(node: p.Compare, here: _Subject) -> Reading:
    left, holds = _value(node.value, here), _HOLDS[node.operator]
    if isinstance(node.other, t.Term):
        right = _value(node.other, here)
        return _strict(lambda one, other: holds(order(one, other)), left, right)
    known = _literal(node.other, here, node.value)
    return _strict(lambda one: holds(order(one, known)), left)


def _in(node: p.In, here: _Subject) -> Reading:
    known = [_literal(value, here, node.value) for value in node.values]
    return _strict(lambda value: any(order(value, one) == 0 for one in known), _value(node.value, here))


def _matches(node: p.Matches, here: _Subject) -> Reading:
    found = bounded(_pattern(node.pattern), node.longest)
    return _strict(lambda text: found(text) is not None, _value(node.value, here))


def _pattern(java: object) -> Any:
    made = pattern(java) if isinstance(java, str) else None
    if made is None:
        raise NoReading("its pattern needs Java's regular expressions")
    return made


def _has_day(node: p.HasDay, here: _Subject) -> Reading:
    return _of(_value(node.value, here), functools.partial(has_day, _pattern(node.shape.pattern), node.shape))


def _multiple(node: p.MultipleOf, here: _Subject) -> Reading:
    narrow = here.is_float(node.value)
    return _strict(lambda value: multiple(value, node.step, narrow), _value(node.value, here))


def _exists(node: p.Exists, here: _Subject) -> Reading:
    part = part_of(type_below(here.type, node.value), node.part)
    container, test = _path(node.value, here), _truth(node.holds, _Subject(part))

    def reading(subject: object) -> bool | None:
        held = container(subject)
        if held is None:
            return None
        if not isinstance(held, list):
            raise Incomparable("something that is no array is walked over")
        at = {t.Inside.KEY: 0, t.Inside.VALUE: 1}.get(node.part)
        return _any((test(each if at is None else each[at]) for each in held), True)

    return reading


def _opaque(node: t.Opaque, here: _Subject) -> Reading:
    from dq.dataquality.sql_reading import read_predicate

    return _truth(read_predicate(node.sql), here)


def _function(node: t.Function, here: _Subject) -> Reading:
    parts = [_value(each, here) for each in node.arguments]
    if node.name == "coalesce":
        return lambda subject: next((value for part in parts if (value := part(subject)) is not None), None)
    if node.name == "regexp_extract":
        found = _pattern(node.arguments[1])
        group = node.arguments[2] if len(node.arguments) > 2 else 1
        return _strict(functools.partial(_extract, found, group), parts[0])
    return _strict(STRICT[node.name], *parts)


def _extract(pattern: Any, group: Any, text: str) -> str:
    match = pattern.search(text)
    return (match.group(group) or "") if match else ""


_TRUTHS: _Table = {
    p.Constant: lambda node, _: lambda _subject: node.truth,
    p.Holds: lambda node, here: _value(node.value, here),
    p.IsNull: lambda node, here: _of(_value(node.value, here), lambda value: value is None),
    p.Missing: _missing,
    p.IsNaN: lambda node, here: _of(_value(node.value, here), is_nan),
    p.Compare: _compare,
    p.In: _in,
    p.Matches: _matches,
    p.HasDay: _has_day,
    p.MultipleOf: _multiple,
    p.Repeats: lambda node, here: _strict(
        lambda items: len({key(item) for item in items}) < len(items), _path(node.value, here)
    ),
    p.Not: _not,
    p.And: lambda node, here: _joined(node.parts, False, here),
    p.Or: lambda node, here: _joined(node.parts, True, here),
    p.Exists: _exists,
    t.Opaque: _opaque,
}
_VALUES: _Table = {
    t.Path: _path,
    t.Length: lambda node, here: _strict(len, _value(node.value, here)),
    t.Remainder: lambda node, here: _strict(
        lambda value: remainder(value, node.by), _value(node.value, here)
    ),
    t.Since1970: lambda node, here: _strict(since_1970(node.type), _path(node.value, here)),
    t.Size: lambda node, here: _strict(len, _path(node.value, here)),
    t.Entries: lambda node, here: _strict(len, _path(node.value, here)),
    t.Function: _function,
}
