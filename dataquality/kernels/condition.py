"""TABLE: which predicates mean the same over Arrow columns as in Spark SQL, and how they are evaluated there.

What is not here stays with Spark: floats (NaN, -0.0), instants, patterns, arithmetic, casts, functions.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dq.contracts.sql.dialect import Dialect
from dq.contracts.types import DataType
from dq.dataquality.literal import INTEGERS

# Arrow arrays of one batch by the column's name; what a condition gives is an array of booleans, with
# NULL where SQL has it.
Columns = Mapping[str, Any]
Evaluate = Callable[[Columns], Any]

# Refuses a literal with more places than the column has, instead of rounding it.
_EXACT = Context(prec=38, traps=[Inexact, InvalidOperation])


class Unlike(Exception):
    """The predicate, or a part of it, is not known to mean the same here as in Spark."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A predicate, and the columns that it reads."""

    evaluate: Evaluate
    columns: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Term:
    """A value of the rows: how to get it, its type, and the columns that it reads."""

    get: Evaluate
    type: DataType
    columns: frozenset[str]


def condition(text: str, types: Mapping[str, DataType]) -> Condition | None:
    """The predicate of Spark SQL as a condition; None when it may mean something else here.

    `types` are the columns that can be read, by their exact names. Spark looks names up without case; a
    name that is written in another way is not found here.
    """
    try:
        tree = sqlglot.parse_one(text, dialect=Dialect)
        return _truth(tree, types)
    except (Unlike, SqlglotError, RecursionError):
        return None


def _truth(node: exp.Expr, types: Mapping[str, DataType]) -> Condition:
    found = _TRUTHS.get(type(node))
    if found is not None:
        return found(node, types)
    if isinstance(node, exp.Anonymous) and node.name.lower() == "isnan" and len(node.expressions) == 1:
        return _never(_term(node.expressions[0], types))
    raise Unlike


def _never(term: _Term) -> Condition:
    """Integers and decimals are never NaN, and Spark's isnan of NULL is false."""
    if term.type.name not in INTEGERS | {"decimal"}:
        raise Unlike
    return Condition(lambda columns: _nowhere(term.get(columns)), term.columns)


def _nowhere(values: Any) -> Any:
    return _compute().and_(values.is_null(), values.is_valid())


def _compute() -> Any:
    import pyarrow.compute as pc

    return pc


def _both(name: str) -> Callable[[exp.Expr, Mapping[str, DataType]], Condition]:
    def made(node: exp.Expr, types: Mapping[str, DataType]) -> Condition:
        left, right = _truth(node.this, types), _truth(node.expression, types)

        def evaluate(columns: Columns) -> Any:
            return getattr(_compute(), name)(left.evaluate(columns), right.evaluate(columns))

        return Condition(evaluate, left.columns | right.columns)

    return made


def _not(node: exp.Expr, types: Mapping[str, DataType]) -> Condition:
    inner = _truth(node.this, types)
    return Condition(lambda columns: _compute().invert(inner.evaluate(columns)), inner.columns)


def _is_null(node: exp.Expr, types: Mapping[str, DataType]) -> Condition:
    if not isinstance(node.expression, exp.Null):
        raise Unlike
    term = _term(node.this, types, any_type=True)
    return Condition(lambda columns: _compute().is_null(term.get(columns)), term.columns)


def _among(node: exp.Expr, types: Mapping[str, DataType]) -> Condition:
    term = _term(node.this, types)
    if not node.expressions or node.args.get("query"):
        raise Unlike
    scalars = [_literal(one, term.type) for one in node.expressions]

    def evaluate(columns: Columns) -> Any:
        import pyarrow as pa

        values = term.get(columns)
        listed = pa.array([one.as_py() for one in scalars], scalars[0].type).cast(values.type)
        # In SQL, NULL is neither among them nor not.
        return _compute().if_else(values.is_valid(), _compute().is_in(values, listed), None)

    return Condition(evaluate, term.columns)


