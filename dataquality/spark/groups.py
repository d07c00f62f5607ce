"""Metrics for each group of rows, and of keys by how often they stand: those that group before they count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.model.answer import Answer, Failure, Group
from dq.dataquality.model.metric import Aggregate, DistinctKeys, Metric, PerGroup, RepeatedKeys, SingleKeys
from dq.dataquality.spark.schema import data_type
from dq.dataquality.sql.spark_predicate import predicate_sql, question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

OfKeys = DistinctKeys | SingleKeys | RepeatedKeys
"""What is told by how often each key stands."""
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
    by = [column.sql() for column in first.by]
    found = told_by(rows, by, [one.of for one in metrics], MOST_GROUPS + 1)
    if len(found) > MOST_GROUPS:
        return dict.fromkeys(metrics, too_many(first.by))
    return {
        one: {group_of(row[: len(by)]): row[len(by) + index] for row in found}
        for index, one in enumerate(metrics)
    }


def group_of(values: Sequence[object]) -> Group:
    """The group that has these values."""
    return tuple(map(group_name, values))


def told_by(
    rows: DataFrame, by: Sequence[str], asked: Sequence[Aggregate | OfKeys], most: int | None = None
) -> list[Row]:
    """For each different value of `by` (Spark SQL) the value, and behind it each answer; at most so many.

    One job. All that is asked is of aggregates, or all of one key: a value without a key has none of it, and
    is there all the same.
    """
    from pyspark.sql.functions import expr

    schema = data_type(rows.schema.jsonValue())
    aggregates = [one for one in asked if isinstance(one, Aggregate)]
    keys = [one for one in asked if not isinstance(one, Aggregate)]
    named = [f"{text} AS {sql.name(f'g{at}')}" for at, text in enumerate(by)]
    if aggregates:
        assert not keys
        told = [f"{question(one, schema)} AS {sql.name(f'a{at}')}" for at, one in enumerate(aggregates)]
        grouped = rows.groupBy(*map(expr, named))
    else:
        told = [_OF_KEYS[type(one)] for one in keys]
        grouped = _counted(rows, named, keys[0], schema).groupBy(*(f"g{at}" for at in range(len(by))))
    found = grouped.agg(*map(expr, told))
    return (found if most is None else found.limit(most)).collect()


# Of the rows with a key and how often it stands, `count`; without a key, `k0` is NULL.
_OF_KEYS: Mapping[type, str] = {
    DistinctKeys: "count(`k0`)",
    SingleKeys: "count(CASE WHEN `count` = 1 THEN `k0` END)",
    RepeatedKeys: "sum(CASE WHEN `k0` IS NULL THEN 0 ELSE `count` - 1 END)",
}


def _counted(rows: DataFrame, by: Sequence[str], of: OfKeys, schema: DataType) -> DataFrame:
    """How often each key stands in each group."""
    present = " AND ".join(f"{key.sql()} IS NOT NULL" for key in of.keys)
    if of.where is not None:
        present += f" AND ({predicate_sql(of.where, schema)})"
    keys = [
        f"CASE WHEN {present} THEN {key.sql()} END AS {sql.name(f'k{at}')}" for at, key in enumerate(of.keys)
    ]
    names = [*(f"g{at}" for at in range(len(by))), *(f"k{at}" for at in range(len(keys)))]
    return rows.selectExpr(*by, *keys).groupBy(*names).count()
