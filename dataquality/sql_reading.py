"""TABLE: the part of Spark SQL that other engines can evaluate, parsed into predicates.

Spark gets the SQL itself. Anything that is not in the tables here raises UnsupportedPredicate, so that no
engine evaluates it with another meaning.
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
    """Parse a predicate in Spark SQL. Raises UnsupportedPredicate, naming the part that only Spark can
    evaluate.
    """
    return _to_predicate(_parsed(text))


@functools.lru_cache(1024)
def read_term(text: str) -> predicate.Term:
    """Parse a value in Spark SQL. Raises UnsupportedPredicate like `read_predicate`."""
    return _to_term(_parsed(text))


def _parsed(text: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(text, dialect=SqlDialect)
    except (SqlglotError, RecursionError) as error:
        raise predicate.UnsupportedPredicate("the predicate is not understood") from error


def _to_predicate(node: exp.Expr) -> predicate.Predicate:
    convert = _PREDICATES.get(type(node))
    if convert is not None:
        return convert(node)
    if isinstance(node, exp.Anonymous) and node.name.lower() in _PREDICATE_FUNCTIONS:
        name, arguments = node.name.lower(), node.expressions
        if len(arguments) == _PREDICATE_FUNCTIONS[name][0]:
            return _PREDICATE_FUNCTIONS[name][1](*arguments)
    return predicate.Holds(_to_term(node))


def _comparison(
    operator: predicate.Operator, flipped: predicate.Operator
) -> Callable[[exp.Expr], predicate.Predicate]:
    def convert(node: exp.Expr) -> predicate.Predicate:
        left, right = _to_value(node.this), _to_value(node.expression)
        if left is None or right is None:
            return predicate.Constant(None)
        if isinstance(left, predicate.Term):
            return predicate.Compare(left, operator, right)
        if isinstance(right, predicate.Term):
            return predicate.Compare(right, flipped, left)
        raise predicate.UnsupportedPredicate("a comparison of two constants needs Spark")

    return convert


def _is(node: exp.Expr) -> predicate.Predicate:
    if not isinstance(node.expression, exp.Null):
        raise predicate.UnsupportedPredicate("IS with anything other than NULL needs Spark")
    return predicate.IsNull(_to_term(node.this))


def _in(node: exp.Expr) -> predicate.Predicate:
    if node.args.get("query") is not None or not node.expressions:
        raise predicate.UnsupportedPredicate("IN with a query needs Spark")
    values = [_to_value(item) for item in node.expressions]
    literals = tuple(value for value in values if value is not None and not isinstance(value, predicate.Term))
    if len(literals) + values.count(None) < len(values):
        raise predicate.UnsupportedPredicate("IN with other columns needs Spark")
    membership = predicate.In(_to_term(node.this), literals) if literals else predicate.Constant(None)
    return predicate.Or((membership, predicate.Constant(None))) if None in values else membership


def _between(node: exp.Expr) -> predicate.Predicate:
    low, high = node.args["low"], node.args["high"]
    return predicate.And(
        (
            _to_predicate(exp.GTE(this=node.this, expression=low)),
            _to_predicate(exp.LTE(this=node.this, expression=high)),
        )
    )


def _pattern_match(value: exp.Expr, pattern: exp.Expr) -> predicate.Predicate:
    text = _to_value(pattern)
    if not isinstance(text, str):
        raise predicate.UnsupportedPredicate("its pattern needs Java's regular expressions")
    return predicate.Matches(_to_term(value), text)


def _is_nan(value: exp.Expr) -> predicate.Predicate:
    term = _to_term(value)
    if not isinstance(term, predicate.Path):
        raise predicate.UnsupportedPredicate("isnan of a computed value needs Spark")
    return predicate.IsNaN(term)


_PREDICATES: Mapping[type[exp.Expr], Callable[[exp.Expr], predicate.Predicate]] = {
    exp.Paren: lambda node: _to_predicate(node.this),
    exp.And: lambda node: predicate.And((_to_predicate(node.this), _to_predicate(node.expression))),
    exp.Or: lambda node: predicate.Or((_to_predicate(node.this), _to_predicate(node.expression))),
    exp.Not: lambda node: predicate.Not(_to_predicate(node.this)),
    exp.Boolean: lambda node: predicate.Constant(bool(node.this)),
    exp.Null: lambda _: predicate.Constant(None),
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.RegexpLike: lambda node: _pattern_match(node.this, node.expression),
    exp.LT: _comparison("<", ">"),
    exp.LTE: _comparison("<=", ">="),
    exp.GT: _comparison(">", "<"),
    exp.GTE: _comparison(">=", "<="),
    exp.EQ: _comparison("=", "="),
    exp.NEQ: _comparison("<>", "<>"),
}
_PREDICATE_FUNCTIONS: Mapping[str, tuple[int, Callable[..., predicate.Predicate]]] = {
    "isnan": (1, _is_nan),
    "isnull": (1, lambda value: predicate.IsNull(_to_term(value))),
    "isnotnull": (1, lambda value: predicate.Not(predicate.IsNull(_to_term(value)))),
    **dict.fromkeys(("rlike", "regexp", "regexp_like"), (2, _pattern_match)),
}


def _to_term(node: exp.Expr) -> predicate.Term:
    value = _to_value(node)
    if isinstance(value, predicate.Term):
        return value
    raise predicate.UnsupportedPredicate("a constant in this place needs Spark")


def _to_value(node: exp.Expr) -> predicate.Term | predicate.Literal | None:
    """Convert to a term or a literal, or None for NULL."""
    convert = _VALUES.get(type(node))
    if convert is not None:
        return convert(node)
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if name in _LENGTHS and len(node.expressions) == 1:
        return predicate.Length(_to_term(node.expressions[0]))
    if name in _FUNCTIONS:
        function_name, arities = _FUNCTIONS[name]
        if not arities or len(node.expressions) in arities:
            return predicate.Function(
                function_name, tuple(_to_value(argument) for argument in node.expressions)
            )
    construct = name or (node.sql_name().lower() if isinstance(node, exp.Func) else node.key)
    raise predicate.UnsupportedPredicate(f"{construct} needs Spark")


def _literal(node: exp.Expr) -> predicate.Literal:
    if node.is_string:
        return node.name
    if "e" in node.name.lower():
        return float(node.name)
    return int(node.name) if node.name.isdecimal() else Decimal(node.name)


def _negative(node: exp.Expr) -> predicate.Term | predicate.Literal | None:
    inner = _to_value(node.this)
    if isinstance(inner, int | float | Decimal) and not isinstance(inner, bool):
        return -inner
    return predicate.Function("negative", (inner,))


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the names of a path in order; sqlglot's Column holds at most four of them."""
    if isinstance(node, exp.Dot):
        yield from _parts(node.this)
        yield node.expression
    else:
        yield from node.parts if isinstance(node, exp.Column) else (node,)


