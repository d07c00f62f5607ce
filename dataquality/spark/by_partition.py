"""Metrics for each partition of a table, by one Spark job for all partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.model.answer import Answer, Failure, Group, Number
from dq.dataquality.model.column import Column, resolve
from dq.dataquality.model.how_asked import RANKS
from dq.dataquality.model.metric import (
    Aggregate,
    Call,
    Metric,
    PerGroup,
    Query,
    UnmatchedKeys,
)
from dq.dataquality.model.term import INTEGERS, Function, Path
from dq.dataquality.spark.error_redaction import answered
from dq.dataquality.spark.groups import MOST_GROUPS, group_of, told_by, too_many
from dq.dataquality.spark.measure import Others, schema_of, unmatched
from dq.dataquality.spark.plan import Pass
from dq.dataquality.sql.spark_predicate import predicate_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Key = tuple[object, ...]
"""The values of a partition's columns, as Spark gives them."""
# All groups of all partitions are collected at once; more are no rows for the driver.
MOST_ROWS = 100_000
# Aggregates that give the same whatever the order of the rows; sums only of exact numbers.
_EXACT = {"count", "min", "max", *RANKS[:2]}
_SUMS = ("sum", "try_sum")


def separable(metric: Metric, schema: DataType) -> bool:
    """Whether its answer for a partition is the same to the last digit when all partitions are asked at once.

    The last digits of a sum of floats depend on the order of the rows, and a query or a foreign function may
    do anything with them.
    """
    match metric:
        case Aggregate(name=name, value=value):
            return name in _EXACT or (name in _SUMS and _exact(value, schema))
        case PerGroup(of=of):
            return separable(of, schema)
        case _:
            return not isinstance(metric, Query | Call)


def _exact(value: object, schema: DataType) -> bool:
    if isinstance(value, Function):
        return value.name == "try_decimal"
    kind = resolve(schema, Column(value.steps)) if isinstance(value, Path) else None
    return isinstance(kind, DataType) and (kind.name == "decimal" or kind.name in INTEGERS)


def of_no_rows(metric: Metric) -> Answer:
    """The answer of a separable metric for a partition without rows."""
    match metric:
        case Aggregate(name=name):
            return 0 if name == "count" else None
        case PerGroup():
            return {}
        case _:
            return 0


def by_partition(
    frame: DataFrame, by: Sequence[str], made: Pass, others: Others
) -> Mapping[Key, Mapping[Metric, Answer]] | Failure:
    """The answers to a pass of separable metrics by partition; one without rows may be left out.

    `by` is Spark SQL of the values that tell partitions apart. One job, and one before a look-up that Spark
    broadcasts. A Failure says that one of the metrics, or one of the partitions, has no answer.
    """
    first = made.metrics[0]
    if isinstance(first, PerGroup):
        return answered(lambda: _groups(frame, by, made.metrics))  # type: ignore[arg-type]
    if isinstance(first, UnmatchedKeys):
        return answered(lambda: _unmatched(frame, by, first, others))
    return answered(lambda: _told(frame, by, made.metrics))


def _told(frame: DataFrame, by: Sequence[str], metrics: Sequence[Metric]) -> dict[Key, dict[Metric, Answer]]:
    rows = told_by(frame, by, metrics)  # type: ignore[arg-type]  # the others are asked in other ways
    width = len(by)
    return {tuple(row[:width]): dict(zip(metrics, row[width:], strict=True)) for row in rows}


def _groups(
    frame: DataFrame, by: Sequence[str], metrics: Sequence[PerGroup]
) -> dict[Key, dict[Metric, Answer]] | Failure:
    """Of each partition its groups, as `groups.per_group` has them."""
    first, width = metrics[0], len(by)
    rows = frame if first.within is None else frame.where(predicate_sql(first.within, schema_of(frame)))
    names = [*by, *(column.sql() for column in first.by)]
    found = told_by(rows, names, [one.of for one in metrics], MOST_ROWS + 1)
    if len(found) > MOST_ROWS:
        return Failure("there are too many groups to ask all partitions at once")
    groups: dict[Key, list[dict[Group, Number | None]]] = {}

    def few(told: dict[Group, Number | None]) -> Answer:
        return too_many(first.by) if len(told) > MOST_GROUPS else told

    for row in found:
        made = groups.setdefault(tuple(row[:width]), [{} for _ in metrics])
        group = group_of(row[width : len(names)])
        for at, each in enumerate(made):
            each[group] = row[len(names) + at]
    return {key: dict(zip(metrics, map(few, made), strict=True)) for key, made in groups.items()}


def _unmatched(
    frame: DataFrame, by: Sequence[str], metric: UnmatchedKeys, others: Others
) -> dict[Key, dict[Metric, Answer]] | Failure:
    names = [f"_dq_p{at}" for at in range(len(by))]
    rows = unmatched(
        frame, metric, others, *(f"{text} AS {sql.name(name)}" for text, name in zip(by, names, strict=True))
    )
    if isinstance(rows, Failure):
        return rows
    return {tuple(row[:-1]): {metric: row[-1]} for row in rows.groupBy(*names).count().collect()}
