"""Predicates and terms in Python, with the meaning that Spark gives them."""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dq.contracts.types import DataType
from dq.dataquality.answers.rows import (
    Incomparable,
    as_day,
    as_decimal,
    bounded,
    is_nan,
    key,
    multiple,
    narrow,
    order,
    pattern,
    remainder,
)
from dq.dataquality.model import predicate as p
from dq.dataquality.model import predicate as t
from dq.dataquality.model.column import part_of, type_below
from dq.dataquality.model.predicate import DayShape, NoReading

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
    from dq.dataquality.sql.sql_reading import read_predicate

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
