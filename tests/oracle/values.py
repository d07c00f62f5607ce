"""Random types of columns, and values of them that lie where types end and engines differ."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from oracle.formats import SAMPLES

from dq.contracts.types import DataType

BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
FRACTION_DIGITS = ((1, 0), (5, 2), (9, 9), (18, 0), (18, 4), (19, 18), (38, 0), (38, 10), (38, 18))
_SIGNS = "aAbzZ09 _-.@é\u0301ß🙂\x00\n\u0085\u2028\u00a0'\"\\$%{}"
_TEXTS = ("", "${spark.app.name}", "a" * 70, "\x00", "NULL", "it's", *SAMPLES)
FIRST, LAST = dt.date(1, 1, 1), dt.date(9999, 12, 31)
_DATES = (
    FIRST,
    dt.date(1582, 10, 4),
    dt.date(1582, 10, 10),
    dt.date(1582, 10, 15),
    dt.date(1970, 1, 1),
    LAST,
)
_INSTANTS = tuple(
    dt.datetime.fromisoformat(text)
    for text in (
        "0001-01-02",
        "1582-10-10T12:00",
        "1899-12-31T23:59:59.999999",
        "1969-12-31T23:59:59.999999",
        "1970-01-01",
        "2026-03-29T01:30",
        "9999-12-30T22:59:59.999999",
    )
)
# Their zone may be any that a session has, and so far from the ends of Python's years they stay.
_FROM, _TO = _INSTANTS[0], _INSTANTS[-1]
_FLOATS = (0.0, -0.0, 0.1, 0.3, 1.005, -1.1, 1e-18, 1e-19, 1e20, 123456789.125, 2.0**53, 5e-324, 1.7e308)
_ODD = (math.nan, math.inf, -math.inf)
SCALARS: tuple[DataType, ...] = (
    *(DataType(name) for name in BITS),
    *(DataType("decimal", digits) for digits in FRACTION_DIGITS),
    *(DataType(name) for name in ("float", "double", "string", "string", "boolean", "date")),
    *(DataType(name) for name in ("timestamp", "timestamp_ntz", "binary")),
)
KEYS = (DataType("string"), DataType("int"), DataType("date"))

scalars = st.sampled_from(SCALARS)


def _narrow(value: float) -> float:
    """The nearest number that 32 bits hold; beyond them there is infinity."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


@st.composite
def types(draw: st.DrawFn, depth: int = 2) -> DataType:
    """A type of a column; containers hold up to two levels more."""
    kind = draw(st.sampled_from(["scalar"] * 5 + ["array", "map", "struct"])) if depth else "scalar"
    if kind == "scalar":
        return draw(scalars)
    if kind == "array":
        return DataType("array", (), (draw(types(depth - 1)),))
    if kind == "map":
        return DataType("map", (), (draw(st.sampled_from(KEYS)), draw(types(depth - 1))))
    names = draw(st.sampled_from([("f",), ("f", "G h")]))
    return DataType("struct", (), tuple(draw(types(depth - 1)) for _ in names), names)


def has_map(kind: DataType) -> bool:
    """Whether values of the type cannot be keys of Spark's groups."""
    return kind.name == "map" or any(map(has_map, kind.parts))


def values(kind: DataType) -> st.SearchStrategy[Any]:
    """Values of the type, None left out (not so inside of containers)."""
    if kind.name in BITS:
        end = 2 ** (BITS[kind.name] - 1)
        return st.one_of(st.sampled_from([0, 1, -1, 10, end - 1, -end]), st.integers(-end, end - 1))
    if kind.name == "decimal":
        return _decimals(*kind.numbers)
    if kind.name == "array":
        return st.lists(_or_none(values(kind.parts[0])), max_size=3)
    if kind.name == "map":
        pairs = st.tuples(values(kind.parts[0]), _or_none(values(kind.parts[1])))
        return st.lists(pairs, max_size=2, unique_by=lambda pair: pair[0])
    if kind.name == "struct":
        parts = {name: _or_none(values(part)) for name, part in zip(kind.names, kind.parts, strict=True)}
        return st.fixed_dictionaries(parts)
    return _SCALARS[kind.name]


def _or_none(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(strategy, strategy, st.none())


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    whole = st.one_of(st.sampled_from([0, 1, -1, most, -most]), st.integers(-most, most))
    # Exact whatever the context's precision is.
    return whole.map(lambda digits: Decimal(f"{digits}E-{scale}"))


_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "float": st.one_of(
        st.sampled_from((*(_narrow(one) for one in _FLOATS[:-1]), *_ODD)), st.floats(width=32)
    ),
    "double": st.one_of(st.sampled_from((*_FLOATS, *_ODD)), st.floats()),
    "string": st.one_of(st.sampled_from(_TEXTS), st.text(_SIGNS, max_size=6)),
    "boolean": st.booleans(),
    "date": st.one_of(st.sampled_from(_DATES), st.dates(FIRST, LAST)),
    "timestamp": st.one_of(st.sampled_from(_INSTANTS), st.datetimes(_FROM, _TO)).map(
        lambda value: value.replace(tzinfo=dt.UTC)
    ),
    "timestamp_ntz": st.one_of(st.sampled_from(_INSTANTS), st.datetimes(_FROM, _TO)),
    "binary": st.binary(max_size=4),
}
