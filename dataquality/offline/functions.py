"""TABLE: what Spark's operators and functions compute, for those that are NULL when an argument is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from dq.dataquality.offline.values import Incomparable, key, order, remainder

Compute = Callable[..., object]
_BOTH = ("this", "expression")


def _added(one: object, other: object) -> object:
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    raise Incomparable("a sum of something else than integers")


def _distinct(items: Sequence[object]) -> list[object]:
    return list({key(item): item for item in items}.values())


def _when(holds: Callable[[int], bool]) -> tuple[Compute, tuple[str, ...]]:
    return lambda one, other: holds(order(one, other)), _BOTH


# Expression of the parser -> (what it computes, where its arguments stand in it).
STRICT: Mapping[type[exp.Expr], tuple[Compute, tuple[str, ...]]] = {
    exp.EQ: _when(lambda found: found == 0),
    exp.NEQ: _when(lambda found: found != 0),
    exp.LT: _when(lambda found: found < 0),
    exp.LTE: _when(lambda found: found <= 0),
    exp.GT: _when(lambda found: found > 0),
    exp.GTE: _when(lambda found: found >= 0),
    exp.Between: (
        lambda value, low, high: order(low, value) <= 0 <= order(high, value),
        ("this", "low", "high"),
    ),
    exp.Not: (lambda value: not value, ("this",)),
    exp.Neg: (lambda value: -value, ("this",)),
    exp.Add: (_added, _BOTH),
    exp.Mod: (remainder, _BOTH),
    # Of small integers alone: the months of a date pattern.
    exp.IntDiv: (lambda one, other: int(one / other), _BOTH),
    exp.IsNan: (lambda value: isinstance(value, float) and math.isnan(value), ("this",)),
    exp.Length: (len, ("this",)),
    exp.Lower: (lambda value: value.lower(), ("this",)),
    exp.Upper: (lambda value: value.upper(), ("this",)),
    exp.Left: (lambda value, count: value[:count], _BOTH),
    exp.StrPosition: (lambda value, part: value.find(part) + 1, ("this", "substr")),
    exp.StartsWith: (lambda value, part: value.startswith(part), _BOTH),
    exp.EndsWith: (lambda value, part: value.endswith(part), _BOTH),
    exp.ArraySize: (len, ("this",)),
    exp.ArrayDistinct: (_distinct, ("this",)),
    exp.MapKeys: (lambda pairs: [one for one, _ in pairs], ("this",)),
}
# Functions of one argument that the parser has no expression of its own for.
NAMED: Mapping[str, Compute] = {"map_values": lambda pairs: [value for _, value in pairs]}
