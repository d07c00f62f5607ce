"""TABLE: which predicates mean the same over Arrow columns as in Spark SQL, and how they are evaluated there.

What is not here stays with Spark: floats (NaN, -0.0), instants, patterns, arithmetic, casts, functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import reduce
from typing import Any

from dq.contracts.types import DataType
from dq.dataquality.model import predicate as p
from dq.dataquality.model import predicate as t
from dq.dataquality.model.predicate import NoReading
from dq.lake.types import arrow_array

# Arrow arrays of one batch by the column's name; what a condition gives is an array of booleans, with
# NULL where SQL has it.
Columns = Mapping[str, Any]
Evaluate = Callable[[Columns], Any]
Types = Mapping[str, DataType]

# Refuses a literal with more places than the column has, instead of rounding it.
_EXACT = Context(prec=38, traps=[Inexact, InvalidOperation])
_INTEGERS = t.INTEGERS
_ORDERED = _INTEGERS | {"decimal", "date"}
# Types whose values are equal here where they are in Spark.
COMPARED = _ORDERED | {"string", "boolean"}
# Operator -> Arrow's function, and the types on which it means the same.
_OPERATORS = {
    "<": ("less", _ORDERED),
    "<=": ("less_equal", _ORDERED),
    ">": ("greater", _ORDERED),
    ">=": ("greater_equal", _ORDERED),
    "=": ("equal", COMPARED),
    "<>": ("not_equal", COMPARED),
}


class Unlike(Exception):
    """The predicate, or a part of it, is not known to mean the same here as in Spark."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A predicate, and the columns that it reads."""

    evaluate: Evaluate
    columns: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Values:
    """A value of the rows: how to get it, its type, and the columns that it reads."""

    get: Evaluate
    type: DataType
    columns: frozenset[str]


def condition(predicate: p.Predicate, types: Types) -> Condition | None:
    """The predicate as a condition on Arrow columns; None when it may mean something else here.

    `types` are the columns that can be read, by their exact names. Spark looks names up without case; a
    name that is written in another way is not found here.
    """
    try:
        return _truth(predicate, types)
    except (Unlike, NoReading):
        return None


def column(term: t.Term | None, types: Types) -> str | None:
    """The name of the column that a term is, when it is nothing else and can be read."""
    try:
        term = _read(term) if isinstance(term, t.Opaque) else term
    except NoReading:
        return None
    alone = isinstance(term, t.Path) and len(term.steps) == 1 and term.steps[0] in types
    return term.steps[0] if isinstance(term, t.Path) and alone else None


def _read(term: t.Opaque) -> t.Term:
    from dq.dataquality.sql.sql_reading import read_term

    return read_term(term.sql)


def _truth(node: p.Predicate, types: Types) -> Condition:
    match node:
        case p.And(parts):
            return _joined("and_kleene", [_truth(part, types) for part in parts])
        case p.Or(parts):
            return _joined("or_kleene", [_truth(part, types) for part in parts])
        case p.Not(part):
            inner = _truth(part, types)
            return Condition(lambda columns: _compute().invert(inner.evaluate(columns)), inner.columns)
        case p.IsNull(value) | p.Missing(value):
            null = _values(value, types, types_known=False)
            return Condition(lambda columns: _compute().is_null(null.get(columns)), null.columns)
        case p.IsNaN(value):
            return _never(_values(value, types))
        case p.In(value, listed):
            return _among(_values(value, types), listed, node.kinds)
        case p.Compare(value, operator, other):
            return _compared(_values(value, types), operator, other, node.kind, types)
        case t.Opaque(text, _, _):
            from dq.dataquality.sql.sql_reading import read_predicate

            return _truth(read_predicate(text), types)
        case _:
            raise Unlike


def _compute() -> Any:
    import pyarrow.compute as pc

    return pc


def _joined(name: str, parts: list[Condition]) -> Condition:
    def evaluate(columns: Columns) -> Any:
        return reduce(getattr(_compute(), name), (part.evaluate(columns) for part in parts))

    return Condition(evaluate, frozenset().union(*(part.columns for part in parts)))


