"""The one module that runs Spark: a plan on a DataFrame to answers."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.dataquality.model.answer import Answer, Failure, Number
from dq.dataquality.model.metric import (
    SCHEMA,
    Aggregate,
    Answers,
    Call,
    DistinctKeys,
    Keyed,
    Kind,
    Metric,
    OfRows,
    PerGroup,
    Query,
    RepeatedKeys,
    SingleKeys,
    UnmatchedKeys,
    count,
    of_users,
    one_number,
)
from dq.dataquality.model.predicate import And
from dq.dataquality.model.target import incomparable
from dq.dataquality.spark.error_redaction import MAX_MESSAGE, answered, cleaned, spark_errors, without_values
from dq.dataquality.spark.groups import key_counts, per_group
from dq.dataquality.spark.halving import halved
from dq.dataquality.spark.plan import Pass, Plan, plan
from dq.dataquality.spark.schema import data_type
from dq.dataquality.spark.time_limit import Watch, time_limit
from dq.dataquality.sql.spark_predicate import predicate_sql, question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

NOTHING: Answers = {}
COUNT = count()


def schema_of(frame: DataFrame) -> DataType:
    """The frame's columns and types as a struct type; no job runs."""
    return data_type(frame.schema.jsonValue())


_Run = Callable[["DataFrame", tuple[Metric, ...], Watch], dict[Metric, Answer]]
Others = Callable[[str], "DataFrame | Failure"]
"""The whole data of another object of the contract, by its name."""


def none_given(name: str) -> DataFrame | Failure:
    """No other object can be opened."""
    return Failure(f"there is no data of {name!r} to look the keys up in")


def measure(
    frame: DataFrame,
    made: Plan,
    others: Others = none_given,
    known: Answers = NOTHING,
    limit_seconds: float | None = None,
    gather: Callable[[DataFrame, object], DataFrame] = lambda frame, _rows: frame,
) -> dict[Metric, Answer]:
    """Every metric of the plan with its value, or with a Failure that says why it has none.

    `others` gives the objects that relationships refer to; `known` are answers that are there already.
    `gather` makes of the frame and the number of its rows (None: not asked) one whose keys are found faster.

    One Spark job per pass, and one before a look-up that Spark broadcasts; more only when one
    fails: then it is halved until the guilty metrics stand alone and the others have their answers. A key
    that holds another one without duplicates has none (see `implied`), and takes no job.
    A pass with something that the contract's author wrote is stopped after the limit; then all else is asked
    without it, and each such metric alone, again with the limit. So a pass with n of them takes at most n + 1
    limits more than without them.
    Never raises for what is wrong with the data.
    """
    answers: dict[Metric, Answer] = {SCHEMA: schema_of(frame), **dict(made.failures), **known}
    for one in sorted(made.passes, key=_width):
        if implied(one, answers):
            answers[one.metrics[0]] = 0
        else:
            # What the rows of another object are joined with stays as it lies.
            apart = one.kind is Kind.UNMATCHED
            asked = frame if apart else gather(frame, answers.get(COUNT))
            answers |= _limited(asked, one.metrics, _runner(others), limit_seconds)
    again = {
        one: one.instead
        for one, answer in answers.items()
        if isinstance(answer, Failure) and not answer.late
        if isinstance(one, Aggregate | DistinctKeys) and one.instead is not None
    }
    if again:
        instead = plan(again.values(), schema_of(frame))
        found = measure(frame, instead, others, limit_seconds=limit_seconds)
        answers |= {one: found[other] for one, other in again.items()}
    return answers


def _limited(
    frame: DataFrame, metrics: tuple[Metric, ...], run: _Run, limit_seconds: float | None
) -> dict[Metric, Answer]:
    theirs = tuple(metric for metric in metrics if of_users(metric)) if limit_seconds else ()
    with time_limit(frame.sparkSession, limit_seconds if theirs else None) as watch:
        answers = run(frame, metrics, watch)
    if not watch.over or not any(isinstance(answer, Failure) for answer in answers.values()):
        return answers
    if len(metrics) == 1:
        return {metrics[0]: watch.failure()}
    ours = tuple(metric for metric in metrics if metric not in theirs)
    answers = run(frame, ours, Watch()) if ours else {}
    for metric in theirs:
        answers |= _limited(frame, (metric,), run, limit_seconds)
    return answers


def _runner(others: Others) -> _Run:
    def run(frame: DataFrame, metrics: tuple[Metric, ...], watch: Watch) -> dict[Metric, Answer]:
        together = tuple(metric for metric in metrics if isinstance(metric, Aggregate))
        alone = [metric for metric in metrics if not isinstance(metric, Aggregate)]
        answers: dict[Metric, Answer] = {}
        if together:
            answers |= halved(together, watch, lambda some: _row(frame, some))
        grouped = tuple(metric for metric in alone if isinstance(metric, PerGroup))
        if grouped:
            return answers | halved(grouped, watch, lambda some: list(per_group(frame, some).values()))
        keys = [metric for metric in alone if isinstance(metric, DistinctKeys | SingleKeys)]
        if any(isinstance(metric, SingleKeys) for metric in keys):
            counted = answered(lambda: key_counts(keyed(frame, keys[0]), keys))
            return answers | (dict.fromkeys(keys, counted) if isinstance(counted, Failure) else counted)
        for one in alone:
            answers[one] = answered(lambda one=one: _alone(frame, one, others))  # type: ignore[misc]  # at once
        return answers

    return run


