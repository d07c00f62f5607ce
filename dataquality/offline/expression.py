"""A predicate of a clause, written for Spark, as a function on a row in memory.

What is not in the tables here has no reading, and a clause with it is left out with that reason: a guess
would be a second meaning for one promise.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dq.dataquality.offline import values
from dq.dataquality.offline.functions import NAMED, STRICT
from dq.dataquality.offline.values import Incomparable

Cells = Mapping[str, object]
"""A row: each column's value by its name, NULL as None; structs are mappings, maps lists of pairs."""
Names = Mapping[str, object]
Reading = Callable[[Cells, Names], object]
"""The value of an expression for a row, with the names that the lambdas around it bind."""


class NoReading(ValueError):
    """An expression that only Spark can compute; the message says what of it."""


def predicate(text: str, kind: str = "") -> Callable[[Cells], bool]:
    """The predicate as a function that is true where Spark's is (false and NULL are not).

    `kind` is the name of the column's type, which Python's values do not always show.

    Raises NoReading for what is not understood. The function raises Incomparable for values that Spark
    would cast first.
    """
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError as error:
        raise NoReading("the predicate is not understood") from error
    made = _read(tree.transform(lambda node: _branch(node, kind)))
    return lambda cells: made(cells, {}) is True


def _branch(node: exp.Expr, kind: str) -> exp.Expr:
    """Of a choice by the type of the column, the branch that its type takes."""
    if isinstance(node, exp.Case) and len(node.args["ifs"]) == 1 and node.args.get("default") is not None:
        (choice,) = node.args["ifs"]
        test = choice.this
        if isinstance(test, exp.EQ | exp.Like) and isinstance(test.this, exp.Typeof):
            wanted = test.expression.name
            taken = kind == wanted if isinstance(test, exp.EQ) else kind == wanted.removesuffix("%")
            branch = choice.args["true"] if taken else node.args["default"]
            return exp.paren(branch.transform(lambda inner: _branch(inner, kind)))
    return node


def _read(node: exp.Expr) -> Reading:
    if type(node) in STRICT:
        compute, arguments = STRICT[type(node)]
        return _strict(compute, *(node.args[name] for name in arguments))
    make = _READINGS.get(type(node))
    if make is None:
        raise NoReading(f"{node.sql_name().lower() if isinstance(node, exp.Func) else node.key} needs Spark")
    return make(node)


def _all(nodes: Sequence[exp.Expr]) -> tuple[Reading, ...]:
    return tuple(_read(node) for node in nodes)


def _strict(compute: Callable[..., object], *arguments: exp.Expr) -> Reading:
    """A function that is NULL as soon as one of its arguments is."""
    parts = _all(arguments)

    def reading(cells: Cells, names: Names) -> object:
        given = [part(cells, names) for part in parts]
        return None if any(value is None for value in given) else compute(*given)

    return reading


def _constant(value: object) -> Reading:
    return lambda _cells, _names: value