def _compared(name: str) -> Callable[[exp.Expr, Mapping[str, DataType]], Condition]:
    def made(node: exp.Expr, types: Mapping[str, DataType]) -> Condition:
        left = _term(node.this, types)
        if left.type.name not in _COMPARED[name]:
            raise Unlike
        if isinstance(_bare(node.expression), exp.Column):
            right = _term(node.expression, types)
            if right.type != left.type:
                raise Unlike
            return Condition(
                lambda columns: getattr(_compute(), name)(left.get(columns), right.get(columns)),
                left.columns | right.columns,
            )
        scalar = _literal(node.expression, left.type)
        return Condition(lambda columns: getattr(_compute(), name)(left.get(columns), scalar), left.columns)

    return made


_ORDERED = INTEGERS | {"decimal", "date"}
_EQUAL = _ORDERED | {"string", "boolean"}
_COMPARED = {
    **dict.fromkeys(("less", "less_equal", "greater", "greater_equal"), _ORDERED),
    **dict.fromkeys(("equal", "not_equal"), _EQUAL),
}
_TRUTHS: dict[type[exp.Expr], Callable[[exp.Expr, Mapping[str, DataType]], Condition]] = {
    exp.Paren: lambda node, types: _truth(node.this, types),
    exp.And: _both("and_kleene"),
    exp.Or: _both("or_kleene"),
    exp.Not: _not,
    exp.Is: _is_null,
    exp.In: _among,
    exp.LT: _compared("less"),
    exp.LTE: _compared("less_equal"),
    exp.GT: _compared("greater"),
    exp.GTE: _compared("greater_equal"),
    exp.EQ: _compared("equal"),
    exp.NEQ: _compared("not_equal"),
}


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _term(node: exp.Expr, types: Mapping[str, DataType], any_type: bool = False) -> _Term:
    node = _bare(node)
    if isinstance(node, exp.Anonymous) and node.name.lower() == "char_length" and len(node.expressions) == 1:
        text = _term(node.expressions[0], types)
        if text.type.name != "string":
            raise Unlike
        return _Term(lambda columns: _length(text.get(columns)), DataType("int"), text.columns)
    if not isinstance(node, exp.Column) or node.args.get("table") or node.name not in types:
        raise Unlike
    kind, name = types[node.name], node.name
    if not any_type and kind.name not in _EQUAL:
        raise Unlike
    return _Term(lambda columns: columns[name], kind, frozenset({name}))


def _length(texts: Any) -> Any:
    """The number of code points. Of bytes that are no UTF-8, Spark and Arrow count different things."""
    texts.validate(full=True)
    return _compute().utf8_length(texts)


def _literal(node: exp.Expr, kind: DataType) -> Any:
    """The literal as an Arrow scalar that compares with a column of this type exactly as in Spark."""
    import pyarrow as pa

    node = _bare(node)
    try:
        if kind.name in INTEGERS:
            value = _number(node)
            if value != value.to_integral_value() or abs(value) >= 2**63:
                raise Unlike
            return pa.scalar(int(value), pa.int64())
        if kind.name == "decimal":
            scale = kind.numbers[1]
            exact = _number(node).quantize(Decimal(1).scaleb(-scale), context=_EXACT)
            return pa.scalar(exact, pa.decimal128(38, scale))
        if kind.name == "date" and isinstance(node, exp.Cast) and node.to.this == exp.DType.DATE:
            return pa.scalar(dt.date.fromisoformat(node.this.name), pa.date32())
        if kind.name == "string" and isinstance(node, exp.Literal) and node.is_string:
            return pa.scalar(node.name, pa.string())
        if kind.name == "boolean" and isinstance(node, exp.Boolean):
            return pa.scalar(bool(node.this), pa.bool_())
    except (ValueError, ArithmeticError, pa.ArrowException) as error:
        raise Unlike from error
    raise Unlike


def _number(node: exp.Expr) -> Decimal:
    if isinstance(node, exp.Neg):
        return -_number(_bare(node.this))
    if not isinstance(node, exp.Literal) or node.is_string:
        raise Unlike
    return Decimal(node.name)