def _never(values: _Values) -> Condition:
    """Integers and decimals are never NaN, and Spark's isnan of NULL is false."""
    if values.type.name not in _INTEGERS | {"decimal"}:
        raise Unlike

    def nowhere(columns: Columns) -> Any:
        found = values.get(columns)
        return _compute().and_(found.is_null(), found.is_valid())

    return Condition(nowhere, values.columns)


def _among(values: _Values, listed: tuple[t.Literal, ...], kinds: tuple[str, ...]) -> Condition:
    scalars = [_literal(each, kind, values.type) for each, kind in zip(listed, kinds, strict=True)]

    def evaluate(columns: Columns) -> Any:
        import pyarrow as pa

        found = values.get(columns)
        known = arrow_array([one.as_py() for one in scalars], scalars[0].type).cast(found.type)
        # In SQL, NULL is neither among them nor not.
        return _compute().if_else(found.is_valid(), _compute().is_in(found, known), pa.NULL)

    return Condition(evaluate, values.columns)


def _compared(left: _Values, operator: str, other: t.Literal | t.Term, kind: str, types: Types) -> Condition:
    name, allowed = _OPERATORS[operator]
    if left.type.name not in allowed:
        raise Unlike
    if isinstance(other, t.Term):
        right = _values(other, types)
        if not isinstance(other, t.Path) or right.type != left.type:
            raise Unlike
        return Condition(
            lambda columns: getattr(_compute(), name)(left.get(columns), right.get(columns)),
            left.columns | right.columns,
        )
    scalar = _literal(other, kind, left.type)
    return Condition(lambda columns: getattr(_compute(), name)(left.get(columns), scalar), left.columns)


def _values(term: t.Term, types: Types, *, types_known: bool = True) -> _Values:
    """The values of a term; of types whose values are never compared, only where that does not matter."""
    if isinstance(term, t.Length):
        text = _values(term.value, types)
        if text.type.name != "string":
            raise Unlike
        return _Values(lambda columns: _length(text.get(columns)), DataType("int"), text.columns)
    name = column(term, types)
    if name is None or (types_known and types[name].name not in COMPARED):
        raise Unlike
    return _Values(lambda columns: columns[name], types[name], frozenset({name}))


def _length(texts: Any) -> Any:
    """The number of code points. Of bytes that are no UTF-8, Spark and Arrow count different things."""
    import numpy as np

    data = texts.buffers()[2]
    # What is all ASCII, as most texts are, has as many code points as bytes: a twentieth of the time.
    if not data or np.frombuffer(data, np.int8).min() >= 0:
        return _compute().binary_length(texts)
    texts.validate(full=True)
    return _compute().utf8_length(texts)


def _literal(value: t.Literal, kind: str, wanted: DataType) -> Any:
    """The literal as an Arrow scalar that compares with a column of this type exactly as in Spark."""
    import pyarrow as pa

    exact = Decimal(value) if kind in ("integer", "decimal") else None  # type: ignore[arg-type]  # a number
    try:
        if wanted.name in _INTEGERS and exact is not None:
            if exact != exact.to_integral_value() or abs(exact) >= 2**63:
                raise Unlike
            return arrow_array([int(exact)], pa.int64())[0]
        if wanted.name == "decimal" and exact is not None:
            scale = wanted.numbers[1]
            places = exact.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
            return arrow_array([places], pa.decimal128(38, scale))[0]
        if wanted.name == kind and kind in _LITERALS:
            return arrow_array([value], pa.type_for_alias(_LITERALS[kind]))[0]
    except (ValueError, ArithmeticError, pa.ArrowException) as error:
        raise Unlike from error
    raise Unlike


# Kinds of literals that are called as the columns which they are compared with -> Arrow's type.
_LITERALS = {"date": "date32", "string": "string", "boolean": "bool"}
