"""Metrics asked of rows in memory: the same questions as on Spark, and the same answers."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from dq.contracts.types import DataType
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.local.offline import aggregates
from dq.dataquality.local.offline.aggregates import cell_at
from dq.dataquality.local.offline.expression import Cells, predicate
from dq.dataquality.local.offline.rows import Rows
from dq.dataquality.local.offline.values import Incomparable, key
from dq.dataquality.model.answer import Group
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import (
    SCHEMA,
    Aggregate,
    Answer,
    DistinctKeys,
    Failure,
    Kind,
    Metric,
    PerGroup,
    RepeatedKeys,
    Schema,
    SingleKeys,
    Value,
)
from dq.dataquality.model.predicate import Predicate
from dq.dataquality.model.reading import NoReading
from dq.dataquality.spark.measure import MOST_GROUPS, group_name, too_many
from dq.dataquality.spark.plan import plan

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
    if isinstance(metric, Aggregate) and not aggregates.known(metric):
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
        return aggregates.answer(metric, chosen)
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