def _alone(frame: DataFrame, metric: Metric, others: Others) -> Number | Failure:
    """The answer to what shares no pass with others."""
    match metric:
        case DistinctKeys():
            return keyed(frame, metric).distinct().count()
        case RepeatedKeys():
            return _duplicates(frame, metric)
        case UnmatchedKeys():
            return _unmatched(frame, metric, others)
        case Query():
            return _queried(frame, metric)
        case Call():
            return _called(frame, metric)
        case _:
            raise AssertionError(f"{metric} shares a pass")


def _width(one: Pass) -> int:
    asked = one.metrics[0]
    return len(asked.keys) if isinstance(asked, RepeatedKeys) else 0


def implied(one: Pass, answers: Answers) -> bool:
    """Whether the pass counts duplicates of a key that holds another one, which has none in these rows."""
    asked = one.metrics[0]
    return isinstance(asked, RepeatedKeys) and any(
        answer == 0
        and isinstance(other, RepeatedKeys)
        and set(other.keys) < set(asked.keys)
        and other.where in (None, asked.where)
        for other, answer in answers.items()
    )


def _row(frame: DataFrame, metrics: tuple[Aggregate, ...]) -> list[Any]:
    if len({metric.where for metric in metrics}) == 1 and metrics[0].where:
        # A filter on partitions reaches the scan, which then reads no other one.
        frame, metrics = _within(frame, metrics[0]), tuple(replace(one, where=None) for one in metrics)
    schema = schema_of(frame)
    asked = [f"{question(metric, schema)} AS `{index}`" for index, metric in enumerate(metrics)]
    return list(frame.selectExpr(*asked).collect()[0])


def _within(frame: DataFrame, metric: OfRows) -> DataFrame:
    """The rows that the metric speaks about.

    Spark chooses folders by such a filter, and hands it to no reader: readers pass over what a file's
    statistics exclude, and these may be wrong.
    """
    where = metric.where
    if where is None:
        return frame
    schema = schema_of(frame)
    parts = where.parts if isinstance(where, And) else (where,)
    truths = (predicate_sql(part, schema) for part in parts)
    return frame.where(
        sql.all_of(*(f"array_contains(array(true), coalesce({truth}, false))" for truth in truths))
    )


def _duplicates(frame: DataFrame, metric: RepeatedKeys) -> int:
    # Sorting within each key costs about half of the CPU of grouping and counting, for any type of key.
    keys = ", ".join(sql.name(str(index)) for index in range(len(metric.keys)))
    numbered = keyed(frame, metric).selectExpr(
        f"row_number() OVER (PARTITION BY {keys} ORDER BY {keys}) AS n"
    )
    return int(numbered.where("n > 1").selectExpr("count(1) AS n").collect()[0][0])


def _unmatched(frame: DataFrame, metric: UnmatchedKeys, others: Others) -> int | Failure:
    rows = unmatched(frame, metric, others)
    if isinstance(rows, Failure):
        return rows
    return answered(lambda: int(rows.selectExpr("count(1) AS n").collect()[0][0]))


def unmatched(frame: DataFrame, metric: UnmatchedKeys, others: Others, *more: str) -> DataFrame | Failure:
    """The keys, called 0, 1, …, and `more` columns, of the rows whose key the target does not have."""
    other = others(metric.target.object)
    if isinstance(other, Failure):
        return other
    reason = incomparable(schema_of(frame), metric.keys, schema_of(other), metric.target)
    if reason is not None:
        return Failure(reason)
    names = [str(index) for index in range(len(metric.keys))]
    theirs = keyed(other, DistinctKeys(metric.target.keys))
    return answered(lambda: keyed(frame, metric, *more).join(theirs, on=names, how="left_anti"))


def keyed(frame: DataFrame, metric: Keyed, *more: str) -> DataFrame:
    """The key's columns, called 0, 1, …, of the rows that the metric speaks about; and `more` columns."""
    rows = _within(frame, metric)
    present = sql.all_of(*(f"{key.sql()} IS NOT NULL" for key in metric.keys))
    named = (f"{key.sql()} AS {sql.name(str(index))}" for index, key in enumerate(metric.keys))
    return rows.where(present).selectExpr(*named, *more)


def _queried(frame: DataFrame, metric: Query) -> Number | Failure:
    """The one number of a guarded query; its view lives as long as the query.

    Views belong to the session, which threads share: each query has one of its own name.
    """
    view = f"{sql.ROWS_VIEW}_{uuid.uuid4().hex}"
    rows = _within(frame, metric)
    rows.createOrReplaceTempView(view)
    try:
        asked = frame.sparkSession.sql(metric.sql.replace(sql.name(sql.ROWS_VIEW), sql.name(view)))
        return _one_number(asked.columns, asked.limit(2).collect())
    except spark_errors() as error:
        return Failure(f"the query failed: {cleaned(error, without_values)}")
    finally:
        frame.sparkSession.catalog.dropTempView(view)


def _called(frame: DataFrame, metric: Call) -> Number | Failure:
    """The number of another package's function, which may do whatever it likes with the rows."""
    rows = _within(frame, metric)
    try:
        return one_number(metric.number(rows), f"the check {metric.name!r}")
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a foreign function may raise anything
        spark = isinstance(error, spark_errors())
        first = str(error).strip().split("\n", 1)[0]
        text = cleaned(error, without_values) if spark else without_values(first)
        said = f"the check {metric.name!r} raised {type(error).__name__}: {text}"
        return Failure(said[:MAX_MESSAGE].rstrip(": "))


def _one_number(names: list[str], rows: list[Row]) -> Number | Failure:
    if len(names) != 1 or len(rows) != 1:
        shown = "several rows" if len(rows) > 1 else f"{len(rows)} row(s)"
        return Failure(f"the query gives {shown} of {len(names)} column(s); one number is needed")
    return one_number(rows[0][0])
