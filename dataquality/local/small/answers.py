"""Metrics of a small table: by Arrow where it means the same as Spark, by rows of Python for the rest."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

from dq.contracts.types import DataType
from dq.dataquality.clauses.clause import micros_of
from dq.dataquality.local.offline.answers import measure, unanswerable
from dq.dataquality.local.offline.rows import of_arrow
from dq.dataquality.local.small.table import LeftToSpark, SmallTable
from dq.dataquality.model.column import resolve
from dq.dataquality.model.metric import (
    SCHEMA,
    Aggregate,
    Answer,
    Failure,
    Metric,
    PerGroup,
    reads,
)
from dq.dataquality.model.term import Path, Since1970
from dq.dataquality.shortcuts.kernels.run import in_memory
from dq.dataquality.spark.plan import plan
from dq.dataquality.sql.spark_predicate import question

# Comparisons that Python makes for the questions to one table: about half a second of them.
MOST_STEPS = 500_000
_FLOATS = frozenset({"float", "double"})
# Spark reckons these in doubles, whatever the numbers are.
_ROUNDED = frozenset({"stddev_samp"})
# Of floats, all others depend on the order in which the rows are added up.
_EXACT = frozenset({"count", "min", "max", "rank_below", "rank_above", "rank_near"})


def answers(metrics: Iterable[Metric], table: SmallTable) -> dict[Metric, Answer]:
    """The metrics that this process can tell, each with the answer that Spark gives.

    Raises LeftToSpark, and Arrow's errors, where Spark may read other values.
    """
    asked = list(dict.fromkeys(metrics))
    failures = dict(plan(asked, table.schema).failures)
    told: dict[Metric, Answer] = {SCHEMA: table.schema}
    # Another way to ask it is Spark's.
    told |= {one: why for one, why in failures.items() if getattr(one, "instead", None) is None}
    plain = [one for one in asked if one not in told and one not in failures and _alike(one, table.schema)]
    columns = table.columns(_names(plain, table.schema))
    told |= _since_1970(plain, columns)
    told |= in_memory([one for one in plain if one not in told], table.schema, columns, table.rows)
    rest = _within_reason([one for one in plain if one not in told], table)
    return told | _by_rows(rest, table.schema, columns) if rest else told


def _names(metrics: Sequence[Metric], schema: DataType) -> list[str]:
    """The columns that are read, as the table has them."""
    wanted = {str(need.column.steps[0]).lower() for metric in metrics for need in reads(metric)}
    return [name for name in schema.names if name.lower() in wanted]


def _alike(metric: Metric, schema: DataType) -> bool:
    """Whether Python gives the number that Spark gives."""
    if _instant(metric) is not None:
        return True
    if unanswerable(metric) is not None:
        return False
    of = metric.of if isinstance(metric, PerGroup) else metric
    if not isinstance(of, Aggregate) or of.value is None or of.name in _EXACT:
        return True
    if of.name in _ROUNDED:
        return False
    kinds = (resolve(schema, need.column) for need in reads(of))
    return not any(isinstance(kind, DataType) and kind.name in _FLOATS for kind in kinds)


def _instant(metric: Metric) -> str | None:
    """The column whose first or last instant is asked for, of all rows, in microseconds since 1970."""
    match metric:
        case Aggregate("min" | "max", Since1970(Path((str(name),)), "timestamp" | "timestamp_ntz"), None):
            return name
        case _:
            return None


def _since_1970(metrics: Sequence[Metric], columns: dict[str, Any]) -> dict[Metric, Answer]:
    import pyarrow.compute as pc

    spelled = {name.lower(): name for name in columns}
    found: dict[Metric, Answer] = {}
    for metric in metrics:
        name = _instant(metric)
        if name is not None and isinstance(metric, Aggregate):
            bound = pc.min_max(columns[spelled[name.lower()]])[metric.name].as_py()
            found[metric] = None if bound is None else micros_of(_aware(bound))
    return found


def _aware(moment: dt.datetime) -> dt.datetime:
    """A civil time counts as if it were one of UTC."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)


def _within_reason(metrics: Sequence[Metric], table: SmallTable) -> list[Metric]:
    """Of these the ones that rows of Python answer at once: nobody could stop them, as Spark's jobs are."""
    left, found = MOST_STEPS, []
    for metric in metrics:
        # About a node of the predicate, or a value of a list, for each of so many characters.
        size = len(question(metric, table.schema)) if isinstance(metric, Aggregate) else 0
        steps = table.rows * (1 + size // 20)
        if steps <= left:
            left -= steps
            found.append(metric)
    return found


def _by_rows(metrics: Sequence[Metric], schema: DataType, columns: dict[str, Any]) -> dict[Metric, Answer]:
    import pyarrow as pa

    wanted = _names(metrics, schema)
    kinds = dict(zip(schema.names, schema.parts, strict=True))
    rows = of_arrow(pa.table({name: columns[name] for name in wanted}), schema)
    if rows.schema.parts != tuple(kinds[name] for name in wanted):
        raise LeftToSpark
    found = measure(rows, metrics)
    return {metric: found[metric] for metric in metrics if not isinstance(found[metric], Failure)}
