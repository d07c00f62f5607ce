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
from dq.dataquality.model.term import Function, Path, Since1970, Steps, Term

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
            return lambda cells: cell_at(cells, steps)
        case Since1970(Path(steps), "date"):
            return _where_there(steps, since_1970("date"))
        case Function("try_decimal", (Path(steps), int(precision), int(scale))):
            return _where_there(steps, lambda value: as_decimal(value, precision, scale))
        case _:
            return None


def _where_there(steps: Steps, told: Callable[[Any], object]) -> Reader:
    return lambda cells: None if (value := cell_at(cells, steps)) is None else told(value)


def cell_at(cells: Cells, steps: Steps) -> Any:
    """The value at the end of a way of names, in any case; None where a holder is NULL."""
    value: Any = cells
    for step in map(str, steps):
        if value is None:
            return None
        name = step if step in value else next(one for one in value if one.lower() == step.lower())
        value = value[name]
    return value


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


def _extreme(end: int) -> Callable[[Sequence[Any], Aggregate], Value]:
    return lambda values, _metric: _ordered(values)[end] if values else None


_AGGREGATES: Mapping[str, Callable[[Sequence[Any], Aggregate], Value]] = {
    "min": _extreme(0),
    "max": _extreme(-1),
    "try_sum": _sum,
    "stddev_samp": _deviation,
    "rank_below": _ranked(math.floor),
    "rank_above": _ranked(math.ceil),
    "rank_near": _ranked(math.floor),
}
