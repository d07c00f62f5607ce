"""TABLE: what of a user's SQL engines other than Spark can answer, read once into the algebra of predicates.

Spark gets the text itself. What is not in the tables here has no reading: a guess would be a second meaning
for one promise.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dq.contracts.sql.allow import SqlDialect
from dq.dataquality.model import predicate


@functools.lru_cache(1024)
def read_predicate(text: str) -> predicate.Predicate:
    """The predicate of Spark SQL. Raises NoReading, which says what of it only Spark can compute."""
    return _truth(_parsed(text))


@functools.lru_cache(1024)
def read_term(text: str) -> predicate.Term:
    """The value of Spark SQL. Raises NoReading as `read_predicate` does."""
    return _term(_parsed(text))


def _parsed(text: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(text, dialect=SqlDialect)
    except (SqlglotError, RecursionError) as error:
        raise predicate.NoReading("the predicate is not understood") from error


def _truth(node: exp.Expr) -> predicate.Predicate:
    made = _TRUTHS.get(type(node))
    if made is not None:
        return made(node)
    if isinstance(node, exp.Anonymous) and node.name.lower() in _NAMED_TRUTHS:
        name, arguments = node.name.lower(), node.expressions
        if len(arguments) == _NAMED_TRUTHS[name][0]:
            return _NAMED_TRUTHS[name][1](*arguments)
    return predicate.Holds(_term(node))


def _compared(
    operator: predicate.Operator, flipped: predicate.Operator
) -> Callable[[exp.Expr], predicate.Predicate]:
    def made(node: exp.Expr) -> predicate.Predicate:
        left, right = _value(node.this), _value(node.expression)
        if left is None or right is None:
            return predicate.Constant(None)
        if isinstance(left, predicate.Term):
            return predicate.Compare(left, operator, right)
        if isinstance(right, predicate.Term):
            return predicate.Compare(right, flipped, left)
        raise predicate.NoReading("a comparison of two constants needs Spark")

    return made


def _is(node: exp.Expr) -> predicate.Predicate:
    if not isinstance(node.expression, exp.Null):
        raise predicate.NoReading("IS with something else than NULL needs Spark")
    return predicate.IsNull(_term(node.this))


def _in(node: exp.Expr) -> predicate.Predicate:
    if node.args.get("query") is not None or not node.expressions:
        raise predicate.NoReading("IN with a query needs Spark")
    values = [_value(one) for one in node.expressions]
    known = tuple(value for value in values if value is not None and not isinstance(value, predicate.Term))
    if len(known) + values.count(None) < len(values):
        raise predicate.NoReading("IN with other columns needs Spark")
    among = predicate.In(_term(node.this), known) if known else predicate.Constant(None)
    return predicate.Or((among, predicate.Constant(None))) if None in values else among


def _between(node: exp.Expr) -> predicate.Predicate:
    low, high = node.args["low"], node.args["high"]
    return predicate.And(
        (_truth(exp.GTE(this=node.this, expression=low)), _truth(exp.LTE(this=node.this, expression=high)))
    )


def _matched(value: exp.Expr, pattern: exp.Expr) -> predicate.Predicate:
    text = _value(pattern)
    if not isinstance(text, str):
        raise predicate.NoReading("its pattern needs Java's regular expressions")
    return predicate.Matches(_term(value), text)


def _is_nan(value: exp.Expr) -> predicate.Predicate:
    term = _term(value)
    if not isinstance(term, predicate.Path):
        raise predicate.NoReading("isnan of a computed value needs Spark")
    return predicate.IsNaN(term)


_TRUTHS: Mapping[type[exp.Expr], Callable[[exp.Expr], predicate.Predicate]] = {
    exp.Paren: lambda node: _truth(node.this),
    exp.And: lambda node: predicate.And((_truth(node.this), _truth(node.expression))),
    exp.Or: lambda node: predicate.Or((_truth(node.this), _truth(node.expression))),
    exp.Not: lambda node: predicate.Not(_truth(node.this)),
    exp.Boolean: lambda node: predicate.Constant(bool(node.this)),
    exp.Null: lambda _: predicate.Constant(None),
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.RegexpLike: lambda node: _matched(node.this, node.expression),
    exp.LT: _compared("<", ">"),
    exp.LTE: _compared("<=", ">="),
    exp.GT: _compared(">", "<"),
    exp.GTE: _compared(">=", "<="),
    exp.EQ: _compared("=", "="),
    exp.NEQ: _compared("<>", "<>"),
}
_NAMED_TRUTHS: Mapping[str, tuple[int, Callable[..., predicate.Predicate]]] = {
    "isnan": (1, _is_nan),
    "isnull": (1, lambda value: predicate.IsNull(_term(value))),
    "isnotnull": (1, lambda value: predicate.Not(predicate.IsNull(_term(value)))),
    **dict.fromkeys(("rlike", "regexp", "regexp_like"), (2, _matched)),
}


def _term(node: exp.Expr) -> predicate.Term:
    found = _value(node)
    if isinstance(found, predicate.Term):
        return found
    raise predicate.NoReading("a constant in this place needs Spark")


def _value(node: exp.Expr) -> predicate.Term | predicate.Literal | None:
    """A term, or a literal; None for NULL."""
    made = _VALUES.get(type(node))
    if made is not None:
        return made(node)
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if name in _LENGTHS and len(node.expressions) == 1:
        return predicate.Length(_term(node.expressions[0]))
    if name in _FUNCTIONS:
        known, numbers = _FUNCTIONS[name]
        if not numbers or len(node.expressions) in numbers:
            return predicate.Function(known, tuple(_value(one) for one in node.expressions))
    said = name or (node.sql_name().lower() if isinstance(node, exp.Func) else node.key)
    raise predicate.NoReading(f"{said} needs Spark")


def _literal(node: exp.Expr) -> predicate.Literal:
    if node.is_string:
        return node.name
    if "e" in node.name.lower():
        return float(node.name)
    return int(node.name) if node.name.isdecimal() else Decimal(node.name)


def _negative(node: exp.Expr) -> predicate.Term | predicate.Literal | None:
    inner = _value(node.this)
    if isinstance(inner, int | float | Decimal) and not isinstance(inner, bool):
        return -inner
    return predicate.Function("negative", (inner,))


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The names of a path in their order; the parser knows no more than four as those of a column."""
    if isinstance(node, exp.Dot):
        yield from _parts(node.this)
        yield node.expression
    else:
        yield from node.parts if isinstance(node, exp.Column) else (node,)