def _literal(node: exp.Expr) -> Reading:
    if node.is_string:
        return _constant(node.name)
    if "e" in node.name.lower():
        return _constant(float(node.name))
    return _constant(int(node.name) if node.name.isdecimal() else Decimal(node.name))


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The names of a path in their order; the parser knows no more than four as those of a column."""
    if isinstance(node, exp.Dot):
        yield from _parts(node.this)
        yield node.expression
    else:
        yield from node.parts if isinstance(node, exp.Column) else (node,)


def _path(node: exp.Expr) -> Reading:
    parts = list(_parts(node))
    if not all(isinstance(part, exp.Identifier) for part in parts):
        raise NoReading("a field of a computed value needs Spark")
    first, *fields = (part.name for part in parts)

    def reading(cells: Cells, names: Names) -> object:
        value = names[first] if first in names else _field(cells, first)
        for field in fields:
            value = None if value is None else _field(value, field)
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


def _and(node: exp.Expr) -> Reading:
    one, other = _all((node.this, node.expression))
    return lambda cells, names: _any((part(cells, names) for part in (one, other)), False)


def _or(node: exp.Expr) -> Reading:
    one, other = _all((node.this, node.expression))
    return lambda cells, names: _any((part(cells, names) for part in (one, other)), True)


def _any(found: Iterable[object], wanted: bool) -> bool | None:
    """The wanted truth when one has it, NULL when none has and one is NULL, else the opposite."""
    unknown = False
    for value in found:
        if value is wanted:
            return wanted
        unknown = unknown or value is None
    return None if unknown else not wanted


def _is(node: exp.Expr) -> Reading:
    if not isinstance(node.expression, exp.Null):
        raise NoReading("IS with something else than NULL needs Spark")
    inner = _read(node.this)
    return lambda cells, names: inner(cells, names) is None


def _in(node: exp.Expr) -> Reading:
    if node.args.get("query") is not None or not node.expressions:
        raise NoReading("IN with a query needs Spark")
    if any(one.find(exp.Column, exp.Identifier) for one in node.expressions):
        raise NoReading("IN with other columns needs Spark")
    inner, others = _read(node.this), [one({}, {}) for one in _all(node.expressions)]

    def reading(cells: Cells, names: Names) -> object:
        value = inner(cells, names)
        if value is None:
            return None
        if any(other is not None and values.order(value, other) == 0 for other in others):
            return True
        return None if None in others else False

    return reading


def _coalesce(node: exp.Expr) -> Reading:
    parts = _all([node.this, *node.expressions])
    return lambda cells, names: next(
        (value for part in parts if (value := part(cells, names)) is not None), None
    )


def _exists(node: exp.Expr) -> Reading:
    bound = node.expression
    if not isinstance(bound, exp.Lambda) or len(bound.expressions) != 1:
        raise NoReading("EXISTS with a query needs Spark")
    inner, name, test = _read(node.this), bound.expressions[0].name, _read(bound.this)

    def reading(cells: Cells, names: Names) -> object:
        items = inner(cells, names)
        if items is None:
            return None
        return _any((test(cells, {**names, name: item}) for item in _list(items)), True)

    return reading


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise Incomparable("something that is no array is walked over")
    return value


def _cast(node: exp.Expr) -> Reading:
    """Casts of what a check writes itself; one that may fail has to be TRY_CAST, as only that is a NULL."""
    inner, wanted = node.this, node.args["to"]
    if isinstance(inner, exp.HexString):
        return _constant(bytes.fromhex(inner.name).decode("utf-8"))
    try:
        if isinstance(inner, exp.Literal) and wanted.this in _OF_LITERALS:
            return _constant(_OF_LITERALS[wanted.this](inner.name))
    except ValueError as error:
        raise NoReading(f"the literal {inner.name!r} needs Spark") from error
    if wanted.this is exp.DType.FLOAT and inner.find(exp.Column, exp.Identifier) is None:
        return _constant(struct.unpack("f", struct.pack("f", float(str(_read(inner)({}, {})))))[0])
    if wanted.this is exp.DType.TEXT and isinstance(inner, exp.IntDiv):
        return _strict(str, inner)
    if wanted.this is exp.DType.TEXT and isinstance(inner, exp.Column):
        return _strict(values.narrow_text, inner)
    if node.args.get("safe") and wanted.this is exp.DType.DECIMAL:
        precision, scale = (int(part.name) for part in wanted.expressions)
        return _strict(lambda value: values.as_decimal(value, precision, scale), inner)
    if node.args.get("safe") and wanted.this is exp.DType.DATE:
        return _strict(values.as_day, inner)
    raise NoReading(f"a cast to {wanted.sql(dialect='spark').lower()} needs Spark")


_OF_LITERALS: Mapping[object, Callable[[str], object]] = {
    exp.DType.DATE: dt.date.fromisoformat,
    exp.DType.DOUBLE: float,
    **dict.fromkeys(
        (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ),
        dt.datetime.fromisoformat,
    ),
}


def _matched(node: exp.Expr) -> Reading:
    found = _pattern(node.expression)
    return _strict(lambda value: found.search(value) is not None, node.this)


def _extracted(node: exp.Expr) -> Reading:
    found, group = _pattern(node.expression), int(node.args["group"].name) if node.args.get("group") else 1

    def extract(value: str) -> str:
        match = found.search(value)
        return (match.group(group) or "") if match else ""

    return _strict(extract, node.this)


def _pattern(node: exp.Expr) -> re.Pattern[str]:
    text = _read(node)({}, {}) if isinstance(node, exp.Literal | exp.Cast | exp.TryCast) else None
    made = values.pattern(text) if isinstance(text, str) else None
    if made is None:
        raise NoReading("its pattern needs Java's regular expressions")
    return made


def _concat(node: exp.Expr) -> Reading:
    return _strict(lambda *texts: "".join(texts), *node.expressions)


def _named(node: exp.Expr) -> Reading:
    name = node.name.lower()
    if name not in NAMED or len(node.expressions) != 1:
        raise NoReading(f"{name} needs Spark")
    return _strict(NAMED[name], *node.expressions)


_READINGS: Mapping[type[exp.Expr], Callable[[exp.Expr], Reading]] = {
    exp.Literal: _literal,
    exp.Boolean: lambda node: _constant(node.this),
    exp.Null: lambda _node: _constant(None),
    exp.Column: _path,
    exp.Identifier: _path,
    exp.Dot: _path,
    exp.Paren: lambda node: _read(node.this),
    exp.And: _and,
    exp.Or: _or,
    exp.Is: _is,
    exp.In: _in,
    exp.Coalesce: _coalesce,
    exp.Exists: _exists,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.RegexpLike: _matched,
    exp.RegexpExtract: _extracted,
    exp.Concat: _concat,
    exp.Anonymous: _named,
}
