"""TABLE: aggregates of one column of rows in memory, the same numbers as on Spark."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

from dq.dataquality.local.offline.expression import Cells
from dq.dataquality.local.offline.functions import since_1970
from dq.dataquality.local.offline.values import EXACT, as_decimal, order
from dq.dataquality.model.answer import Value
from dq.dataquality.model.metric import Aggregate
from dq.dataquality.model.term import Function, Path, Since1970, Term

Reader = Callable[[Cells], Any]


def known(metric: Aggregate) -> bool:
    """Whether rows in memory answer it."""
    if metric.value is None:
        return metric.name == "count"
    return metric.name in _AGGREGATES and _reader(metric.value) is not None


def answer(metric: Aggregate, rows: Sequence[Cells]) -> Value:
    """The number of these rows, NULL as Spark has it. Raises Incomparable for values that are no numbers."""
    if metric.value is None:
        return len(rows)
    read = _reader(metric.value)
    assert read is not None
    values = [value for cells in rows if (value := read(cells)) is not None]
    found: Value = _AGGREGATES[metric.name](values, metric)
    return found


def _reader(term: Term) -> Reader | None:
    match term:
        case Path(steps):
            return lambda cells: _at(cells, steps)
        case Since1970(Path(steps), "date"):
            return lambda cells: _days(_at(cells, steps))
        case Function("try_decimal", (Path(steps), int(precision), int(scale))):
            return lambda cells: _decimal(_at(cells, steps), precision, scale)
        case _:
            return None


def _at(cells: Cells, steps: Sequence[str]) -> Any:
    value: Any = cells
    for step in steps:
        if value is None:
            return None
        name = step if step in value else next(one for one in value if one.lower() == step.lower())
        value = value[name]
    return value


def _decimal(value: Any, precision: int, scale: int) -> Decimal | None:
    return None if value is None else as_decimal(value, precision, scale)


def _days(value: Any) -> int | None:
    return None if value is None else since_1970("date")(value)


def _ordered(values: Sequence[Any]) -> list[Any]:
    return sorted(values, key=cmp_to_key(order))


def _sum(values: Sequence[Any], _metric: Aggregate) -> Value:
    """NULL where 64 bits, or 38 digits of decimals, do not hold it."""
    if not values:
        return None
    if any(isinstance(value, float) for value in values):
        return math.fsum(values) if all(map(math.isfinite, values)) else sum(values)
    if all(isinstance(value, int) for value in values):
        total = sum(values)
        return total if -(2**63) <= total < 2**63 else None
    with decimal.localcontext(EXACT):
        summed = sum(values, Decimal(0))
    return summed if len(summed.as_tuple().digits) <= _MOST_DIGITS else None


_MOST_DIGITS = 38


def _deviation(values: Sequence[Any], _metric: Aggregate) -> Value:
    """That of a sample, NULL for fewer than two values."""
    floats = [float(value) for value in values]
    if len(floats) < 2:
        return None
    if not all(map(math.isfinite, floats)):
        return math.nan
    mean = math.fsum(floats) / len(floats)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in floats) / (len(floats) - 1))


def _ranked(round_: Callable[[Fraction], int]) -> Callable[[Sequence[Any], Aggregate], Value]:
    def ranked(values: Sequence[Any], metric: Aggregate) -> Value:
        if not values:
            return None
        assert metric.share is not None
        found: Value = _ordered(values)[round_(Fraction(metric.share) * (len(values) - 1))]
        return found

    return ranked


def _extreme(at: int) -> Callable[[Sequence[Any], Aggregate], Value]:
    return lambda values, _metric: _ordered(values)[at] if values else None


_AGGREGATES: Mapping[str, Callable[[Sequence[Any], Aggregate], Value]] = {
    "min": _extreme(0),
    "max": _extreme(-1),
    "try_sum": _sum,
    "stddev_samp": _deviation,
    "rank_below": _ranked(math.floor),
    "rank_above": _ranked(math.ceil),
    "rank_near": _ranked(math.floor),
}