def _path(node: exp.Expr) -> predicate.Path:
    parts = list(_parts(node))
    if not all(isinstance(part, exp.Identifier) for part in parts):
        raise predicate.NoReading("a field of a computed value needs Spark")
    return predicate.Path(tuple(part.name for part in parts))


def _cast(node: exp.Expr) -> predicate.Term | predicate.Literal:
    """Casts of literals, and those that give NULL for what does not fit."""
    inner, wanted = node.this, node.args["to"]
    if isinstance(inner, exp.HexString) and wanted.this is exp.DType.TEXT:
        return bytes.fromhex(inner.name).decode("utf-8")
    try:
        if isinstance(inner, exp.Literal) and wanted.this in _OF_LITERALS:
            return _OF_LITERALS[wanted.this](inner.name)
    except ValueError as error:
        raise predicate.NoReading(f"the literal {inner.name!r} needs Spark") from error
    if isinstance(node, exp.TryCast) and wanted.this is exp.DType.DECIMAL and len(wanted.expressions) == 2:
        return predicate.Function(
            "try_decimal", (_value(inner), *(int(part.name) for part in wanted.expressions))
        )
    if isinstance(node, exp.TryCast) and wanted.this is exp.DType.DATE:
        return predicate.Function("try_date", (_value(inner),))
    raise predicate.NoReading(f"a cast to {wanted.sql(dialect='spark').lower()} needs Spark")


_OF_LITERALS: Mapping[object, Callable[[str], predicate.Literal]] = {
    exp.DType.DATE: dt.date.fromisoformat,
    exp.DType.DOUBLE: float,
    exp.DType.TIMESTAMPNTZ: lambda text: dt.datetime.fromisoformat(text).replace(tzinfo=None),
    **dict.fromkeys(
        (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ), dt.datetime.fromisoformat
    ),
}
_LENGTHS = ("char_length", "character_length", "len", "length")
# Name -> what it is called in the algebra, and how many arguments that takes (empty: any number).
_FUNCTIONS: Mapping[str, tuple[str, tuple[int, ...]]] = {
    **{name: (name, (1,)) for name in ("array_distinct", "map_keys", "map_values", "lower", "upper", "size")},
    **{name: (name, (2,)) for name in ("endswith", "instr", "left", "mod", "startswith")},
    **dict.fromkeys(("coalesce", "ifnull", "nvl"), ("coalesce", ())),
    "concat": ("concat", ()),
    "lcase": ("lower", (1,)),
    "ucase": ("upper", (1,)),
    "regexp_extract": ("regexp_extract", (2, 3)),
}


def _binary(name: str) -> Callable[[exp.Expr], predicate.Term]:
    return lambda node: predicate.Function(name, (_value(node.this), _value(node.expression)))


_VALUES: Mapping[type[exp.Expr], Callable[[exp.Expr], predicate.Term | predicate.Literal | None]] = {
    exp.Paren: lambda node: _value(node.this),
    exp.Literal: _literal,
    exp.RawString: lambda node: node.name,
    exp.Boolean: lambda node: bool(node.this),
    exp.Null: lambda _: None,
    exp.Column: _path,
    exp.Dot: _path,
    exp.Neg: _negative,
    exp.Add: _binary("plus"),
    exp.Mod: _binary("mod"),
    exp.IntDiv: _binary("div"),
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
