"""Metrics for each group of rows, and of keys by how often they stand: those that group before they count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dq.contracts.sql import text as sql
from dq.dataquality.model.answer import Answer, Failure, Group
from dq.dataquality.model.metric import Aggregate, DistinctKeys, Metric, PerGroup, SingleKeys
from dq.dataquality.spark.schema import data_type
from dq.dataquality.sql.spark_predicate import predicate_sql, question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

# A verdict for each of more groups is read by nobody, and their values are kept.
MOST_GROUPS = 1_000


def group_name(value: object) -> str | None:
    """How the value of a group's column is shown; None is the group of NULL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def too_many(by: Sequence[object]) -> Failure:
    """Why there is no verdict for each of so many groups."""
    shown = ", ".join(str(column) for column in by)
    return Failure(
        f"there are more than {MOST_GROUPS:,} groups by {shown}; group by a column with fewer values,"
        " or narrow the rule with a scope"
    )


def key_counts(keyed: DataFrame, metrics: Sequence[DistinctKeys | SingleKeys]) -> dict[Metric, Answer]:
    """How many keys there are, and how many stand once; `keyed` has the key alone, as 0, 1, …"""
    counted = keyed.groupBy(*keyed.columns).count()
    (row,) = counted.selectExpr("count(1)", "count(CASE WHEN `count` = 1 THEN 1 END)").collect()
    return {one: row[1] if isinstance(one, SingleKeys) else row[0] for one in metrics}


def per_group(frame: DataFrame, metrics: Sequence[PerGroup]) -> Mapping[PerGroup, Answer]:
    """The answers of metrics with equal groups, by one job; all of aggregates, or all of one key."""
    first = metrics[0]
    schema = data_type(frame.schema.jsonValue())
    rows = frame if first.within is None else frame.where(predicate_sql(first.within, schema))
    aggregates = [one.of for one in metrics if isinstance(one.of, Aggregate)]
    if len(aggregates) == len(metrics):
        found = _grouped(rows, first, [question(one, schema) for one in aggregates])
    else:
        found = _keys_of_groups(rows, first, metrics)
    if len(found) > MOST_GROUPS:
        return dict.fromkeys(metrics, too_many(first.by))
    width = len(first.by)
    return {
        one: {_group(row, width): row[width + index] for row in found} for index, one in enumerate(metrics)
    }


def _group(row: Row, width: int) -> Group:
    return tuple(group_name(row[index]) for index in range(width))


def _grouped(rows: DataFrame, asked: PerGroup, questions: Sequence[str]) -> list[Row]:
    from pyspark.sql.functions import expr

    by = [expr(f"{column.sql()} AS {sql.name(f'g{at}')}") for at, column in enumerate(asked.by)]
    told = [expr(f"{text} AS {sql.name(f'a{at}')}") for at, text in enumerate(questions)]
    return rows.groupBy(*by).agg(*told).limit(MOST_GROUPS + 1).collect()


def _keys_of_groups(rows: DataFrame, asked: PerGroup, metrics: Sequence[PerGroup]) -> list[Row]:
    """Of each group, how many keys it has; a group without a key has none, and is there all the same."""
    of = asked.of
    assert isinstance(of, DistinctKeys | SingleKeys)
    present = " AND ".join(f"{key.sql()} IS NOT NULL" for key in of.keys)
    if of.where is not None:
        present += f" AND ({predicate_sql(of.where, data_type(rows.schema.jsonValue()))})"
    by = [f"{column.sql()} AS {sql.name(f'g{at}')}" for at, column in enumerate(asked.by)]
    keys = [
        f"CASE WHEN {present} THEN {key.sql()} END AS {sql.name(f'k{at}')}" for at, key in enumerate(of.keys)
    ]
    names = [f"g{at}" for at in range(len(by))]
    counted = rows.selectExpr(*by, *keys).groupBy(*names, *(f"k{at}" for at in range(len(keys)))).count()
    distinct = "count(`k0`)"
    single = "count(CASE WHEN `count` = 1 THEN `k0` END)"
    told = [single if isinstance(one.of, SingleKeys) else distinct for one in metrics]
    from pyspark.sql.functions import expr

    grouped = counted.groupBy(*names).agg(*(expr(text) for text in told))
    return grouped.limit(MOST_GROUPS + 1).collect()
