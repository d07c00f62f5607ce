"""Metrics asked of rows in memory: the same questions as on Spark, and the same answers."""

from __future__ import annotations

import decimal
import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

from dq.contracts.types import DataType
from dq.dataquality.answers.expression import Cells, predicate, since_1970
from dq.dataquality.answers.rows import EXACT, Incomparable, Rows, as_decimal, key, order
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import (
    SCHEMA,
    Aggregate,
    Answer,
    DistinctKeys,
    Failure,
    Group,
    Kind,
    Metric,
    PerGroup,
    RepeatedKeys,
    Schema,
    SingleKeys,
    Value,
)
from dq.dataquality.model.metric import Value as Aggregated
from dq.dataquality.model.predicate import Function, NoReading, Path, Predicate, Since1970, Steps, Term
from dq.dataquality.spark.measure import MOST_GROUPS, group_name, too_many
from dq.dataquality.spark.plan import plan

# TABLE: aggregates of one column of rows in memory, the same numbers as on Spark.

Reader = Callable[[Cells], Any]


def known(metric: Aggregate) -> bool:
    """Whether rows in memory answer it."""
    if metric.value is None:
        return metric.name == "count"
    return metric.name in _AGGREGATES and _reader(metric.value) is not None


def answer(metric: Aggregate, rows: Sequence[Cells]) -> Aggregated:
    """The number of these rows, NULL as Spark has it. Raises Incomparable for values that are no numbers."""
    if metric.value is None:
        return len(rows)
    read = _reader(metric.value)
    assert read is not None
    values = [value for cells in rows if (value := read(cells)) is not None]
    found: Aggregated = _AGGREGATES[metric.name](values, metric)
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


def _sum(values: Sequence[Any], _metric: Aggregate) -> Aggregated:
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


def _deviation(values: Sequence[Any], _metric: Aggregate) -> Aggregated:
    """That of a sample, NULL for fewer than two values."""
    floats = [float(value) for value in values]
    if len(floats) < 2:
        return None
    if not all(map(math.isfinite, floats)):
        return math.nan
    mean = math.fsum(floats) / len(floats)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in floats) / (len(floats) - 1))


def _ranked(round_: Callable[[Fraction], int]) -> Callable[[Sequence[Any], Aggregate], Aggregated]:
    def ranked(values: Sequence[Any], metric: Aggregate) -> Aggregated:
        if not values:
            return None
        assert metric.share is not None
        found: Aggregated = _ordered(values)[round_(Fraction(metric.share) * (len(values) - 1))]
        return found

    return ranked


def _extreme(end: int) -> Callable[[Sequence[Any], Aggregate], Aggregated]:
    return lambda values, _metric: _ordered(values)[end] if values else None


_AGGREGATES: Mapping[str, Callable[[Sequence[Any], Aggregate], Aggregated]] = {
    "min": _extreme(0),
    "max": _extreme(-1),
    "try_sum": _sum,
    "stddev_samp": _deviation,
    "rank_below": _ranked(math.floor),
    "rank_above": _ranked(math.ceil),
    "rank_near": _ranked(math.floor),
}


_OTHERS = {
    Kind.SQL: "a query needs Spark",
    Kind.UNMATCHED: "the keys would have to be looked up in another object",
}


def unanswerable(metric: Metric) -> str | None:
    """Why rows in memory cannot answer a metric, or None when they can."""
    if isinstance(metric, Schema):
        return None
    if isinstance(metric, PerGroup):
        return unanswerable(metric.of) or _unread(metric.within)
    if not isinstance(metric, Aggregate | DistinctKeys | RepeatedKeys | SingleKeys):
        return _OTHERS.get(metric.kind, f"a question of the kind {metric.kind} needs Spark")
    if isinstance(metric, Aggregate) and not known(metric):
        return f"{metric.name} of a column needs Spark"
    return _unread(metric.where)


def _unread(where: Predicate | None) -> str | None:
    try:
        _holds(where)
    except NoReading as error:
        return str(error)
    return None


def measure(rows: Rows, metrics: Iterable[Metric]) -> dict[Metric, Answer]:
    """Every metric with its value, or with a Failure that says why it has none."""
    made = plan(metrics, rows.schema)
    answers: dict[Metric, Answer] = {SCHEMA: rows.schema, **dict(made.failures)}
    for one in made.passes:
        answers |= {metric: _answer(rows, metric) for metric in one.metrics}
    return answers


def _answer(rows: Rows, metric: Metric) -> Answer:
    reason = unanswerable(metric)
    if reason is not None or isinstance(metric, Schema):
        return Failure(reason or "rows do not answer it")
    try:
        if isinstance(metric, PerGroup):
            return _of_groups(rows, metric)
        return _of_rows(rows, metric)
    except (Incomparable, NoReading) as error:
        return Failure(str(error))


def _of_rows(rows: Rows, metric: Metric) -> Value:
    assert isinstance(metric, Aggregate | DistinctKeys | RepeatedKeys | SingleKeys)
    holds = _holds(metric.where, rows.schema)
    chosen = [cells for cells in rows.cells if holds(cells)]
    if isinstance(metric, Aggregate):
        return answer(metric, chosen)
    keys = Counter(made for cells in chosen if (made := _key(cells, metric.keys)) is not None)
    if isinstance(metric, SingleKeys):
        return sum(times == 1 for times in keys.values())
    return len(keys) if isinstance(metric, DistinctKeys) else keys.total() - len(keys)


def _of_groups(rows: Rows, metric: PerGroup) -> Answer:
    holds = _holds(metric.within, rows.schema)
    found: dict[Group, list[Cells]] = {}
    for cells in rows.cells:
        if holds(cells):
            group = tuple(group_name(cell_at(cells, column.steps)) for column in metric.by)
            found.setdefault(group, []).append(cells)
    if len(found) > MOST_GROUPS:
        return too_many(metric.by)
    told = {group: _of_rows(Rows(rows.schema, tuple(cells)), metric.of) for group, cells in found.items()}
    return {group: number for group, number in told.items() if not isinstance(number, str)}  # type: ignore[misc]


def broken(rows: Rows, clause: Clause) -> list[bool] | None:
    """For each row whether it breaks the clause, or repeats a key; None where that is not of single rows.

    Raises Incomparable and NoReading where the clause cannot be measured.
    """
    if not clause.of_rows:
        return None
    within = _holds(clause.extent.where, rows.schema)
    if clause.breaks is not None:
        breaks = _holds(clause.breaks, rows.schema)
        return [within(cells) and breaks(cells) for cells in rows.cells]
    seen: set[object] = set()
    found = []
    for cells in rows.cells:
        made = _key(cells, clause.keys) if within(cells) else None
        found.append(made is not None and made in seen)
        seen.add(made)
    return found


@functools.lru_cache(1024)
def _holds(where: Predicate | None, schema: DataType | None = None) -> Callable[[Cells], bool]:
    return (lambda _cells: True) if where is None else predicate(where, schema)


def _key(cells: Cells, columns: Sequence[Column]) -> object:
    """The row's key, None when a part of it is NULL."""
    values = [cell_at(cells, column.steps) for column in columns]
    return None if any(one is None for one in values) else tuple(key(one) for one in values)
