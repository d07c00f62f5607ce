"""TABLE: what must be known of one column to answer a count, or an extreme, without reading a row.

A wrong word here is a promise that looks kept. So a node that is not known to rise, or to depend on the value
alone, gives no proof, and neither does a user's own SQL.
"""

from __future__ import annotations

from enum import Enum, StrEnum, auto

from dq.dataquality.model import predicate as p
from dq.dataquality.model import term as t
from dq.dataquality.model.column import Column


class Proof(StrEnum):
    """What has to be known of the one column that a metric needs to answer it without a scan.

    NULLS: it counts the rows where the column is NULL. VALUES: it counts rows by the column's value alone,
    and never one with NULL. INTERVAL: besides, the values that it does not count have no gap between them.
    EXTREME: it is the least or greatest of an expression that rises with the column's value.
    """

    NONE = "none"
    NULLS = "nulls"
    VALUES = "values"
    INTERVAL = "interval"
    EXTREME = "extreme"


def of_count(where: p.Predicate | None) -> tuple[Proof, Column | None]:
    """The proof of a count of the rows where this is true, and the column that it is about."""
    if isinstance(where, p.Missing | p.IsNull) and isinstance(where.value, t.Path) and where.value.steps:
        return Proof.NULLS, Column(where.value.steps)
    columns = set[t.Path]()
    if where is None or not _by_value(where, columns) or len(columns) != 1 or _of_null(where) is True:
        return Proof.NONE, None
    (path,) = columns
    plain = _shape(where) is not _Shape.UNKNOWN
    return (Proof.INTERVAL if plain else Proof.VALUES), Column(path.steps)


def of_extreme(value: t.Term) -> tuple[Proof, Column | None]:
    """The proof of a least or greatest value over all rows, and the column that it is about."""
    if isinstance(value, t.Since1970):
        return Proof.EXTREME, Column(value.value.steps)
    return Proof.NONE, None


def _by_value(node: p.Predicate, columns: set[t.Path]) -> bool:
    """Whether it depends on the values of columns alone, which are added; nested ones have no statistics."""
    match node:
        case p.Not(part):
            return _by_value(part, columns)
        case p.And(parts) | p.Or(parts):
            return all(_by_value(part, columns) for part in parts)
        case p.Compare(value, _, other):
            return not isinstance(other, t.Term) and _column(value, columns)
        case p.In(value, _) | p.IsNull(value) | p.Matches(value, _):
            return _column(value, columns)
        case p.Missing(value) | p.IsNaN(value) | p.HasDay(value, _) | p.MultipleOf(value, _):
            return _column(value, columns)
        case _:
            return False


def _column(term: t.Term, columns: set[t.Path]) -> bool:
    match term:
        case t.Path(steps, _):
            columns.add(t.Path(steps))
            return len(steps) == 1
        case t.Length(value) | t.Remainder(value, _):
            return _column(value, columns)
        case _:
            return False


def _of_null(node: p.Predicate) -> bool | None:
    """What it is of NULL, for what `_by_value` knows."""
    match node:
        case p.Not(part):
            inner = _of_null(part)
            return None if inner is None else not inner
        case p.And(parts):
            found = {_of_null(part) for part in parts}
            return False if False in found else None if None in found else True
        case p.Or(parts):
            found = {_of_null(part) for part in parts}
            return True if True in found else None if None in found else False
        case p.IsNull() | p.Missing():
            return True
        case p.IsNaN() | p.HasDay():
            return False
        case _:
            return None


class _Shape(Enum):
    """Which values it is true for: none, all, those below a point, those above one, or both kinds."""

    NONE = auto()
    ALL = auto()
    BELOW = auto()
    ABOVE = auto()
    BOTH = auto()
    UNKNOWN = auto()


_COMPARED = {
    "<": _Shape.BELOW,
    "<=": _Shape.BELOW,
    ">": _Shape.ABOVE,
    ">=": _Shape.ABOVE,
    "<>": _Shape.BOTH,
}
# Of texts the order depends on the column's collation.
_ORDERED = ("integer", "decimal", "double", "date", "timestamp", "timestamp_ntz")
_OPPOSITE = {
    _Shape.NONE: _Shape.ALL,
    _Shape.ALL: _Shape.NONE,
    _Shape.BELOW: _Shape.ABOVE,
    _Shape.ABOVE: _Shape.BELOW,
}
_ENDS = frozenset({_Shape.BELOW, _Shape.ABOVE, _Shape.BOTH})


def _shape(node: p.Predicate) -> _Shape:
    """Which values but NULL it is true for. NaN stands above all others, as Spark sorts it."""
    match node:
        case p.Not(part):
            return _OPPOSITE.get(_shape(part), _Shape.UNKNOWN)
        case p.Or(parts):
            return _either({_shape(part) for part in parts})
        case p.And(parts):
            # Not both: where one is true for values below and the other above, they meet in the middle.
            opposites = {_OPPOSITE.get(_shape(part), _Shape.UNKNOWN) for part in parts}
            return _OPPOSITE.get(_either(opposites), _Shape.UNKNOWN)
        case p.IsNull() | p.Missing():
            return _Shape.NONE
        case p.IsNaN():
            return _Shape.ABOVE
        case p.Compare(t.Path(), operator) if node.kind in _ORDERED:
            return _COMPARED.get(operator, _Shape.UNKNOWN)
        case _:
            return _Shape.UNKNOWN


def _either(shapes: set[_Shape]) -> _Shape:
    """The shape of what is true where one of these is."""
    if _Shape.UNKNOWN in shapes or _Shape.ALL in shapes:
        return _Shape.ALL if _Shape.ALL in shapes else _Shape.UNKNOWN
    ends = shapes & _ENDS
    if len(ends) < 2:
        return next(iter(ends), _Shape.NONE)
    return _Shape.BOTH