def _path(node: exp.Expr) -> predicate.Path:
    parts = list(_parts(node))
    if not all(isinstance(part, exp.Identifier) for part in parts):
        raise predicate.UnsupportedPredicate("a field of a computed value needs Spark")
    return predicate.Path(tuple(part.name for part in parts))


def _cast(node: exp.Expr) -> predicate.Term | predicate.Literal:
    """Convert casts of literals, and casts that return NULL for invalid values."""
    inner, target = node.this, node.args["to"]
    if isinstance(inner, exp.HexString) and target.this is exp.DType.TEXT:
        return bytes.fromhex(inner.name).decode("utf-8")
    try:
        if isinstance(inner, exp.Literal) and target.this in _LITERAL_CASTS:
            return _LITERAL_CASTS[target.this](inner.name)
    except ValueError as error:
        raise predicate.UnsupportedPredicate(f"the literal {inner.name!r} needs Spark") from error
    if isinstance(node, exp.TryCast) and target.this is exp.DType.DECIMAL and len(target.expressions) == 2:
        return predicate.Function(
            "try_decimal", (_to_value(inner), *(int(part.name) for part in target.expressions))
        )
    if isinstance(node, exp.TryCast) and target.this is exp.DType.DATE:
        return predicate.Function("try_date", (_to_value(inner),))
    raise predicate.UnsupportedPredicate(f"a cast to {target.sql(dialect='spark').lower()} needs Spark")


_LITERAL_CASTS: Mapping[object, Callable[[str], predicate.Literal]] = {
    exp.DType.DATE: dt.date.fromisoformat,
    exp.DType.DOUBLE: float,
    exp.DType.TIMESTAMPNTZ: lambda text: dt.datetime.fromisoformat(text).replace(tzinfo=None),
    **dict.fromkeys(
        (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ), dt.datetime.fromisoformat
    ),
}
_LENGTHS = ("char_length", "character_length", "len", "length")
# Function name -> its name in the predicate model, and the allowed numbers of arguments (empty: any).
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
    return lambda node: predicate.Function(name, (_to_value(node.this), _to_value(node.expression)))


_VALUES: Mapping[type[exp.Expr], Callable[[exp.Expr], predicate.Term | predicate.Literal | None]] = {
    exp.Paren: lambda node: _to_value(node.this),
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
